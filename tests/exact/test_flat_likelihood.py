"""With a flat likelihood every move must reproduce the Chinese restaurant process."""

import numpy as np
import pytest

from pymc_dpsplit import sampler
from tests.support.controls import CONTROLS
from tests.support.flat import flat_target
from tests.support.moves import MOVES, PUBLISHED, Move
from tests.support.partitions import crp_n_clusters
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL, count_test

N_OBS = 30
ALPHAS = (0.1, 1.0, 5.0)
_QUICK = (("collapsed", 1.0),)


def n_clusters_draws(
    move: Move, alpha: float, n_draws: int, rng: np.random.Generator, n_chains: int = 10
) -> np.ndarray:
    """Numbers of clusters (chains, draws), each chain started from the prior."""
    target = flat_target(N_OBS, alpha)
    draws = np.empty((n_chains, n_draws), np.int64)
    for chain in range(n_chains):
        state = sampler.resume(target, crp_labels(alpha, rng))
        for draw in range(n_draws):
            state = move(target, state, rng)
            draws[chain, draw] = len(state.stats)
    return draws


def crp_labels(alpha: float, rng: np.random.Generator) -> np.ndarray:
    """Labels of one partition of N_OBS from the Chinese restaurant process."""
    sizes: list[float] = []
    labels = np.empty(N_OBS, np.int32)
    for i in range(N_OBS):
        weights = np.array([*sizes, alpha])
        k = int(rng.choice(len(weights), p=weights / weights.sum()))
        if k == len(sizes):
            sizes.append(0.0)
        sizes[k] += 1.0
        labels[i] = k
    return labels


def p_value(move: Move, alpha: float, n_draws: int, rng: np.random.Generator) -> float:
    """P-value of the law of K against the exact one."""
    return count_test(n_clusters_draws(move, alpha, n_draws, rng), crp_n_clusters(alpha, N_OBS))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "alpha"),
    slow_unless(_QUICK.__contains__, [(name, alpha) for name in MOVES for alpha in ALPHAS]),
)
def test_prior_is_recovered(name: str, alpha: float, rng: np.random.Generator) -> None:
    assert p_value(MOVES[name], alpha, 2000, rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize(
    "name",
    slow_unless(
        "doubled concentration".__eq__, ["emptying sweep", "shifted slice", "doubled concentration"]
    ),
)
def test_broken_moves_are_caught(name: str, rng: np.random.Generator) -> None:
    assert p_value(CONTROLS[name], 1.0, 2000, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_moves_of_another_process_are_caught(name: str, rng: np.random.Generator) -> None:
    draws = n_clusters_draws(MOVES[name], 1.5, 2000, rng)
    assert count_test(draws, crp_n_clusters(1.0, N_OBS)) < LEVEL
