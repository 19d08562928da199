"""Over-relaxed draws: the law they keep, and which atoms of a sweep they follow."""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.overrelaxation import overrelax_log_gamma, overrelax_normal
from pymc_dpsplit.moves.measure import Atoms, draw_measure, no_atoms, redraw_measure
from tests.support.families import component_of, target_of
from tests.support.statistics import LEVEL, combine

N_DRAWS = 20_000
ALPHA = 1.7


@jitted
def normals_after(x, rng):
    out = np.empty_like(x)
    for s in range(x.shape[0]):
        out[s] = overrelax_normal(rng, x[s])
    return out


@jitted
def log_gammas_after(shape, y, rng):
    out = np.empty_like(y)
    for s in range(y.shape[0]):
        out[s] = overrelax_log_gamma(rng, shape, y[s])
    return out


@jitted
def proposals_after(shape, y, rng):
    """What `overrelax_log_gamma` proposes, all of it accepted."""
    out = np.empty_like(y)
    mean, root = math.log(shape), math.sqrt(shape)
    for s in range(y.shape[0]):
        out[s] = mean + overrelax_normal(rng, (y[s] - mean) * root) / root
    return out


def gamma_p_value(shape: float, y: np.ndarray) -> float:
    return float(stats.kstest(np.exp(y), stats.gamma(shape).cdf).pvalue)


def test_normal_variables_stay_normal(rng: np.random.Generator) -> None:
    first = rng.standard_normal(N_DRAWS)
    second = normals_after(first, rng)
    assert stats.kstest(second, "norm").pvalue > LEVEL
    assert stats.pearsonr(first, second).statistic == pytest.approx(-0.9, abs=0.02)


@pytest.mark.parametrize("shape", [0.3, 3.9, 4.0, 7.5, 60.0, 1e6])
def test_gamma_variables_stay_gamma(shape: float, rng: np.random.Generator) -> None:
    y = np.log(rng.standard_gamma(shape, N_DRAWS))
    after = log_gammas_after(shape, y, rng)
    assert gamma_p_value(shape, after) > LEVEL
    # Small shapes are drawn anew, large ones are on the other side of the mean.
    correlation = stats.pearsonr(y, after).statistic
    assert correlation < (-0.6 if shape > 50.0 else 0.05)
    assert gamma_p_value(shape, log_gammas_after(shape, after, rng)) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("shape", [4.0, 7.5])
def test_accepting_every_proposal_is_caught(shape: float, rng: np.random.Generator) -> None:
    y = np.log(rng.standard_gamma(shape, N_DRAWS))
    assert gamma_p_value(shape, proposals_after(shape, y, rng)) < LEVEL


# --- which atoms are followed -------------------------------------------------------------


@pytest.fixture
def three_clusters(rng: np.random.Generator) -> tuple[sampler.Target, np.ndarray]:
    """A target with statistics of clusters of 5, 12 and 40 observations."""
    labels = np.repeat([0, 1, 2], [5, 12, 40])
    rows = rng.standard_normal((57, 2)) + 3.0 * labels[:, None]
    target = target_of(component_of("MvNormal", 2), rows, ALPHA)
    return target, sampler.resume(target, labels).stats


@jitted
def measures_after(target, statistics, n_draws, changed, rng):
    """Weights, remainder last, and first parameters of measures and of those that follow them."""
    n_clusters = statistics.shape[0]
    weights = np.empty((2, n_draws, n_clusters + 1))
    firsts = np.empty((2, n_draws, n_clusters))
    for s in range(n_draws):
        log_weights, log_rest, params = draw_measure(target, statistics, rng)
        atoms = Atoms(statistics, log_weights, params)
        after = redraw_measure(target, changed, rng, atoms)
        for j, (log_w, log_r, theta) in enumerate(((log_weights, log_rest, params), after)):
            weights[j, s, :n_clusters] = np.exp(log_w)
            weights[j, s, n_clusters] = math.exp(log_r)
            firsts[j, s] = theta[:, 1]
    return weights, firsts


def dirichlet_p_value(shares: np.ndarray, masses: np.ndarray) -> float:
    laws = (stats.beta(mass, masses.sum() - mass) for mass in masses)
    return combine(
        *(stats.kstest(x, law.cdf).pvalue for x, law in zip(shares.T, laws, strict=True))
    )


@pytest.mark.slow
@pytest.mark.compiled
def test_weights_stay_dirichlet(
    three_clusters: tuple[sampler.Target, np.ndarray], rng: np.random.Generator
) -> None:
    target, statistics = three_clusters
    weights, firsts = measures_after(target, statistics, N_DRAWS, statistics, rng)
    masses = np.append(statistics[:, 0], ALPHA)
    assert dirichlet_p_value(weights[1], masses) > LEVEL
    assert dirichlet_p_value(weights[1], masses + np.array([0.5, 0.0, 0.0, 0.0])) < LEVEL  # control
    # The fewer observations, the more often a proposal for the spread is rejected.
    for k, most in enumerate((-0.2, -0.5, -0.7)):
        assert stats.pearsonr(*firsts[:, :, k]).statistic < most
    assert stats.pearsonr(weights[0, :, 2], weights[1, :, 2]).statistic < -0.3


def test_changed_clusters_are_drawn_anew(
    three_clusters: tuple[sampler.Target, np.ndarray], rng: np.random.Generator
) -> None:
    target, statistics = three_clusters
    changed = statistics.copy()
    changed[1, 2] += 0.1
    _, firsts = measures_after(target, statistics, 4000, changed, rng)
    correlations = [stats.pearsonr(*firsts[:, :, k]).statistic for k in range(3)]
    assert correlations[0] < -0.2
    assert correlations[2] < -0.7
    assert stats.pearsonr(*firsts[:, :, 1]).pvalue > LEVEL


def test_without_atoms_all_are_drawn_anew(
    three_clusters: tuple[sampler.Target, np.ndarray],
) -> None:
    target, statistics = three_clusters
    fresh = draw_measure(target, statistics, np.random.default_rng(3))
    rng = np.random.default_rng(3)
    redrawn = redraw_measure(target, statistics, rng, no_atoms(target.prior))
    for ours, theirs in zip(fresh, redrawn, strict=True):
        np.testing.assert_array_equal(ours, theirs)
