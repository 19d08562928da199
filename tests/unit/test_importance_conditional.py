"""Importance conditional sampling: the values that stand for the remainder."""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, finite_mixture
from pymc_dpsplit.samplers.importance_conditional import importance_sweep, with_values
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.partitions import crp_n_clusters
from tests.support.statistics import LEVEL

ROWS = dataset_of("Normal", "overlapping", 1)
TARGET = target_of(component_of("Normal", 1), ROWS, 1.7)
STATE = sampler.resume(TARGET, np.array([0, 0, 1, 0, 1, 1, 0, 0], np.int32))
LOG_WEIGHTS, LOG_REST = np.log([0.5, 0.3]), math.log(0.2)
PARAMS = sampler.measure(TARGET, STATE, np.random.default_rng(0)).params
N_DRAWS = 2000


def drawn(
    law: PartitionLaw, n_values: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Weights and parameters with the values of a sample."""
    target = TARGET._replace(law=law)
    return with_values(target, LOG_WEIGHTS, LOG_REST, PARAMS, n_values, rng)


def test_values_follow_the_urn_of_the_remainder(rng: np.random.Generator) -> None:
    numbers, mu = np.zeros(7), []
    for _ in range(N_DRAWS):
        log_weights, params = drawn(dirichlet_process(1.7), 6, rng)
        weights = np.exp(log_weights)
        np.testing.assert_allclose(weights[:2], [0.5, 0.3])
        assert weights.sum() == pytest.approx(1.0, rel=1e-12)
        counts = weights[2:] / 0.2 * 6.0
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
        numbers[len(counts)] += 1
        unpacked = component_of("Normal", 1).unpack(params[2:], TARGET.prior.shift)
        mu.append(unpacked["mu"][0])
    # The remainder of a Dirichlet process is one with the same concentration.
    exact = N_DRAWS * crp_n_clusters(1.7, 6)
    assert stats.chisquare(numbers[1:], exact[1:]).pvalue > LEVEL
    wrong = N_DRAWS * crp_n_clusters(2.4, 6)
    assert stats.chisquare(numbers[1:], wrong[1:]).pvalue < LEVEL
    base = twin_of("Normal", 1).draw_parameters(rng, ROWS[:0], N_DRAWS)["mu"]
    assert stats.ks_2samp(np.array(mu), base).pvalue > LEVEL


def test_values_follow_the_urn_under_a_discount(rng: np.random.Generator) -> None:
    # With 2 clusters the strength within the remainder is 1 + 2 * 0.3: two values differ with
    # probability (1.6 + 0.3) / (1.6 + 1).
    n_two = sum(len(drawn(PartitionLaw(0.3, 1.0), 2, rng)[0]) == 4 for _ in range(N_DRAWS))
    assert stats.binomtest(n_two, N_DRAWS, 1.9 / 2.6).pvalue > LEVEL


def test_full_finite_mixture_has_no_further_values(rng: np.random.Generator) -> None:
    target = TARGET._replace(law=finite_mixture(0.5, 2))
    found, _ = with_values(target, LOG_WEIGHTS, -np.inf, PARAMS, 6, rng)
    np.testing.assert_array_equal(found, LOG_WEIGHTS)
    for _ in range(30):
        labels = STATE.labels.copy()
        assert len(importance_sweep(target, labels, STATE.stats, rng)) <= 2


def test_sweep_keeps_its_books(rng: np.random.Generator) -> None:
    state, numbers = STATE, set()
    for _ in range(60):
        labels = state.labels.copy()
        found = importance_sweep(TARGET, labels, state.stats, rng)
        np.testing.assert_array_equal(found, sampler.resume(TARGET, labels).stats)
        state = sampler.ChainState(labels, found)
        numbers.add(len(found))
    assert len(numbers) > 2
