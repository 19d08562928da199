"""Densities of one observation under all clusters of a table, in vector code over the clusters.

Each kernel works on whole blocks of clusters, see `kernels.cluster_table`; a block has `height`
numbers per cluster.  LLVM does not vectorise these loops on its own: it unrolls the short ones
before it looks for vectors.
"""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.cluster_table import WIDE
from pymc_dpsplit.kernels.exponential import LOG2E, exp2_plainly, write_exp2
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.logarithm import log_plainly, write_log


@jitted
def fill_squared_solves_plainly(table, height, row, n, scratch, squared):
    """Plain twin of `fill_squared_solves`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height : int
    row : ndarray of float64, shape (D,)
    n : int
    scratch : ndarray of float64, shape (D * WIDE,)
    squared : ndarray of float64
    """
    n_features = row.shape[0]
    for first in range(0, n, WIDE):
        at = first * height
        for d in range(n_features):
            for t in range(WIDE):
                to = at + d * WIDE + t
                scratch[d * WIDE + t] = (row[d] - table[to]) * table[to + n_features * WIDE]
        at += 2 * n_features * WIDE
        for t in range(WIDE):
            squared[first + t] = 0.0
        for e in range(n_features):
            for t in range(WIDE):
                squared[first + t] += scratch[e * WIDE + t] * scratch[e * WIDE + t]
            for d in range(e + 1, n_features):
                for t in range(WIDE):
                    scratch[d * WIDE + t] -= table[at + t] * scratch[e * WIDE + t]
                at += WIDE


@jitted
def fill_student_plainly(table, height, offset, squared, n, out):
    """Plain twin of `fill_student`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height, offset : int
    squared : ndarray of float64
    n : int
    out : ndarray of float64
    """
    for first in range(0, n, WIDE):
        at = (first * height) + offset * WIDE
        for t in range(WIDE):
            grown = 1.0 + table[at + WIDE + t] * squared[first + t]
            out[first + t] = table[at + t] - table[at + 2 * WIDE + t] * log_plainly(grown)


@jitted
def fill_student_columns_plainly(table, height, row, n, out):
    """Plain twin of `fill_student_columns`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height : int
    row : ndarray of float64, shape (D,)
    n : int
    out : ndarray of float64
    """
    n_features = row.shape[0]
    for first in range(0, n, WIDE):
        at = first * height
        for t in range(WIDE):
            out[first + t] = table[at + 3 * n_features * WIDE + t]
        for d in range(n_features):
            for t in range(WIDE):
                gap = row[d] - table[at + t]
                grown = 1.0 + table[at + n_features * WIDE + t] * (gap * gap)
                out[first + t] -= table[at + 2 * n_features * WIDE + t] * log_plainly(grown)
            at += WIDE


@jitted
def fill_weights_plainly(log_mass, log_sizes, n):
    """Plain twin of `fill_weights`, without vector code.

    Parameters
    ----------
    log_mass, log_sizes : ndarray of float64
    n : int
    """
    top = log_mass[0] + log_sizes[0]
    for p in range(n):
        log_mass[p] += log_sizes[p]
        top = log_mass[p] if log_mass[p] > top else top
    for p in range(n):
        log_mass[p] = exp2_plainly(log_mass[p] * LOG2E - top * LOG2E)


