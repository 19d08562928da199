"""`describe_clusters` and `predict` given labels that a trace keeps, against all partitions.

The draws are independent ones from the exact posterior, so that only what reads them is tested.
With a discount of 0.6 labels cannot be redrawn, as they would need too many atoms.
"""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.posterior.trace.members import Members
from tests.support.exact_traces import trace_of_partitions
from tests.support.families import component_of, dataset_of, twin_of
from tests.support.partition_laws import posterior_under, seated
from tests.support.partitions import enumerate_partitions
from tests.support.predicted_parts import predicted_parts
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

REFERENCE = np.array([4, 4, 9, 9, 4, 9])
ROWS, NEW = dataset_of("Normal", "overlapping", 1)[: len(REFERENCE)], np.array([0.2, 1.1])
N, NAMES, TWIN = len(ROWS), np.unique(REFERENCE), twin_of("Normal", 1)
SHAPE = 8, 400
STRENGTH = 0.5
DISCOUNTS = [0.0, 0.6]


@cache
def sampled(discount: float, n_kept: int | None = N) -> tuple[pm.Model, xr.DataTree]:
    with pm.Model() as model:
        component = component_of("Normal", 1)
        dps.DPMixture("x", STRENGTH, component, discount=discount, observed=ROWS[:, 0])
    rng = np.random.default_rng(3)
    posterior = posterior_under(seated(STRENGTH, discount), TWIN, ROWS)
    chosen = rng.choice(len(posterior), size=SHAPE, p=posterior)
    partitions = enumerate_partitions(N)[chosen].astype(int)
    # The numbers of labels mean nothing.
    numbered = partitions.max(-1, keepdims=True) - partitions
    law = PartitionLaw(discount, STRENGTH)
    return model, trace_of_partitions("Normal", ROWS, numbered, law, rng, n_kept)


def exact(discount: float) -> dict[str, np.ndarray]:
    """Means of what is read: of reference clusters (R,), members (N, R), new rows (M, 1 + R)."""
    law = posterior_under(seated(STRENGTH, discount), TWIN, ROWS)
    mu, membership = np.zeros(N), np.zeros((N, len(NAMES)))
    weight, joint = np.zeros(len(NAMES)), np.zeros((len(NEW), 1 + len(NAMES)))
    alone = np.exp([TWIN.log_marginal(row[None]) for row in NEW[:, None]])
    for p, labels in zip(law, enumerate_partitions(N), strict=True):
        n_clusters = labels.max() + 1
        joint[:, 0] += p * (STRENGTH + discount * n_clusters) / (N + STRENGTH) * alone
        for k in range(n_clusters):
            block = labels == k
            shares = np.array([(REFERENCE[block] == r).mean() for r in NAMES])
            expected = p * (block.sum() - discount) / (N + STRENGTH) * shares
            mu[block] += p * TWIN.posterior(ROWS[block])[0]
            membership[block] += p * shares
            weight += expected
            log_density = [TWIN.log_predictive(row, ROWS[block]) for row in NEW[:, None]]
            joint[:, 1:] += np.exp(log_density)[:, None] * expected
    of_observations = [mu, *membership.T]
    own = [[of[r == REFERENCE].mean() for r in NAMES] for of in of_observations]
    return {
        "mu": np.array(own[0]),
        "weight": weight,
        "certainty": np.diag(own[1:]),
        "joint": joint,
    }


def p_of_description(discount: float) -> dict[str, float]:
    """P-values of the means of each quantity of reference clusters."""
    model, idata = sampled(discount)
    found = dps.describe_clusters(
        idata, REFERENCE, model=model, parameters_of="observations", num_samples=None,
        random_seed=2,
    )  # fmt: skip
    truth = exact(discount)
    return {
        key: combine(
            *stats.ttest_1samp(found.draws[key].stack(each=["chain", "draw"]).T, truth[key]).pvalue
        )
        for key in ("mu", "weight", "certainty")
    }


def p_of_prediction(discount: float, monkeypatch: pytest.MonkeyPatch) -> float:
    """P-value of the joint density of new rows and of the cluster that each joins."""
    model, idata = sampled(discount)
    _, parts = predicted_parts(idata, NEW, model, REFERENCE, monkeypatch)
    joint = parts[..., 1:].reshape(len(NEW), -1, 1 + len(NAMES))
    truth = exact(discount)["joint"][:, None]
    return combine(*stats.ttest_1samp(joint, truth, axis=1).pvalue.ravel())


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_description_is_exact(discount: float) -> None:
    assert min(p_of_description(discount).values()) > LEVEL


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_prediction_is_exact(discount: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert p_of_prediction(discount, monkeypatch) > LEVEL


@pytest.fixture
def labels_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept labels are taken for numbers of recorded clusters, which are in order of size."""

    def as_recorded(self: Any, place: Any, draw: Any, rng: Any) -> Any:
        return draw, self.partitions.to_numpy()[place]

    monkeypatch.setattr(Members, "at", as_recorded)


@pytest.mark.control
@pytest.mark.usefixtures("labels_as_numbers")
@pytest.mark.parametrize("discount", DISCOUNTS)
def test_labels_as_numbers_of_recorded_clusters_are_caught(
    discount: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert p_of_description(discount)["mu"] < LEVEL
    assert p_of_prediction(discount, monkeypatch) < LEVEL


def test_a_large_discount_needs_kept_labels() -> None:
    model, idata = sampled(0.6, n_kept=None)
    with pytest.raises(ValueError, match=r'sample with dpsplit=\{"keep_labels": True\}'):
        dps.describe_clusters(idata, REFERENCE, model=model, random_seed=1)
    with pytest.raises(ValueError, match=r'sample with dpsplit=\{"keep_labels": True\}'):
        dps.predict(idata, NEW, model=model, partition=REFERENCE, random_seed=1)
