"""Samplers of the literature that are not exact are far from the posterior.

What every exact move passes, they fail; their parts that are exact pass.  docs/samplers.md has the
distances.  Level 1e-5 each.
"""

import math

import numba
import numpy as np
import pytest

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.split_merge.decision import carry_out
from pymc_dpsplit.samplers import random_split_merge
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from tests.exact.test_enumeration import p_value
from tests.support.controls import altered
from tests.support.moves import kernel, sweep
from tests.support.statistics import LEVEL

CASE = ("Normal", 1, "overlapping")
# With options by which they are far enough from the posterior to be caught by short chains.
INEXACT: dict[str, dict[str, int]] = {
    name: {} for name, row in SAMPLERS.items() if not row.is_exact
}
INEXACT["truncated"] = {"truncation": 5}
INEXACT["av-parallel"] = {"processors": 8, "published": True}
_DRAWS = 150
# With a small one, ten values of importance conditional sampling hardly differ from the remainder.
_LARGE_ALPHA = 5.0


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", INEXACT)
def test_inexact_sampler_is_caught(name: str, rng: np.random.Generator) -> None:
    assert p_value(kernel(name, **INEXACT[name]), CASE, _LARGE_ALPHA, _DRAWS, rng) < LEVEL


def random_attempts(decide):
    """Three random splits or merges, of which few are accepted."""

    def attempts(target, labels, stats, rng):
        for _ in range(3):
            decision = decide(target, labels, stats, np.uint64(draw_key(rng)))
            stats = carry_out(labels, stats, decision, np.zeros(4, np.int64))
        return stats

    return sweep(attempts)


_honest = random_split_merge.log_dirichlet_multinomial


@numba.njit
def _undercounted(n_left, n_right, mass):
    """Half the probability of a division."""
    return _honest(n_left, n_right, mass) - math.log(2.0)


CONTROL = altered(random_split_merge.decide_by_prior, log_dirichlet_multinomial=_undercounted)


@pytest.mark.slow
def test_random_split_and_merge_keep_the_posterior(rng: np.random.Generator) -> None:
    move = random_attempts(random_split_merge.decide_by_prior)
    assert p_value(move, CASE, 1.0, _DRAWS, rng, n_starts=10) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_wrong_random_split_and_merge_are_caught(rng: np.random.Generator) -> None:
    assert p_value(random_attempts(CONTROL), CASE, 1.0, _DRAWS, rng, n_starts=10) < LEVEL
