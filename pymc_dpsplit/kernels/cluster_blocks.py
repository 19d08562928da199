"""Densities of one observation under all clusters of a table, in vector code over the clusters.

Each kernel works on whole blocks of clusters, see `kernels.cluster_table`; a block has `height`
numbers per cluster.  LLVM does not vectorise these loops on its own: it unrolls the short ones
before it looks for vectors.
"""

import math
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from pymc_dpsplit.kernels.cluster_table import (
    WIDE,
    block_of_turn,
    times_wide,
    write_block_of_turn,
)
from pymc_dpsplit.kernels.digits import LEAST_KEPT
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.logarithm import log_plainly, write_log

# Columns between two comparisons with the limit; the first D % 8 come before the first one.
_GROUP = 8
_NOTHING = ir.Constant(ir.DoubleType(), -math.inf)


@jitted
def fill_student_plainly(table, height, offset, squared, n, own, ratio, shift, out):
    """Plain twin of `fill_student`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height, offset : int
    squared : ndarray of float64
    n, own : int
    ratio, shift : float
    out : ndarray of float64

    Returns
    -------
    bool
    """
    keeps = True
    for first in range(0, n, WIDE):
        at = (first * height) + offset * WIDE
        for t in range(WIDE):
            grown = table[at + WIDE + t] * squared[first + t]
            c, h = table[at + t], table[at + 2 * WIDE + t]
            if first + t == own:
                grown, c, h = -ratio * grown, table[at + 3 * WIDE + t], shift - h
            grown += 1.0
            keeps = keeps and grown > LEAST_KEPT
            out[first + t] = c - h * log_plainly(grown)
    return keeps


@jitted
def _is_beyond(sizes, log_density, first, limit):
    """Whether the log densities are less than the limit in a whole block."""
    for p in range(first, first + WIDE):
        if sizes[p] > 0.0 and not log_density[p] < limit:
            return False
    return True


@jitted
def _add_column(table, at, n_features, row, ratios, d, own_lane, out, first):
    """Add the terms of a column to the log densities of a block; return the least of 1 + s q."""
    least, at = 1.0, at + d * WIDE
    for t in range(WIDE):
        gap = row[d] - table[at + t]
        grown = table[at + n_features * WIDE + t] * (gap * gap)
        h = table[at + 2 * n_features * WIDE + t]
        if t == own_lane:
            grown, h = -ratios[d] * grown, 1.0 - h
        grown += 1.0
        least = min(least, grown)
        out[first + t] -= h * log_plainly(grown)
    return least


@jitted
def fill_student_columns_plainly(table, height, row, n, own, ratios, least, drop, sizes, out):
    """Plain twin of `fill_student_columns`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height : int
    row : ndarray of float64, shape (D,)
    n, own : int
    ratios : ndarray of float64, shape (D,)
    least, drop : float
    sizes, out : ndarray of float64

    Returns
    -------
    bool
    """
    n_features, smallest = row.shape[0], 1.0
    limit = least if own < 0 else -math.inf
    for turn in range(0, n, WIDE):
        first = block_of_turn(turn, own)
        at, own_lane = first * height, own - first
        for t in range(WIDE):
            out[first + t] = table[at + (3 * n_features + (t == own_lane)) * WIDE + t]
        for d in range(n_features):
            grown = _add_column(table, at, n_features, row, ratios, d, own_lane, out, first)
            smallest = min(smallest, grown)
            begin = d + 1
            is_compared = begin >= _GROUP and (n_features - begin) % _GROUP == 0
            if is_compared and begin < n_features and _is_beyond(sizes, out, first, limit):
                break
        if turn == 0 and own >= 0:
            limit = max(least, out[own] - drop)
    return smallest > LEAST_KEPT


