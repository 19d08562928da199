"""Classic vague priors against enumeration: most atoms of the base measure are out of sight."""

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from tests.reference.families import Normal
from tests.support.families import target_of
from tests.support.moves import MOVES, PUBLISHED
from tests.support.partitions import enumerate_partitions, exact_posterior, partition_index
from tests.support.statistics import LEVEL, partition_test

pytestmark = pytest.mark.slow

_ROWS = np.array([-1.2, -0.9, 0.1, 0.4, 2.5, 2.6])[:, None]
_VAGUE = {"mu0": 0.0, "kappa0": 0.01, "a0": 0.001, "b0": 0.001}
_CHAINS, _DRAWS = 64, 150
# Kernels that find new clusters by draws from the base measure seldom do so: they get more draws,
# with which they are seen to fail under another prior.
_MORE_DRAWS = {"Neal 8": 600, "slice sampler": 3000}


def p_value(name: str, rng: np.random.Generator, **changed: float) -> float:
    """P-value over partitions of chains that start from exact draws."""
    exact = exact_posterior(Normal(**_VAGUE), _ROWS, 1.0)
    starts = enumerate_partitions(len(_ROWS))[rng.choice(len(exact), _CHAINS, p=exact)]
    target = target_of(dps.Normal(**{**_VAGUE, **changed}), _ROWS, 1.0)
    labels = np.empty((_CHAINS, _MORE_DRAWS.get(name, _DRAWS), len(_ROWS)), np.int8)
    for chain, start in enumerate(starts):
        state = sampler.resume(target, start)
        for draw in range(labels.shape[1]):
            state = MOVES[name](target, state, rng)
            labels[chain, draw] = state.labels
    return partition_test(partition_index(labels), exact)


@pytest.mark.parametrize("name", ["slice", "collapsed", "exact kernel", *PUBLISHED])
def test_vague_prior_keeps_the_posterior(name: str, rng: np.random.Generator) -> None:
    assert p_value(name, rng) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("name", ["exact kernel", *PUBLISHED])
def test_other_vague_prior_is_caught(name: str, rng: np.random.Generator) -> None:
    assert p_value(name, rng, a0=0.003) < LEVEL
