"""Super-clusters: divergences, what is connected, and moves within a group."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.samplers.chang_fisher import restricted_sweep
from pymc_dpsplit.samplers.sub_clusters import BURNED_IN, STAGE, new_progress
from pymc_dpsplit.samplers.super_clusters import (
    choose_within_groups,
    connected,
    divergences,
    draw_super_clusters,
)
from tests.support.families import component_of, target_of
from tests.support.statistics import LEVEL

MEANS, SCALES, WEIGHTS = np.array([0.0, 1.0, 9.0]), np.array([1.0, 1.5, 1.0]), np.full(3, 1 / 3)


def exact_divergence(k: int, m: int) -> float:
    """J-divergence between two normal distributions."""
    ratio, gap = (SCALES[k] / SCALES[m]) ** 2, (MEANS[k] - MEANS[m]) ** 2
    by_variance = gap / SCALES[k] ** 2 + gap / SCALES[m] ** 2
    return 0.5 * (ratio + 1.0 / ratio - 2.0 + by_variance)


def test_divergences_are_those_of_the_densities(rng: np.random.Generator) -> None:
    which = rng.integers(0, 3, 20_000)
    rows = rng.normal(MEANS[which], SCALES[which])
    log_density = stats.norm.logpdf(rows, MEANS[:, None], SCALES[:, None])
    found = divergences(log_density, np.log(WEIGHTS))
    np.testing.assert_allclose(np.diag(found), 0.0)
    np.testing.assert_allclose(found, found.T)
    for k, m in ((0, 1), (0, 2), (1, 2)):
        assert found[k, m] == pytest.approx(exact_divergence(k, m), rel=0.05)


def test_a_cluster_without_weight_has_a_finite_divergence() -> None:
    log_density = np.array([[-1.0, -1.0], [-900.0, -800.0]])
    found = divergences(log_density, np.array([0.0, -50.0]))
    assert np.isfinite(found).all()
    assert found[0, 1] >= 0.0


def test_connected_clusters_are_one_group() -> None:
    for neighbours, expected in (
        ([0, 1, 2], [0, 1, 2]),
        ([1, 2, 0], [0, 0, 0]),
        ([3, 1, 1, 0, 4], [0, 1, 1, 0, 2]),
        ([4, 3, 2, 3, 3], [0, 0, 1, 0, 0]),
    ):
        np.testing.assert_array_equal(connected(np.array(neighbours)), expected)


@pytest.fixture(scope="module")
def example():
    """Two overlapping groups of rows, and one apart, with the parameters of their clusters."""
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(0, 1, 40), rng.normal(0.5, 1, 40), rng.normal(30, 1, 40)])
    target = target_of(component_of("Normal", 1), rows[:, None], 1.0)
    state = sampler.resume(target, np.repeat([0, 1, 2], 40))
    return target, state, sampler.measure(target, state, rng)


def test_similar_clusters_are_grouped_and_others_are_not(example, rng) -> None:
    target, _, measure = example
    together = np.zeros((3, 3))
    for _ in range(60):
        group = draw_super_clusters(
            target.prior, target.data, np.log(measure.weights), measure.params, rng
        )
        together += group[:, None] == group
    apart = int(measure.params[:, 1].argmax())
    near = [k for k in range(3) if k != apart]
    assert together[near[0], near[1]] > 5
    assert together[apart, near[0]] == together[apart, near[1]] == 0


def test_observations_stay_in_their_super_cluster(example, rng) -> None:
    target, _, measure = example
    log_weights, group = np.log(measure.weights), np.array([0, 1, 0], np.int32)
    before, n_draws = np.arange(120, dtype=np.int32) % 3, 60
    unpacked = component_of("Normal", 1).unpack(measure.params, target.prior.shift)
    log_mass = log_weights + stats.norm.logpdf(target.data, unpacked["mu"], unpacked["sigma"])
    log_mass[group != group[before][:, None]] = -np.inf
    exact, found = softmax(log_mass, axis=1), np.zeros((120, 3))
    for _ in range(n_draws):
        labels = before.copy()
        key = np.uint64(draw_key(rng))
        choose_within_groups(
            target.prior, target.data, labels, key, log_weights, measure.params, group
        )
        np.testing.assert_array_equal(group[labels], group[before])
        found[np.arange(120), labels] += 1
    uncertain = (exact > 0.05) & (exact < 0.95)
    scatter = np.sqrt(n_draws * exact[uncertain] * (1.0 - exact[uncertain]))
    assert uncertain.any()
    deviation = (found[uncertain] - n_draws * exact[uncertain]) / scatter
    assert stats.norm.sf(np.abs(deviation).max()) * 2 * len(deviation) > LEVEL


def test_sweep_without_burn_in_opens_all_sub_clusters(example, rng) -> None:
    target, state, _ = example
    for has_groups in (False, True):
        labels, side = state.labels.copy(), np.arange(120, dtype=np.int8) % 2
        found, progress = restricted_sweep(
            target, labels, state.stats, side, new_progress(3), rng, has_groups, False
        )
        assert (progress[:, STAGE] == BURNED_IN).all()
        np.testing.assert_allclose(found, sampler.resume(target, labels).stats)
    assert math.isfinite(progress[0, 1])
