"""From log masses of a tile to cumulative masses, and to the atom that a uniform falls on."""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.exponential import LOG2E, exp2_plainly, write_exp2
from pymc_dpsplit.kernels.jit import inlined_kernel, intrinsic, kernel
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.tiles import TILE


@kernel
def accumulate_plainly(log_mass, n_rows, highest, total):
    """Do what `accumulate` does, without vector code."""
    for t in range(TILE):
        highest[t] = log_mass[0, t]
        total[t] = 0.0
    for a in range(1, n_rows):
        for t in range(TILE):
            value = log_mass[a, t]
            highest[t] = value if value > highest[t] else highest[t]
    for a in range(n_rows):
        mass = log_mass[a]
        for t in range(TILE):
            total[t] += exp2_plainly(mass[t] * LOG2E - highest[t] * LOG2E)
            mass[t] = total[t]


@kernel
def count_below_plainly(cumulative, n_rows, target, count):
    """Do what `count_below` does, without vector code."""
    for t in range(TILE):
        count[t] = 0
    for a in range(n_rows):
        for t in range(TILE):
            count[t] += 1 if cumulative[a, t] <= target[t] else 0


def _write_highest(lanes: Lanes, log_mass: Any, n_rows: Any, starts: list[Any]) -> list[Any]:
    """Write the code that finds the largest element of each column of a block."""
    builder = lanes.builder
    highest = [lanes.variable(lanes.load(log_mass, t)) for t in starts]
    with lanes.steps(index(1), n_rows, 1) as (a, _):
        row = builder.mul(a, index(TILE))
        for best, t in zip(highest, starts, strict=True):
            value = lanes.load(log_mass, builder.add(row, t))
            builder.store(lanes.larger(value, builder.load(best)), best)
    return [builder.load(best) for best in highest]


def _write_accumulate(builder: Any, log_mass: Any, n_rows: Any, highest: Any, total: Any) -> None:
    lanes = Lanes(builder)
    minus_log2e = lanes.constant(-LOG2E)
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        tops = _write_highest(lanes, log_mass, n_rows, starts)
        below = [builder.fmul(top, minus_log2e) for top in tops]
        sums = [lanes.variable(lanes.constant(0.0)) for _ in starts]
        with lanes.steps(index(0), n_rows, 1) as (a, _):
            row = builder.mul(a, index(TILE))
            for start, offset, running in zip(starts, below, sums, strict=True):
                at = builder.add(row, start)
                x = lanes.fma(lanes.load(log_mass, at), lanes.constant(LOG2E), offset)
                value = builder.fadd(builder.load(running), write_exp2(lanes, x))
                builder.store(value, running)
                lanes.store(value, log_mass, at)
        for start, top, running in zip(starts, tops, sums, strict=True):
            lanes.store(top, highest, start)
            lanes.store(builder.load(running), total, start)


def _write_count(builder: Any, cumulative: Any, n_rows: Any, target: Any, count: Any) -> None:
    lanes = Lanes(builder)
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        bounds = [lanes.load(target, t) for t in starts]
        counts = [lanes.variable(lanes.int_constant(0)) for _ in starts]
        with lanes.steps(index(0), n_rows, 1) as (a, _):
            row = builder.mul(a, index(TILE))
            for start, bound, found in zip(starts, bounds, counts, strict=True):
                value = lanes.load(cumulative, builder.add(row, start))
                is_below = builder.zext(builder.fcmp_ordered("<=", value, bound), lanes.ints)
                builder.store(builder.add(builder.load(found), is_below), found)
        for start, found in zip(starts, counts, strict=True):
            lanes.store(builder.load(found), count, start)


@intrinsic
def _accumulate_by_lanes(typing_context, log_mass, n_rows, highest, total):
    generate = written_once("accumulate", _write_accumulate)
    return types.void(log_mass, n_rows, highest, total), generate


@intrinsic
def _count_by_lanes(typing_context, cumulative, n_rows, target, count):
    generate = written_once("count_below", _write_count)
    return types.void(cumulative, n_rows, target, count), generate


@inlined_kernel
def _accumulate(log_mass, n_rows, highest, total):
    """Replace log masses by running sums, relative to the largest mass of each observation.

    Parameters
    ----------
    log_mass : ndarray of float64, shape (>= n_rows, TILE)
        Not all -inf in a column; overwritten by the sums of exp(log_mass - highest) so far.
    n_rows : int
        At least 1.
    highest, total : ndarrays of float64, shape (TILE,)
        Written: the largest log mass, and the last running sum.
    """
    _accumulate_by_lanes(log_mass, n_rows, highest, total)


@inlined_kernel
def _count_below(cumulative, n_rows, target, count):
    """Count the running sums that do not exceed a target: the row that the target falls on.

    Parameters
    ----------
    cumulative : ndarray of float64, shape (>= n_rows, TILE)
    n_rows : int
    target : ndarray of float64, shape (TILE,)
    count : ndarray of int64, shape (TILE,)
        Written.
    """
    _count_by_lanes(cumulative, n_rows, target, count)


accumulate = _accumulate if LANES else accumulate_plainly
count_below = _count_below if LANES else count_below_plainly
