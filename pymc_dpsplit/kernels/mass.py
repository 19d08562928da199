"""Cumulative masses of a tile from log masses, and the atom that a uniform selects."""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.exponential import LOG2E, exp2_plainly, write_exp2
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, lanes_for, written_once
from pymc_dpsplit.kernels.tiles import TILE


@jitted
def accumulate_plainly(log_mass, n_rows, highest, total):
    """Plain twin of `accumulate`, without vector code.

    Parameters
    ----------
    log_mass : ndarray of float64 or float32, shape (>= n_rows, TILE)
    n_rows : int
    highest, total : ndarrays of the same type, shape (TILE,)
    """
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
            # The power is computed in float64, whatever the type of the masses.
            total[t] += exp2_plainly(float(mass[t]) * LOG2E - float(highest[t]) * LOG2E)
            mass[t] = total[t]


@jitted
def count_below_plainly(cumulative, n_rows, target, count):
    """Plain twin of `count_below`, without vector code.

    Parameters
    ----------
    cumulative : ndarray of float64, shape (>= n_rows, TILE)
    n_rows : int
    target : ndarray of float64, shape (TILE,)
    count : ndarray of int64, shape (TILE,)
    """
    for t in range(TILE):
        count[t] = 0
    for a in range(n_rows):
        for t in range(TILE):
            count[t] += 1 if cumulative[a, t] <= target[t] else 0


@jitted
def count_between_plainly(cumulative, n_rows, lower, upper, count):
    """Plain twin of `count_between`, without vector code.

    Parameters
    ----------
    cumulative : ndarray of float64 or float32, shape (>= n_rows, TILE)
    n_rows : int
    lower, upper : ndarrays of the same type, shape (TILE,)
    count : ndarray of int64, or int32 for float32, shape (TILE,)
    """
    for t in range(TILE):
        count[t] = 0
        n_between = 0
        for a in range(n_rows):
            count[t] += 1 if cumulative[a, t] <= lower[t] else 0
            n_between += 1 if lower[t] < cumulative[a, t] <= upper[t] else 0
        count[t] = -1 if n_between > 0 else count[t]


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


def _write_power(lanes: Lanes, log_mass: Any, top: Any) -> Any:
    """Write the code of the power of 2 that is a mass relative to the largest."""
    builder, log2e = lanes.builder, lanes.constant(LOG2E)
    if lanes.is_single:
        # The difference comes first, so that errors do not grow with the largest log mass.
        return builder.fmul(builder.fsub(log_mass, top), log2e)
    return lanes.fma(log_mass, log2e, builder.fmul(top, lanes.constant(-LOG2E)))


def _write_accumulate(builder: Any, log_mass: Any, n_rows: Any, highest: Any, total: Any) -> None:
    lanes = lanes_for(builder, log_mass)
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        tops = _write_highest(lanes, log_mass, n_rows, starts)
        sums = [lanes.variable(lanes.constant(0.0)) for _ in starts]
        with lanes.steps(index(0), n_rows, 1) as (a, _):
            row = builder.mul(a, index(TILE))
            for start, top, running in zip(starts, tops, sums, strict=True):
                at = builder.add(row, start)
                x = _write_power(lanes, lanes.load(log_mass, at), top)
                value = builder.fadd(builder.load(running), write_exp2(lanes, x))
                builder.store(value, running)
                lanes.store(value, log_mass, at)
        for start, top, running in zip(starts, tops, sums, strict=True):
            lanes.store(top, highest, start)
            lanes.store(builder.load(running), total, start)


def _write_count(builder: Any, cumulative: Any, n_rows: Any, target: Any, count: Any) -> None:
    lanes = lanes_for(builder, cumulative)
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


def _write_count_between(
    builder: Any, cumulative: Any, n_rows: Any, lower: Any, upper: Any, count: Any
) -> None:
    """Count the masses below either end; where the numbers differ some are between."""
    lanes = lanes_for(builder, cumulative)
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        ends = [(lanes.load(lower, t), lanes.load(upper, t)) for t in starts]
        zero = lanes.int_constant(0)
        counts = [(lanes.variable(zero), lanes.variable(zero)) for _ in starts]
        with lanes.steps(index(0), n_rows, 1) as (a, _):
            row = builder.mul(a, index(TILE))
            for start, bounds, found in zip(starts, ends, counts, strict=True):
                value = lanes.load(cumulative, builder.add(row, start))
                for bound, place in zip(bounds, found, strict=True):
                    is_below = builder.zext(builder.fcmp_ordered("<=", value, bound), lanes.ints)
                    builder.store(builder.add(builder.load(place), is_below), place)
        for start, (low, high) in zip(starts, counts, strict=True):
            n_below = builder.load(low)
            agrees = builder.icmp_signed("==", n_below, builder.load(high))
            lanes.store(builder.select(agrees, n_below, lanes.int_constant(-1)), count, start)


@intrinsic
def _accumulate_by_lanes(typing_context, log_mass, n_rows, highest, total):
    generate = written_once(f"accumulate_{log_mass.dtype}", _write_accumulate)
    return types.void(log_mass, n_rows, highest, total), generate


@intrinsic
def _count_by_lanes(typing_context, cumulative, n_rows, target, count):
    generate = written_once(f"count_below_{cumulative.dtype}", _write_count)
    return types.void(cumulative, n_rows, target, count), generate


@intrinsic
def _count_between_by_lanes(typing_context, cumulative, n_rows, lower, upper, count):
    generate = written_once(f"count_between_{cumulative.dtype}", _write_count_between)
    return types.void(cumulative, n_rows, lower, upper, count), generate


@jitted_inlined
def _accumulate(log_mass, n_rows, highest, total):
    """Replace log masses by cumulative masses, relative to the largest mass of each observation.

    Parameters
    ----------
    log_mass : ndarray of float64 or float32, shape (>= n_rows, TILE)
        Not all -inf in a column; overwritten by the cumulative sums of exp(log_mass - highest).
    n_rows : int
        At least 1.
    highest, total : ndarrays of the same type, shape (TILE,)
        Overwritten by the largest log mass and the last cumulative mass.
    """
    _accumulate_by_lanes(log_mass, n_rows, highest, total)


@jitted_inlined
def _count_below(cumulative, n_rows, target, count):
    """Count the cumulative masses that do not exceed a target, which is the row selected.

    Parameters
    ----------
    cumulative : ndarray of float64, shape (>= n_rows, TILE)
    n_rows : int
    target : ndarray of float64, shape (TILE,)
    count : ndarray of int64, shape (TILE,)
        Overwritten.
    """
    _count_by_lanes(cumulative, n_rows, target, count)


@jitted_inlined
def _count_between(cumulative, n_rows, lower, upper, count):
    """Count the cumulative masses that do not exceed `lower`, or write -1 if some are in between.

    Parameters
    ----------
    cumulative : ndarray of float64 or float32, shape (>= n_rows, TILE)
    n_rows : int
    lower, upper : ndarrays of the same type, shape (TILE,)
        Masses above `lower` up to `upper` are in between.
    count : ndarray of int64, or int32 for float32, shape (TILE,)
        Overwritten.
    """
    _count_between_by_lanes(cumulative, n_rows, lower, upper, count)


accumulate = _accumulate if LANES else accumulate_plainly
count_below = _count_below if LANES else count_below_plainly
count_between = _count_between if LANES else count_between_plainly
