"""Sweeps by slices with floors other than 1 / N, against enumeration and forward draws.

The floor under a discount grows with N, see `slice_floor`, and data that can be enumerated are too
few for it, so there sweeps are put together from kernels with a floor that is given.  Sweeps with
the floor of the package take one step from exact forward draws.  Level 1e-5 each; the controls
divide weights by another floor than that of the slices.
"""

import numpy as np
import pytest

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.measure import break_remainder, draw_measure
from pymc_dpsplit.moves.partition_law import PartitionLaw, slice_floor
from pymc_dpsplit.moves.sweep.assignment import lowest_slice, new_counter, slice_bounds_of
from tests.exact.test_partition_laws import one_step, p_value
from tests.support.controls import assign
from tests.support.moves import MOVES, Move, sweep
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

_DISCOUNTED = PartitionLaw(0.2, 1.0)
# So many that the floor is above 1 / N, and observations are visited by their slices.
_MANY, _REPLICATES = 8000, 300


def with_floor(n_rows: float, n_rows_weighed: float) -> Move:
    """A sweep with the slices of one floor, whose masses are those of another one; times N."""

    def swept(target, labels, stats, rng):
        floor, weighed = (min(1.0, n / len(labels)) for n in (n_rows, n_rows_weighed))
        log_weights, log_rest, params = draw_measure(target, stats, rng)
        key = np.uint64(draw_key(rng))
        lowest = lowest_slice(labels, slice_bounds_of(log_weights, floor), key, new_counter())
        log_weights, params, _ = break_remainder(
            target, rng, log_weights, log_rest, params, np.log(lowest), np.log(lowest)
        )
        bounds = slice_bounds_of(log_weights, floor)
        return assign(
            target, labels, rng, log_weights, params, bounds, floor=weighed, slice_key=key
        )

    return sweep(swept)


@pytest.mark.parametrize("name", ["Dirichlet process", "Pitman-Yor", "finite"])
@pytest.mark.parametrize("n_rows", [0.5, 2.0, 8.0])
def test_any_floor_keeps_the_posterior(n_rows: float, name: str, rng: np.random.Generator) -> None:
    assert p_value(with_floor(n_rows, n_rows), name, rng) > LEVEL


@pytest.mark.parametrize("move", ["slice", "over-relaxed slice", "threaded sweep"])
def test_one_step_of_many_observations(move: str, rng: np.random.Generator) -> None:
    assert slice_floor(_DISCOUNTED, _MANY) > 2.0 / _MANY
    assert one_step(MOVES[move], _DISCOUNTED, rng, _MANY, _REPLICATES) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("weighed", [1.0, 4.0])
def test_masses_by_another_floor_are_caught(weighed: float, rng: np.random.Generator) -> None:
    assert p_value(with_floor(2.0, weighed), "Pitman-Yor", rng) < LEVEL


@pytest.mark.control
def test_masses_by_another_floor_of_many_observations_are_caught(rng: np.random.Generator) -> None:
    n_rows = _MANY * slice_floor(_DISCOUNTED, _MANY)
    assert one_step(with_floor(n_rows, 1.0), _DISCOUNTED, rng, _MANY, _REPLICATES) < LEVEL
