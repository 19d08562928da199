"""What `describe_clusters` averages, against all partitions enumerated.

The draws are independent ones from the exact posterior, so that only what reads them is tested.
"""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.trace import completed_draws, members
from tests.support.exact_traces import exact_trace
from tests.support.families import component_of, dataset_of, twin_of
from tests.support.partitions import enumerate_partitions, exact_posterior
from tests.support.statistics import LEVEL, mean_test

ALPHA = 1.3
REFERENCE = np.array([4, 4, 9, 9, 4, 9])
ROWS = dataset_of("Normal", "overlapping", 1)[: len(REFERENCE)]


@cache
def sampled(n_kept: int | None = None) -> tuple[pm.Model, xr.DataTree]:
    with pm.Model() as model:
        dps.DPMixture("x", ALPHA, component_of("Normal", 1), observed=ROWS[:, 0])
    return model, exact_trace("Normal", ROWS, ALPHA, (8, 400), seed=3, n_kept=n_kept)


def exact_description() -> dict[str, np.ndarray]:
    """Posterior means: of mu by observations, weight and certainty (R,), and of membership."""
    twin, n_obs, names = twin_of("Normal", 1), len(ROWS), np.unique(REFERENCE)
    law, partitions = exact_posterior(twin, ROWS, ALPHA), enumerate_partitions(n_obs)
    mu = np.zeros(n_obs)
    membership = np.zeros((n_obs, len(names)))
    for p, labels in zip(law, partitions, strict=True):
        for k in range(labels.max() + 1):
            block = labels == k
            mu[block] += p * twin.posterior(ROWS[block])[0]
            membership[block] += p * np.array([(REFERENCE[block] == r).mean() for r in names])
    return {
        "mu": np.array([mu[r == REFERENCE].mean() for r in names]),
        "weight": np.array([(r == REFERENCE).sum() for r in names]) / (n_obs + ALPHA),
        "certainty": np.array([membership[r == REFERENCE, j].mean() for j, r in enumerate(names)]),
        "membership": membership,
    }


def exact_mu_of_clusters() -> np.ndarray:
    """Posterior means (R,) of mu of the block with the most observations in common."""
    twin, names = twin_of("Normal", 1), np.unique(REFERENCE)
    law, partitions = exact_posterior(twin, ROWS, ALPHA), enumerate_partitions(len(ROWS))
    found = np.zeros(len(names))
    for p, labels in zip(law, partitions, strict=True):
        blocks = [labels == k for k in range(labels.max() + 1)]
        means = np.array([twin.posterior(ROWS[block])[0] for block in blocks])
        for j, r in enumerate(names):
            common = np.array([(REFERENCE[block] == r).sum() for block in blocks])
            found[j] += p * means[common == common.max()].mean()
    return found


def describe(n_kept: int | None = None, parameters_of: str = "observations") -> Any:
    model, idata = sampled(n_kept)
    return dps.describe_clusters(
        idata,
        REFERENCE,
        model=model,
        parameters_of=parameters_of,
        num_samples=None,
        ci_prob=0.5,
        random_seed=2,
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_kept", [None, 1])
def test_description_is_exact(n_kept: int | None) -> None:
    # With one cluster recorded most draws are completed, given their labels.
    found, exact = describe(n_kept), exact_description()
    for key in ("mu", "weight", "certainty"):
        assert mean_test(found.draws[key].to_numpy(), exact[key]) > LEVEL
    # Six standard errors of 3200 independent draws of a share.
    np.testing.assert_allclose(found.membership, exact["membership"], atol=6 * 0.5 / 3200**0.5)
    np.testing.assert_allclose(found.membership.sum("x_reference_cluster"), 1.0)
    # The data are such that the partition is uncertain: a description of the modes alone is wrong.
    assert exact["membership"].max() < 0.95


@pytest.mark.slow
def test_parameters_of_clusters_are_exact() -> None:
    found, exact = describe(parameters_of="cluster").draws["mu"], exact_mu_of_clusters()
    assert mean_test(found.to_numpy(), exact) > LEVEL
    # Averages over observations are something else.
    assert mean_test(found.to_numpy(), exact_description()["mu"]) < LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize(
    ("wrong", "seen_in"), [(lambda of: np.roll(of, 1), "mu"), (np.zeros_like, "certainty")]
)
def test_parameters_of_other_rows_are_caught(
    wrong: Any, seen_in: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = members.redraw

    def damaged(*arguments: Any) -> Any:
        redrawn = right(*arguments)
        return redrawn._replace(labels=wrong(redrawn.labels))

    monkeypatch.setattr(members, "redraw", damaged)
    found, exact = describe().draws[seen_in], exact_description()[seen_in]
    assert mean_test(found.to_numpy(), exact) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_draws_completed_from_other_labels_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = completed_draws.labels_of

    def in_one_cluster(*arguments: Any) -> Any:
        return xr.zeros_like(right(*arguments))

    monkeypatch.setattr(completed_draws, "labels_of", in_one_cluster)
    monkeypatch.setattr(members, "labels_of", in_one_cluster)
    found, exact = describe(1).draws["mu"], exact_description()["mu"]
    assert mean_test(found.to_numpy(), exact) < LEVEL
