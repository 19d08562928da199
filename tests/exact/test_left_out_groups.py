"""`loo_groups` of rows in groups, against all partitions and tables enumerated.

The draws are independent ones from the exact posterior.  With the given labels among the particles,
the mean of 1 / estimate is exactly 1 / density, for any number of them.
"""

from functools import cache

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical import seat_particles
from pymc_dpsplit.hierarchical_model.lookup import find_hierarchical
from pymc_dpsplit.kernels.jit import COMPILES
from pymc_dpsplit.posterior.prediction import left_out_groups
from tests.reference.franchise import states_of_groups
from tests.support.exact_traces import exact_grouped_trace
from tests.support.families import as_observed, component_of, twin_of
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

ALPHA, GAMMA = 0.8, 1.2
GROUPS = np.array([0, 1, 0, 2, 1, 0])
N_GROUPS = 3
ROWS = {
    "Normal": np.array([0.1, 0.4, -0.3, 0.9, 3.0, 2.5])[:, None],
    "Poisson": np.array([0.0, 1.0, 2.0, 0.0, 8.0, 5.0])[:, None],
}
# Draws of the trace; kernels take a hundred times as long as plain Python.
SHAPE = (4, 1000) if COMPILES else (4, 150)


@cache
def sampled(family: str) -> tuple[pm.Model, xr.DataTree]:
    rows = ROWS[family]
    with pm.Model() as model:
        observed = as_observed(family, rows)
        component = component_of(family, 1)
        dps.HDPMixture("x", ALPHA, GAMMA, component, groups=GROUPS, observed=observed)
    return model, exact_grouped_trace(family, rows, GROUPS, ALPHA, GAMMA, SHAPE, seed=3)


def log_total(family: str, kept: np.ndarray) -> float:
    """Log marginal density of some of the rows."""
    rows, twin = ROWS[family][kept], twin_of(family, 1)

    def log_likelihood(labels: np.ndarray) -> float:
        return sum(twin.log_marginal(rows[labels == k]) for k in range(labels.max() + 1))

    groups = np.unique(GROUPS[kept], return_inverse=True)[1]
    states = states_of_groups(groups, log_likelihood, ALPHA, GAMMA)
    return float(logsumexp([log_joint for *_, log_joint in states]))


@cache
def exact(family: str) -> np.ndarray:
    """Log density of the rows of each group given those of the others."""
    n, every = len(GROUPS), np.arange(len(GROUPS))
    others = [log_total(family, every[g != GROUPS]) for g in range(N_GROUPS)]
    return log_total(family, np.arange(n)) - np.array(others)


def p_value(family: str, n_particles: int) -> float:
    """P-value that the mean of 1 / estimate, relative to what it should be, is 1."""
    model, idata = sampled(family)
    rng, grouped = np.random.default_rng(5), find_hierarchical(model)["x"]
    found = left_out_groups.left_out_groups(idata, model, grouped, None, rng, n_particles)
    ratios = np.exp(exact(family) - found.to_numpy().reshape(-1, N_GROUPS))
    return combine(*stats.ttest_1samp(ratios, 1.0).pvalue)


@pytest.mark.parametrize("n_particles", [1, 2, 5])
@pytest.mark.parametrize("family", ROWS)
def test_mean_of_inverse_densities_is_exact(family, n_particles):
    assert p_value(family, n_particles) > LEVEL


@pytest.mark.parametrize("family", ROWS)
def test_resampling_at_every_row_is_exact(family, monkeypatch):
    if COMPILES:
        pytest.skip("compiled kernels hold their constants")
    monkeypatch.setattr(seat_particles, "_LEAST_SHARE", 2.0)
    assert p_value(family, 4) > LEVEL


@pytest.mark.control
def test_clusters_of_the_group_alone_that_stay_known_are_caught(monkeypatch):
    monkeypatch.setattr(left_out_groups, "_clusters_of_others", lambda labels, _: np.unique(labels))
    assert p_value("Normal", 2) < LEVEL


@pytest.mark.control
def test_labels_that_are_not_those_of_the_draw_are_caught(monkeypatch):
    def in_one_new_cluster(draw, labels, known):
        given, log_rest = honest(draw, labels, known)
        weights, log_rests = np.full(1, np.exp(log_rest) / 2.0), np.full(1, log_rest - np.log(2.0))
        labels = np.full(len(given.labels), len(known))
        return given._replace(labels=labels, weights=weights, log_rests=log_rests), log_rest

    honest = left_out_groups._given_seats
    monkeypatch.setattr(left_out_groups, "_given_seats", in_one_new_cluster)
    assert p_value("Normal", 1) < LEVEL


def test_estimate_is_that_of_leaving_groups_out():
    model, idata = sampled("Normal")
    found = dps.loo_groups(idata, model=model, random_seed=1)
    assert found.n_data_points == N_GROUPS
    assert found.elpd_i.to_numpy() == pytest.approx(exact("Normal"), abs=0.3)
    again = dps.loo_groups(idata, model=model, random_seed=1, num_samples=400)
    assert again.n_samples == 400
