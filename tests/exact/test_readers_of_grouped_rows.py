"""What reads traces of rows in groups, against all partitions and tables enumerated.

The draws are independent ones from the exact posterior, so that only what reads them is tested.
"""

from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.description.group_weights import log_dirichlet
from pymc_dpsplit.posterior.prediction import in_groups, loo
from pymc_dpsplit.posterior.trace.members import mixture_of_either_kind
from tests.reference.franchise import counts_of, states_of_groups
from tests.support.exact_traces import exact_grouped_trace
from tests.support.families import as_observed, component_of, twin_of
from tests.support.partitions import enumerate_partitions
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

ALPHA, GAMMA = 0.8, 1.2
GROUPS = np.array([0, 1, 0, 1, 1])
ROWS = {
    "Normal": np.array([0.1, 0.4, -0.3, 0.9, 5.0])[:, None],
    "Poisson": np.array([0.0, 1.0, 2.0, 0.0, 11.0])[:, None],
}


@cache
def sampled(family: str) -> tuple[pm.Model, xr.DataTree]:
    rows = ROWS[family]
    with pm.Model() as model:
        component = component_of(family, 1)
        observed = as_observed(family, rows)
        dps.HDPMixture("x", ALPHA, GAMMA, component, groups=GROUPS, observed=observed)
    return model, exact_grouped_trace(family, rows, GROUPS, ALPHA, GAMMA, (4, 500), seed=3)


def states(family: str, kept: np.ndarray) -> list[tuple[int, np.ndarray, float]]:
    """Partitions and tables of some of the rows, with the log of their joint law."""
    rows, twin = ROWS[family][kept], twin_of(family, 1)

    def log_likelihood(labels: np.ndarray) -> float:
        return sum(twin.log_marginal(rows[labels == k]) for k in range(labels.max() + 1))

    return list(states_of_groups(GROUPS[kept], log_likelihood, ALPHA, GAMMA))


def log_total(family: str, kept: np.ndarray) -> float:
    return float(logsumexp([log_joint for *_, log_joint in states(family, kept)]))


def p_value_of_loo(family: str) -> float:
    """P-value of the mean of 1 / p, relative to what it should be, of each row."""
    model, idata = sampled(family)
    n, mixture = len(GROUPS), mixture_of_either_kind(model, "x")
    others = [log_total(family, np.delete(np.arange(n), i)) for i in range(n)]
    exact = log_total(family, np.arange(n)) - np.array(others)
    found = loo.left_out_likelihood(idata, model, mixture, None, np.random.default_rng(5))
    ratios = np.exp(exact - found.to_numpy().reshape(-1, n))
    return combine(*stats.ttest_1samp(ratios, 1.0).pvalue)


@pytest.mark.parametrize("family", ROWS)
def test_left_out_likelihood_is_exact(family):
    assert p_value_of_loo(family) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("family", ROWS)
def test_row_that_counts_itself_is_caught(family, monkeypatch):
    monkeypatch.setattr(in_groups, "others_of", lambda counts, *_: counts)
    assert p_value_of_loo(family) < LEVEL


def p_value_of_weights(family: str) -> float:
    """P-value of the mean weights of two reference clusters in both groups, and of new ones."""
    _, idata = sampled(family)
    reference = np.array([0, 0, 0, 0, 1])
    found = dps.group_weights(idata, reference, num_samples=None, random_seed=1)
    every = enumerate_partitions(len(GROUPS)).astype(int)
    total, mean = 0.0, np.zeros((2, 3))
    for i, tables, log_joint in states(family, np.arange(len(GROUPS))):
        labels, weights = every[i], tables / (tables.sum() + GAMMA)
        counts = counts_of(labels, GROUPS)
        sizes = counts.sum(axis=1, keepdims=True)
        of_clusters = (counts + ALPHA * weights) / (sizes + ALPHA)
        inside = np.array([np.bincount(reference[labels == k], minlength=2)
                           for k in range(len(tables))])  # fmt: skip
        of_reference = of_clusters @ (inside / inside.sum(axis=1, keepdims=True))
        rest = 1.0 - of_clusters.sum(axis=1, keepdims=True)
        mean += np.exp(log_joint) * np.hstack([of_reference, rest])
        total += np.exp(log_joint)
    stacked = np.concatenate(
        [found["weight"].to_numpy(), found["new_weight"].to_numpy()[:, None]], 1
    )
    z = (stacked[..., 0] - mean / total) / (stacked[..., 1] / np.sqrt(2000))
    return combine(*(2 * stats.norm.sf(np.abs(z))).ravel())


@pytest.mark.parametrize("family", ROWS)
def test_weights_of_groups_are_exact(family):
    assert p_value_of_weights(family) > LEVEL


@pytest.mark.control
def test_remainder_of_half_its_weight_is_caught(monkeypatch):
    def with_less(shapes, rng):
        shapes[:, -1] *= 0.5
        return log_dirichlet(shapes, rng)

    monkeypatch.setattr("pymc_dpsplit.posterior.description.group_weights.log_dirichlet", with_less)
    assert p_value_of_weights("Normal") < LEVEL


def test_dirichlet_law_with_small_shapes():
    shapes = np.array([[0.02, 1.5, 3.0], [1e-300, 0.4, 0.1]])
    rng = np.random.default_rng(4)
    drawn = np.exp([log_dirichlet(shapes, rng) for _ in range(20_000)])
    sums = shapes.sum(axis=1, keepdims=True)
    mean = shapes / sums
    variance = mean * (1.0 - mean) / (sums + 1.0)
    assert np.allclose(drawn.sum(axis=-1), 1.0)
    assert np.allclose(drawn.mean(axis=0), mean, atol=0.02)
    assert np.allclose(drawn.var(axis=0), variance, atol=0.01)