def _vectors(lanes: Lanes, first: Any) -> list[Any]:
    """Return the first index of each vector of the block that begins at `first`."""
    return [lanes.builder.add(first, index(v * LANES)) for v in range(WIDE // LANES)]


def _blocks(lanes: Lanes, n: Any) -> Any:
    return lanes.steps(index(0), n, WIDE)


def _times_wide(builder: Any, number: Any) -> Any:
    return builder.mul(number, index(WIDE))


def _write_squared_solves(
    builder: Any, table: Any, height: Any, row: Any, d: Any, n: Any, scratch: Any, squared: Any
) -> None:
    lanes = Lanes(builder)
    inverse = _times_wide(builder, d)
    with _blocks(lanes, n) as (first, _):
        start = builder.mul(first, height)
        with lanes.steps(index(0), d, 1) as (j, _):
            x = lanes.splat(lanes.scalar(row, j))
            feature = _times_wide(builder, j)
            place = builder.add(start, feature)
            for to, at in zip(_vectors(lanes, feature), _vectors(lanes, place), strict=True):
                gap = builder.fsub(x, lanes.load(table, at))
                scale = lanes.load(table, builder.add(at, inverse))
                lanes.store(builder.fmul(gap, scale), scratch, to)
        totals = [lanes.variable(lanes.constant(0.0)) for _ in range(WIDE // LANES)]
        column = lanes.variable(builder.add(start, builder.add(inverse, inverse)))
        with lanes.steps(index(0), d, 1) as (e, _):
            of_e = _vectors(lanes, _times_wide(builder, e))
            solved = [lanes.load(scratch, at) for at in of_e]
            for y, total in zip(solved, totals, strict=True):
                builder.store(lanes.fma(y, y, builder.load(total)), total)
            minus = [builder.fneg(y) for y in solved]
            with lanes.steps(builder.add(e, index(1)), d, 1) as (j, _):
                at = builder.load(column)
                places = zip(
                    _vectors(lanes, _times_wide(builder, j)), _vectors(lanes, at), strict=True
                )
                for y, (to, of_table) in zip(minus, places, strict=True):
                    value = lanes.fma(lanes.load(table, of_table), y, lanes.load(scratch, to))
                    lanes.store(value, scratch, to)
                builder.store(builder.add(at, index(WIDE)), column)
        for total, to in zip(totals, _vectors(lanes, first), strict=True):
            lanes.store(builder.load(total), squared, to)


def _write_student(
    builder: Any, table: Any, height: Any, offset: Any, squared: Any, n: Any, out: Any
) -> None:
    lanes = Lanes(builder)
    with _blocks(lanes, n) as (first, _):
        start = builder.add(builder.mul(first, height), _times_wide(builder, offset))
        for at, to in zip(_vectors(lanes, start), _vectors(lanes, first), strict=True):
            scale = lanes.load(table, builder.add(at, index(WIDE)))
            power = lanes.load(table, builder.add(at, index(2 * WIDE)))
            grown = lanes.fma(scale, lanes.load(squared, to), lanes.constant(1.0))
            drop = builder.fmul(power, write_log(lanes, grown))
            lanes.store(builder.fsub(lanes.load(table, at), drop), out, to)


def _write_student_columns(
    builder: Any, table: Any, height: Any, row: Any, d: Any, n: Any, out: Any
) -> None:
    lanes = Lanes(builder)
    block = _times_wide(builder, d)
    with _blocks(lanes, n) as (first, _):
        start = builder.mul(first, height)
        constant = builder.add(start, builder.mul(block, index(3)))
        totals = [lanes.variable(lanes.load(table, at)) for at in _vectors(lanes, constant)]
        with lanes.steps(index(0), d, 1) as (j, _):
            x = lanes.splat(lanes.scalar(row, j))
            place = builder.add(start, _times_wide(builder, j))
            for total, at in zip(totals, _vectors(lanes, place), strict=True):
                gap = builder.fsub(x, lanes.load(table, at))
                at_scale = builder.add(at, block)
                scale = lanes.load(table, at_scale)
                power = lanes.load(table, builder.add(at_scale, block))
                grown = lanes.fma(scale, builder.fmul(gap, gap), lanes.constant(1.0))
                drop = builder.fmul(power, write_log(lanes, grown))
                builder.store(builder.fsub(builder.load(total), drop), total)
        for total, to in zip(totals, _vectors(lanes, first), strict=True):
            lanes.store(builder.load(total), out, to)


def _write_weights(builder: Any, log_mass: Any, log_sizes: Any, n: Any) -> None:
    lanes = Lanes(builder)
    tops = [lanes.variable(lanes.constant(float("-inf"))) for _ in range(WIDE // LANES)]
    with _blocks(lanes, n) as (first, _):
        for top, at in zip(tops, _vectors(lanes, first), strict=True):
            value = builder.fadd(lanes.load(log_mass, at), lanes.load(log_sizes, at))
            lanes.store(value, log_mass, at)
            builder.store(lanes.larger(value, builder.load(top)), top)
    best = builder.load(tops[0])
    for top in tops[1:]:
        best = lanes.larger(best, builder.load(top))
    best = lanes.largest(best)
    below = lanes.splat(builder.fmul(best, ir.Constant(ir.DoubleType(), -LOG2E)))
    with _blocks(lanes, n) as (first, _):
        for at in _vectors(lanes, first):
            x = lanes.fma(lanes.load(log_mass, at), lanes.constant(LOG2E), below)
            lanes.store(write_exp2(lanes, x), log_mass, at)


@intrinsic
def _squared_solves_by_lanes(typing_context, table, height, row, n_features, n, scratch, squared):
    generate = written_once("fill_squared_solves", _write_squared_solves)
    return types.void(table, height, row, n_features, n, scratch, squared), generate


@intrinsic
def _student_by_lanes(typing_context, table, height, offset, squared, n, out):
    generate = written_once("fill_student", _write_student)
    return types.void(table, height, offset, squared, n, out), generate


@intrinsic
def _student_columns_by_lanes(typing_context, table, height, row, n_features, n, out):
    generate = written_once("fill_student_columns", _write_student_columns)
    return types.void(table, height, row, n_features, n, out), generate


@intrinsic
def _weights_by_lanes(typing_context, log_mass, log_sizes, n):
    generate = written_once("fill_weights", _write_weights)
    return types.void(log_mass, log_sizes, n), generate


@jitted_inlined
def _fill_squared_solves(table, height, row, n, scratch, squared):
    """Write |L^-1 (x - mu)|^2 of an observation x under each cluster.

    Parameters
    ----------
    table : ndarray of float64
        Per cluster: mu (D), the inverse diagonal of L (D), and the elements of L below the
        diagonal by columns, each over the diagonal element of its row.
    height : int
    row : ndarray of float64, shape (D,)
        The observation.
    n : int
        Clusters; rounded up to whole blocks.
    scratch : ndarray of float64, shape (D * WIDE,)
        Workspace.
    squared : ndarray of float64, shape (n,) in whole blocks
        Overwritten.
    """
    _squared_solves_by_lanes(table, height, row, row.shape[0], n, scratch, squared)


@jitted_inlined
def _fill_student(table, height, offset, squared, n, out):
    """Write c - h log(1 + f q) of each cluster.

    Parameters
    ----------
    table : ndarray of float64
        Numbers `offset`, `offset` + 1 and `offset` + 2 per cluster are c, f and h.
    height, offset : int
    squared : ndarray of float64, shape (n,) in whole blocks
        The numbers q.
    n : int
        Clusters; rounded up to whole blocks.
    out : ndarray of float64, shape (n,) in whole blocks
        Overwritten.
    """
    _student_by_lanes(table, height, offset, squared, n, out)


@jitted_inlined
def _fill_student_columns(table, height, row, n, out):
    """Write c - sum_d h_d log(1 + s_d (x_d - mu_d)^2) of each cluster.

    Parameters
    ----------
    table : ndarray of float64
        Per cluster: mu, s and h (D each), then c.
    height : int
    row : ndarray of float64, shape (D,)
        The observation x.
    n : int
        Clusters; rounded up to whole blocks.
    out : ndarray of float64, shape (n,) in whole blocks
        Overwritten.
    """
    _student_columns_by_lanes(table, height, row, row.shape[0], n, out)


@jitted_inlined
def _fill_weights(log_mass, log_sizes, n):
    """Replace log masses by exp(log_mass + log_sizes), relative to the largest.

    Parameters
    ----------
    log_mass, log_sizes : ndarray of float64, shape (>= n,)
        The first is overwritten.
    n : int
        A multiple of `WIDE`.
    """
    _weights_by_lanes(log_mass, log_sizes, n)


fill_squared_solves = _fill_squared_solves if LANES else fill_squared_solves_plainly
fill_student = _fill_student if LANES else fill_student_plainly
fill_student_columns = _fill_student_columns if LANES else fill_student_columns_plainly
fill_weights = _fill_weights if LANES else fill_weights_plainly
