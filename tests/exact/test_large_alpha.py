"""Concentrations beyond the number of observations: sweeps that break no sticks."""

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import breaks_sticks, dirichlet_process
from tests.reference.families import DiagNormal
from tests.support.families import dataset_of, target_of
from tests.support.moves import MOVES
from tests.support.partitions import enumerate_partitions, exact_posterior, partition_index
from tests.support.statistics import LEVEL, partition_test

pytestmark = pytest.mark.slow

_HYPERPARAMETERS = {"mu0": np.zeros(2), "kappa0": 0.1, "a0": 2.0, "b0": 1.0}
_ROWS = dataset_of("DiagNormal", "overlapping", 2)[:6]
_CHAINS, _DRAWS = 64, 200


def p_value(name: str, alpha: float, assumed: float, rng: np.random.Generator) -> float:
    """P-value over partitions of chains under `alpha` that start from exact draws for `assumed`."""
    exact = exact_posterior(DiagNormal(**_HYPERPARAMETERS), _ROWS, assumed)
    starts = enumerate_partitions(len(_ROWS))[rng.choice(len(exact), _CHAINS, p=exact)]
    target = target_of(dps.DiagNormal(**_HYPERPARAMETERS), _ROWS, alpha)
    labels = np.empty((_CHAINS, _DRAWS, len(_ROWS)), np.int8)
    for chain, start in enumerate(starts):
        state = sampler.resume(target, start)
        for draw in range(_DRAWS):
            state = MOVES[name](target, state, rng)
            labels[chain, draw] = state.labels
    return partition_test(partition_index(labels), exact)


# Just below N = 6 sticks are broken, above they are not.
@pytest.mark.parametrize("alpha", [5.9, 6.1, 50.0])
def test_kernel_keeps_the_posterior(alpha: float, rng: np.random.Generator) -> None:
    assert breaks_sticks(dirichlet_process(alpha), len(_ROWS)) == (alpha < 6)
    assert p_value("exact kernel", alpha, alpha, rng) > LEVEL


@pytest.mark.control
def test_other_alpha_is_caught(rng: np.random.Generator) -> None:
    assert p_value("exact kernel", 7.5, 6.1, rng) < LEVEL


@pytest.mark.parametrize("alpha", [1e4, 1e6, 1e12])
def test_work_does_not_grow_with_alpha(alpha: float, rng: np.random.Generator) -> None:
    """One iteration visits each row once: 1e6 sticks would take more than the memory."""
    rows = rng.standard_normal((40, 2))
    target = target_of(dps.DiagNormal(**_HYPERPARAMETERS), rows, alpha)
    state = sampler.start(target, rng, 4)
    schedule = sampler.Schedule(5, 1.0, np.empty(0, np.int64))
    for kernel in ("exact", "greedy"):
        state, _ = sampler.advance(kernel, target, state, rng, schedule)
    assert len(state.stats) > 20
