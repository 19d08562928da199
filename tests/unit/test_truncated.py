"""Truncated sticks: their law by listing all positions, and how a chain finds its positions."""

from itertools import product

import numba
import numpy as np
import pytest
from scipy.special import betaln, logsumexp

from pymc_dpsplit import sampler
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from pymc_dpsplit.samplers.sticks import positions_to_keep
from pymc_dpsplit.samplers.truncated import truncated_sweep, within_truncation
from tests.support.controls import altered
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.partitions import subset_log_marginals
from tests.support.statistics import LEVEL, partition_test

ALPHA, N_ATOMS = 2.0, 3
ROWS = dataset_of("Normal", "overlapping", 1)[:5]
TARGET = target_of(component_of("Normal", 1), ROWS, ALPHA)
# Every observation at every position.
POSITIONS = np.array(list(product(range(N_ATOMS), repeat=len(ROWS))))


def law_of_positions() -> np.ndarray:
    """Probability of every row of `POSITIONS`: sticks and parameters integrated out."""
    log_marginals = subset_log_marginals(twin_of("Normal", 1), ROWS)
    log_p = np.zeros(len(POSITIONS))
    for j in range(N_ATOMS):
        log_p += log_marginals[np.equal(POSITIONS, j) @ 2 ** np.arange(len(ROWS))]
        if j < N_ATOMS - 1:
            here, beyond = (np.equal(POSITIONS, j).sum(1), np.greater(POSITIONS, j).sum(1))
            log_p += betaln(1.0 + here, ALPHA + beyond) - betaln(1.0, ALPHA)
    return np.exp(log_p - logsumexp(log_p))


def p_value(sweep, n_chains: int, n_draws: int, rng: np.random.Generator) -> float:
    """P-value of the positions that chains visit which begin with exact draws."""
    law = law_of_positions()
    drawn = np.empty((n_chains, n_draws), np.int64)
    for chain, start in enumerate(rng.choice(len(law), n_chains, p=law)):
        positions, labels = np.unique(POSITIONS[start], return_inverse=True)
        labels, stats, _, _ = sampler.resume(TARGET, labels)
        for draw in range(n_draws):
            stats, positions = sweep(TARGET, labels, stats, positions, N_ATOMS, rng)
            drawn[chain, draw] = positions[labels] @ N_ATOMS ** np.arange(len(ROWS))[::-1]
    return partition_test(drawn, law)


def test_positions_keep_their_law(rng: np.random.Generator) -> None:
    assert p_value(truncated_sweep, 40, 30, rng) > LEVEL


@numba.njit
def _leave_open(log_weights, log_rest):
    pass


@pytest.mark.control
def test_last_stick_of_a_process_is_caught(rng: np.random.Generator) -> None:
    # The weights of the first T sticks of a process, over their sum.
    open_ended = altered(truncated_sweep, close_sticks=_leave_open)
    assert p_value(open_ended, 40, 30, rng) < LEVEL


def test_positions_beyond_the_last_atom_move_in_order(rng: np.random.Generator) -> None:
    labels, stats, _, _ = sampler.resume(TARGET, np.array([0, 1, 1, 2, 2]))
    for given, expected in (([0, 1, 2], [0, 1, 2]), ([9, 0, 4], [2, 0, 1]), ([7, 2, 3], [2, 0, 1])):
        own = labels.copy()
        found, moved = within_truncation(TARGET, own, stats, np.array(given), N_ATOMS, rng)
        np.testing.assert_array_equal(moved, expected)
        np.testing.assert_array_equal(own, labels)
        np.testing.assert_array_equal(found, stats)


def test_clusters_beyond_the_number_of_atoms_are_joined(rng: np.random.Generator) -> None:
    labels, stats, _, _ = sampler.resume(TARGET, np.arange(5))
    found, positions = within_truncation(
        TARGET, labels, stats, np.array([5, 0, 9, 1, 3]), N_ATOMS, rng
    )
    np.testing.assert_array_equal(labels, [2, 0, 2, 1, 2])
    np.testing.assert_array_equal(positions, [0, 1, 2])
    np.testing.assert_allclose(found, sampler.resume(TARGET, labels).stats)


def test_chain_keeps_its_positions(rng: np.random.Generator) -> None:
    settings = SAMPLERS["truncated"].settings({"truncation": N_ATOMS})
    schedule = sampler.Schedule(3, 0.0, np.empty(0, np.int64), settings=settings)
    state = sampler.resume(TARGET, np.arange(5))
    for _ in range(10):
        state, _ = sampler.advance("truncated", TARGET, state, rng, schedule)
        positions = state.of_clusters[:, 0].astype(np.int64)
        assert positions.max() < N_ATOMS
        np.testing.assert_array_equal(state.of_clusters, positions_to_keep(TARGET.law, positions))
        np.testing.assert_allclose(state.stats, sampler.resume(TARGET, state.labels).stats)