def _write_student(
    builder: Any,
    table: Any,
    height: Any,
    offset: Any,
    squared: Any,
    n: Any,
    own: Any,
    ratio: Any,
    shift: Any,
    out: Any,
) -> Any:
    lanes = Lanes(builder, WIDE)
    least, minus = lanes.variable(lanes.constant(1.0)), lanes.splat(builder.fneg(ratio))
    with lanes.steps(index(0), n, WIDE) as (first, _):
        at = builder.add(builder.mul(first, height), times_wide(builder, offset))
        scaled = builder.fmul(
            lanes.load(table, builder.add(at, index(WIDE))), lanes.load(squared, first)
        )
        h = lanes.load(table, builder.add(at, index(2 * WIDE)))
        is_own = lanes.is_lane(builder.sub(own, first))
        c = lanes.load_masked(table, builder.add(at, index(3 * WIDE)), is_own)
        c = builder.select(is_own, c, lanes.load(table, at))
        h = builder.select(is_own, builder.fsub(lanes.splat(shift), h), h)
        grown = _write_grown(lanes, scaled, is_own, minus, least)
        drop = builder.fmul(h, write_log(lanes, grown, by_pairs=True))
        lanes.store(builder.fsub(c, drop), out, first)
    return _write_keeps(lanes, least)


class _Columns:
    """Code that adds the terms of columns to the log densities of one block of clusters.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    table, start, row, d, own_lane, ratios, least : LLVM value
        `start` is the place of the block, `d` the number of features.
    """

    def __init__(
        self,
        builder: Any,
        table: Any,
        start: Any,
        row: Any,
        d: Any,
        own_lane: Any,
        ratios: Any,
        least: Any,
    ) -> None:
        self.lanes, self.builder = Lanes(builder, WIDE), builder
        self.table, self.start, self.row, self.ratios, self.least = table, start, row, ratios, least
        self.size, self.is_own = times_wide(builder, d), self.lanes.is_lane(own_lane)
        constant = builder.add(start, builder.mul(self.size, index(3)))
        c = self.lanes.load_masked(table, builder.add(constant, index(WIDE)), self.is_own)
        c = builder.select(self.is_own, c, self.lanes.load(table, constant))
        self.total = self.lanes.variable(c)

    def write(self, j: Any) -> None:
        """Write the terms of column j."""
        lanes, builder = self.lanes, self.builder
        at = builder.add(self.start, times_wide(builder, j))
        at_scale = builder.add(at, self.size)
        gap = builder.fsub(lanes.splat(lanes.scalar(self.row, j)), lanes.load(self.table, at))
        scaled = builder.fmul(lanes.load(self.table, at_scale), builder.fmul(gap, gap))
        minus = lanes.splat(builder.fneg(lanes.scalar(self.ratios, j)))
        grown = _write_grown(lanes, scaled, self.is_own, minus, self.least)
        h = lanes.load(self.table, builder.add(at_scale, self.size))
        h = builder.select(self.is_own, builder.fsub(lanes.constant(1.0), h), h)
        drop = builder.fmul(h, write_log(lanes, grown, by_pairs=True))
        builder.store(builder.fsub(builder.load(self.total), drop), self.total)

    def write_is_beyond(self, sizes: Any, first: Any, limit: Any) -> Any:
        """Write the code of `_is_beyond`."""
        lanes, builder = self.lanes, self.builder
        is_less = builder.fcmp_ordered("<", builder.load(self.total), lanes.splat(limit))
        is_none = builder.fcmp_ordered("<=", lanes.load(sizes, first), lanes.constant(0.0))
        return lanes.all(builder.or_(is_less, is_none))


def _write_student_columns(
    builder: Any,
    table: Any,
    height: Any,
    row: Any,
    d: Any,
    n: Any,
    own: Any,
    ratios: Any,
    least: Any,
    drop: Any,
    sizes: Any,
    out: Any,
) -> Any:
    lanes = Lanes(builder, WIDE)
    smallest = lanes.variable(lanes.constant(1.0))
    has_own = builder.icmp_signed(">=", own, index(0))
    head, n_groups = builder.and_(d, index(_GROUP - 1)), builder.udiv(d, index(_GROUP))
    limit = lanes.variable(builder.select(has_own, _NOTHING, least))
    with lanes.steps(index(0), n, WIDE) as (turn, _):
        first = write_block_of_turn(builder, turn, has_own, own)
        start, own_lane = builder.mul(first, height), builder.sub(own, first)
        columns = _Columns(builder, table, start, row, d, own_lane, ratios, smallest)
        with lanes.steps(index(0), head, 1) as (j, _):
            columns.write(j)
        with cgutils.for_range(builder, n_groups, intp=ir.IntType(64)) as loop:
            begin = builder.add(head, builder.mul(loop.index, index(_GROUP)))
            is_beyond = columns.write_is_beyond(sizes, first, builder.load(limit))
            is_begun = builder.icmp_signed(">=", begin, index(_GROUP))
            with builder.if_then(builder.and_(is_begun, is_beyond)):
                loop.do_break()
            with lanes.steps(begin, builder.add(begin, index(_GROUP)), 1) as (j, _):
                columns.write(j)
        lanes.store(builder.load(columns.total), out, first)
        is_first = builder.icmp_signed("==", turn, index(0))
        with builder.if_then(builder.and_(is_first, has_own)):
            by_own = builder.fsub(lanes.scalar(out, own), drop)
            is_larger = builder.fcmp_ordered(">", by_own, least)
            builder.store(builder.select(is_larger, by_own, least), limit)
    return _write_keeps(lanes, smallest)


