"""What `predict` averages over draws of `pm.sample`, against all partitions enumerated.

The density of a new row, and its parts by cluster, are expectations under the joint law of alpha
and the partition, which small data allow to sum exactly.
"""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import predict as predict_module
from pymc_dpsplit.posterior.trace import members
from pymc_dpsplit.posterior.trace.draws import draws_of
from tests.support.families import component_of, dataset_of, twin_of
from tests.support.partitions import enumerate_partitions, exact_posterior, n_clusters_of
from tests.support.predicted_parts import predicted_parts
from tests.support.statistics import LEVEL, mean_test

pytestmark = pytest.mark.slow

SHAPE, RATE = 2.0, 1.0
_GRID = np.exp(np.linspace(np.log(1e-4), np.log(40.0), 400))
REFERENCE = np.array([4, 4, 4, 9, 9, 4, 9, 9])
NEW = {
    "Normal": np.array([[0.2], [2.6], [-5.0]]),
    "MvNormal": np.array([[0.2, -0.3], [2.4, 1.5], [np.nan, 0.9]]),
    "Categorical": np.array([[0.0, 1.0, 2.0], [2.0, np.nan, 0.0]]),
}
N_FEATURES = {"Normal": 1, "MvNormal": 2, "Categorical": 3}


def rows_and_reference(family: str) -> tuple[np.ndarray, np.ndarray]:
    rows = dataset_of(family, "overlapping", N_FEATURES[family])
    return rows, REFERENCE[: len(rows)]


def log_joint(family: str, rows: np.ndarray) -> np.ndarray:
    """Log posterior of alpha's node and the partition, (G, Bell(n))."""
    n_obs = len(rows)
    at_one = np.log(exact_posterior(twin_of(family, rows.shape[1]), rows, 1.0))
    weight = stats.gamma(SHAPE, scale=1.0 / RATE).logpdf(_GRID) + np.log(np.gradient(_GRID))
    weight += gammaln(_GRID) - gammaln(_GRID + n_obs)
    joint = weight[:, None] + np.log(_GRID)[:, None] * n_clusters_of(n_obs) + at_one
    return joint - logsumexp(joint)


def exact_parts(
    family: str, rows: np.ndarray, reference: np.ndarray, row: np.ndarray
) -> np.ndarray:
    """Density of a row, the part of a new cluster, and that of each reference cluster, (2 + R,)."""
    present = np.flatnonzero(~np.isnan(row))
    twin = twin_of(family, rows.shape[1])
    if len(present) < len(row):
        twin = twin.restricted(present)
    seen, row = rows[:, present], row[present]
    n_obs, names = len(rows), np.unique(reference)
    partitions = enumerate_partitions(n_obs)
    predictive: dict[bytes, float] = {}
    members = np.zeros((len(partitions), len(names)))
    for p, labels in enumerate(partitions):
        for k in range(labels.max() + 1):
            block = labels == k
            key = block.tobytes()
            if key not in predictive:
                predictive[key] = float(np.exp(twin.log_predictive(row, seen[block])))
            members[p] += [(reference[block] == r).sum() * predictive[key] for r in names]
    alone = float(np.exp(twin.log_marginal(row[None])))
    law = np.exp(log_joint(family, rows))
    shared = ((1 / (_GRID + n_obs)) @ law) @ members
    new = (_GRID / (_GRID + n_obs)) @ law.sum(1) * alone
    return np.array([shared.sum() + new, new, *shared])


@cache
def sampled(family: str) -> tuple[pm.Model, xr.DataTree]:
    rows, _ = rows_and_reference(family)
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        observed = rows[:, 0] if family == "Normal" else rows
        dps.DPMixture("x", alpha, component_of(family, rows.shape[1]), observed=observed)
        idata = pm.sample(
            draws=2500, tune=300, chains=4, cores=1, random_seed=5, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    return model, idata


def parts_of_draws(
    family: str, model: pm.Model, idata: xr.DataTree, monkeypatch: pytest.MonkeyPatch
) -> tuple[xr.Dataset, np.ndarray]:
    """The prediction, and the parts it averages: (row, chain, draw, 2 + R)."""
    _, reference = rows_and_reference(family)
    new = NEW[family][:, 0] if family == "Normal" else NEW[family]
    return predicted_parts(idata, new, model, reference, monkeypatch)


@pytest.mark.parametrize(
    "family",
    [
        "Normal",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("MvNormal", "Categorical")),
    ],
)
def test_prediction_is_exact(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, reference = rows_and_reference(family)
    model, idata = sampled(family)
    found, parts = parts_of_draws(family, model, idata, monkeypatch)
    for i, row in enumerate(NEW[family]):
        exact = exact_parts(family, rows, reference, row)
        assert mean_test(parts[i], exact) > LEVEL
        # What is returned are the logarithm and the shares of these averages.
        mean = parts[i].mean((0, 1))
        at = found.isel(new_row=i)
        assert float(at["log_predictive_density"]) == pytest.approx(np.log(mean[0]))
        assert float(at["new_cluster_probability"]) == pytest.approx(mean[1] / mean[0])
        shares = mean[2:] / mean[2:].sum() * (1 - mean[1] / mean[0])
        np.testing.assert_allclose(at["membership_probability"], shares, rtol=1e-10)
        # These have mean 0 if the shares are right, whatever the density is.
        against = parts[i][..., 2:] * exact[0] - parts[i][..., :1] * exact[2:]
        assert mean_test(against, np.zeros(len(shares))) > LEVEL


@pytest.mark.control
def test_occupied_clusters_alone_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*arguments: Any) -> Any:
        for draw in draws_of(*arguments):
            yield draw._replace(weights=draw.weights / draw.weights.sum(), remainder=0.0)

    monkeypatch.setattr(predict_module, "draws_of", closed)
    rows, reference = rows_and_reference("Normal")
    model, idata = sampled("Normal")
    _, parts = parts_of_draws("Normal", model, idata, monkeypatch)
    # Far from all observations what is not yet seen is most of the density.
    exact = [exact_parts("Normal", rows, reference, row) for row in NEW["Normal"]]
    assert mean_test(parts[2][..., :1], exact[2][:1]) < LEVEL
    assert mean_test(parts[0][..., 2:], exact[0][2:]) < LEVEL


@pytest.mark.control
def test_members_of_another_draw_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels that were redrawn, but not for the atoms they are used with."""
    right = members.redraw

    def shifted(*arguments: Any) -> Any:
        redrawn = right(*arguments)
        return redrawn._replace(labels=np.roll(redrawn.labels, 1))

    monkeypatch.setattr(members, "redraw", shifted)
    rows, reference = rows_and_reference("Normal")
    model, idata = sampled("Normal")
    _, parts = parts_of_draws("Normal", model, idata, monkeypatch)
    exact = exact_parts("Normal", rows, reference, NEW["Normal"][1])
    assert mean_test(parts[1][..., 2:], exact[2:]) < LEVEL