def _write_grown(lanes: Lanes, scaled: Any, is_own: Any, minus: Any, least: Any) -> Any:
    """Write 1 + f q, or 1 - ratio f q of the own cluster, and keep the least of these."""
    builder, one = lanes.builder, lanes.constant(1.0)
    grown = lanes.fma(scaled, builder.select(is_own, minus, one), one)
    builder.store(lanes.smaller(grown, builder.load(least)), least)
    return grown


def _write_keeps(lanes: Lanes, least: Any) -> Any:
    """Write whether enough digits are left in all lanes."""
    keeps = lanes.builder.fcmp_ordered(">", lanes.builder.load(least), lanes.constant(LEAST_KEPT))
    return lanes.all(keeps)


@intrinsic
def _student_by_lanes(typing_context, table, height, offset, squared, n, own, ratio, shift, out):
    generate = written_once("fill_student", _write_student, ir.IntType(1), inlined=True)
    given = table, height, offset, squared, n, own, ratio, shift, out
    return types.boolean(*given), generate


@intrinsic
def _student_columns_by_lanes(
    typing_context, table, height, row, n_features, n, own, ratios, least, drop, sizes, out
):
    generate = written_once(
        "fill_student_columns", _write_student_columns, ir.IntType(1), inlined=True
    )
    given = table, height, row, n_features, n, own, ratios, least, drop, sizes, out
    return types.boolean(*given), generate


@jitted_inlined
def _fill_student(table, height, offset, squared, n, own, ratio, shift, out):
    """Write c - h log(1 + f q) of each cluster, and of one cluster without the observation.

    By the determinant lemma the latter is c' + (h - shift) log(1 - ratio f q).

    Parameters
    ----------
    table : ndarray of float64
        Numbers `offset`, `offset` + 1 and `offset` + 2 per cluster are c, f and h; the next one is
        c', which is read of the cluster `own` only.
    height, offset : int
    squared : ndarray of float64, shape (n,) in whole blocks
        The numbers q.
    n, own : int
        Clusters, rounded up to whole blocks; and that from which the observation is left out, -1
        if there is none.
    ratio, shift : float
    out : ndarray of float64, shape (n,) in whole blocks
        Overwritten.

    Returns
    -------
    bool
        False if too much precision is lost in out[own].
    """
    return _student_by_lanes(table, height, offset, squared, n, own, ratio, shift, out)


@jitted_inlined
def _fill_student_columns(table, height, row, n, own, ratios, least, drop, sizes, out):
    """Write c - sum_d h_d log(1 + s_d (x_d - mu_d)^2) of each cluster, one without the observation.

    The latter is c' + sum_d (h_d - 1) log(1 - ratios_d s_d (x_d - mu_d)^2).  Sums over the first
    features, which are upper bounds, are written for a block of clusters in which all of them are
    less than `least`, or by more than `drop` less than that of the own cluster.

    Parameters
    ----------
    table : ndarray of float64
        Per cluster: mu, s and h (D each), then c and c'.
    height : int
    row : ndarray of float64, shape (D,)
        The observation x.
    n, own : int
        As of `fill_student`.
    ratios : ndarray of float64, shape (D,)
    least, drop : float
        -inf and inf if bounds will not do.
    sizes : ndarray of float64, shape (n,) in whole blocks
        0 where there is no cluster.
    out : ndarray of float64, shape (n,) in whole blocks
        Overwritten.

    Returns
    -------
    bool
        As of `fill_student`.
    """
    return _student_columns_by_lanes(
        table, height, row, row.shape[0], n, int(own), ratios, least, drop, sizes, out
    )


fill_student = _fill_student if LANES else fill_student_plainly
fill_student_columns = _fill_student_columns if LANES else fill_student_columns_plainly
