"""Squared distances of one observation under all clusters of a table, in vector code over clusters.

The triangular systems L y = x - mu of a block of clusters are solved by groups of rows, in each of
which four sums grow side by side.  The squares so far add up to a lower bound of |y|^2.  A block is
left as soon as all of its clusters are unlikely to be chosen, whatever the rest of y is.
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
from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined, jitted_inlined_uncounted
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once

# Rows of a group; the first D % 4 rows are groups of their own.
_GROUP = 4
_NOTHING = ir.Constant(ir.DoubleType(), -math.inf)
# Elements of the triangle that must be left for a bound to be compared; with fewer it is quicker
# to go on.
_LEAST_LEFT = 16


@jitted_inlined_uncounted
def _end_of_group(begin, n_features):
    return begin + (1 if begin < n_features % _GROUP else _GROUP)


@jitted_inlined_uncounted
def fill_triangle(factor, n_features, table, at):
    """Write the elements of a Cholesky factor below the diagonal, each over that of its row.

    They follow each other by groups of rows, within a group by columns.  Before them the table has
    the inverse diagonal.

    Parameters
    ----------
    factor : ndarray of float64, shape (D, D)
        Lower triangular.
    n_features : int
    table : ndarray of float64
        Changed.
    at : int
        Place of the first element.
    """
    begin, inverse = 0, at - n_features * WIDE
    while begin < n_features:
        end = _end_of_group(begin, n_features)
        for e in range(end - 1):
            for d in range(max(begin, e + 1), end):
                table[at] = factor[d, e] * table[inverse + d * WIDE]
                at += WIDE
        begin = end


@jitted_inlined
def _limit_by_own(table, height, own, squared, ratio, drop):
    """Return the log density below which clusters are left, given the distance under the own one.

    The log density of the own cluster without the observation is c' + (h - 1) log(1 - z), and
    log(1 - z) is at least -z / (1 - z).
    """
    at = own // WIDE * height * WIDE + (height - 4) * WIDE + own % WIDE
    z = ratio * table[at + WIDE] * squared
    if not z < 1.0:
        return -math.inf
    return table[at + 3 * WIDE] - (table[at + 2 * WIDE] - 1.0) * (z / (1.0 - z)) - drop


@jitted
def _is_beyond(table, at, squared, sizes, first, limit):
    """Whether c - h log(1 + f q) is less than the limit in a whole block.

    log(1 + x) is at least 3x (2 + x) / (6 + 6x + x^2), its Pade approximant.
    """
    for t in range(WIDE):
        x = table[at + WIDE + t] * squared[first + t]
        above = (table[at + t] - limit) * (x * (x + 6.0) + 6.0)
        fall = 3.0 * table[at + 2 * WIDE + t] * (x * (x + 2.0))
        if sizes[first + t] > 0.0 and not above < fall:
            return False
    return True


@jitted
def _solve_group(table, start, row, begin, end, at, scratch, squared, first):
    """Solve a group of rows of a block; return the place of the next element."""
    n_features = row.shape[0]
    for d in range(begin, end):
        to, mean = d * WIDE, start + d * WIDE
        for t in range(WIDE):
            gap = row[d] - table[mean + t]
            scratch[to + t] = gap * table[mean + n_features * WIDE + t]
    for e in range(end - 1):
        for d in range(max(begin, e + 1), end):
            for t in range(WIDE):
                scratch[d * WIDE + t] -= table[at + t] * scratch[e * WIDE + t]
            at += WIDE
    for d in range(begin, end):
        for t in range(WIDE):
            squared[first + t] += scratch[d * WIDE + t] * scratch[d * WIDE + t]
    return at


@jitted
def _solve_block(table, height, row, first, limit, sizes, scratch, squared):
    n_features, start = row.shape[0], first * height
    coefficients = start + (height - 4) * WIDE
    at, begin = start + 2 * n_features * WIDE, 0
    squared[first : first + WIDE] = 0.0
    while begin < n_features:
        end = _end_of_group(begin, n_features)
        at = _solve_group(table, start, row, begin, end, at, scratch, squared, first)
        begin = end
        is_compared = begin >= _GROUP and coefficients - at >= _LEAST_LEFT * WIDE
        if is_compared and _is_beyond(table, coefficients, squared, sizes, first, limit):
            return


@jitted
def fill_squared_solves_plainly(
    table, height, row, n, own, ratio, least, drop, sizes, scratch, squared
):
    """Plain twin of `fill_squared_solves`, without vector code.

    Parameters
    ----------
    table : ndarray of float64
    height : int
    row : ndarray of float64, shape (D,)
    n, own : int
    ratio, least, drop : float
    sizes, scratch, squared : ndarray of float64
    """
    limit = least if own < 0 else -math.inf
    for turn in range(0, n, WIDE):
        first = block_of_turn(turn, own)
        _solve_block(table, height, row, first, limit, sizes, scratch, squared)
        if turn == 0 and own >= 0:
            limit = max(least, _limit_by_own(table, height, own, squared[own], ratio, drop))


class _Block:
    """Code that solves the systems of one block of clusters, a group of rows at a time.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    table, start, row, d, scratch : LLVM value
        `start` is the place of the block, `d` the number of features.
    """

    def __init__(
        self, builder: Any, table: Any, start: Any, row: Any, d: Any, scratch: Any
    ) -> None:
        self.lanes, self.builder = Lanes(builder, WIDE), builder
        self.table, self.start, self.row, self.scratch = table, start, row, scratch
        self.to_inverse = times_wide(builder, d)
        first = builder.add(start, builder.add(self.to_inverse, self.to_inverse))
        self.at = self.lanes.variable(first)
        self.total = self.lanes.variable(self.lanes.constant(0.0))

    def write_group(self, begin: Any, n_rows: int) -> None:
        """Write the code of so many rows from `begin` on."""
        builder, lanes = self.builder, self.lanes
        rows = [builder.add(begin, index(r)) for r in range(n_rows)]
        sums = [lanes.variable(self._scaled_gap(d)) for d in rows]
        with lanes.steps(index(0), begin, 1) as (e, _):
            solved = lanes.load(self.scratch, times_wide(builder, e))
            self._subtract(solved, sums)
        total = builder.load(self.total)
        for r, d in enumerate(rows):
            solved = builder.load(sums[r])
            lanes.store(solved, self.scratch, times_wide(builder, d))
            self._subtract(solved, sums[r + 1 :])
            total = lanes.fma(solved, solved, total)
        builder.store(total, self.total)

    def _scaled_gap(self, d: Any) -> Any:
        builder, lanes = self.builder, self.lanes
        at = builder.add(self.start, times_wide(builder, d))
        gap = builder.fsub(lanes.splat(lanes.scalar(self.row, d)), lanes.load(self.table, at))
        return builder.fmul(gap, lanes.load(self.table, builder.add(at, self.to_inverse)))

    def _subtract(self, solved: Any, sums: list[Any]) -> None:
        """Subtract an element of the solution times the next elements of the triangle."""
        builder, minus, at = self.builder, self.builder.fneg(solved), self.builder.load(self.at)
        for r, each in enumerate(sums):
            element = self.lanes.load(self.table, builder.add(at, index(r * WIDE)))
            builder.store(self.lanes.fma(element, minus, builder.load(each)), each)
        builder.store(builder.add(at, index(len(sums) * WIDE)), self.at)


def _write_is_beyond(
    lanes: Lanes, table: Any, at: Any, total: Any, sizes: Any, first: Any, limit: Any
) -> Any:
    """Write the code of `_is_beyond`."""
    builder = lanes.builder
    x = builder.fmul(lanes.load(table, builder.add(at, index(WIDE))), total)
    h = lanes.load(table, builder.add(at, index(2 * WIDE)))
    above = builder.fsub(lanes.load(table, at), lanes.splat(limit))
    below = lanes.fma(x, builder.fadd(x, lanes.constant(6.0)), lanes.constant(6.0))
    fall = builder.fmul(builder.fmul(h, lanes.constant(3.0)), x)
    fall = builder.fmul(fall, builder.fadd(x, lanes.constant(2.0)))
    is_less = builder.fcmp_ordered("<", builder.fmul(above, below), fall)
    is_none = builder.fcmp_ordered("<=", lanes.load(sizes, first), lanes.constant(0.0))
    return lanes.all(builder.or_(is_less, is_none))


def _write_limit_by_own(
    lanes: Lanes, table: Any, at: Any, squared: Any, own: Any, ratio: Any, drop: Any
) -> Any:
    """Write the code of `_limit_by_own`."""
    builder, one = lanes.builder, ir.Constant(ir.DoubleType(), 1.0)
    place = builder.add(at, builder.and_(own, index(WIDE - 1)))
    f, h, c = (lanes.scalar(table, builder.add(place, index(r * WIDE))) for r in (1, 2, 3))
    z = builder.fmul(builder.fmul(ratio, f), lanes.scalar(squared, own))
    fall = builder.fmul(builder.fsub(h, one), builder.fdiv(z, builder.fsub(one, z)))
    limit = builder.fsub(builder.fsub(c, fall), drop)
    return builder.select(builder.fcmp_ordered("<", z, one), limit, _NOTHING)


def _write_squared_solves(
    builder: Any,
    table: Any,
    height: Any,
    row: Any,
    d: Any,
    n: Any,
    own: Any,
    ratio: Any,
    least: Any,
    drop: Any,
    sizes: Any,
    scratch: Any,
    squared: Any,
) -> None:
    lanes = Lanes(builder, WIDE)
    has_own = builder.icmp_signed(">=", own, index(0))
    head, n_groups = builder.and_(d, index(_GROUP - 1)), builder.udiv(d, index(_GROUP))
    to_coefficients = times_wide(builder, builder.sub(height, index(4)))
    limit = lanes.variable(builder.select(has_own, _NOTHING, least))
    with lanes.steps(index(0), n, WIDE) as (turn, _):
        first = write_block_of_turn(builder, turn, has_own, own)
        start = builder.mul(first, height)
        at = builder.add(start, to_coefficients)
        block = _Block(builder, table, start, row, d, scratch)
        with lanes.steps(index(0), head, 1) as (begin, _):
            block.write_group(begin, 1)
        with cgutils.for_range(builder, n_groups, intp=ir.IntType(64)) as loop:
            begin = builder.add(head, builder.mul(loop.index, index(_GROUP)))
            block.write_group(begin, _GROUP)
            left = builder.sub(at, builder.load(block.at))
            with builder.if_then(builder.icmp_signed(">=", left, index(_LEAST_LEFT * WIDE))):
                total, now = builder.load(block.total), builder.load(limit)
                is_beyond = _write_is_beyond(lanes, table, at, total, sizes, first, now)
                with builder.if_then(is_beyond):
                    loop.do_break()
        lanes.store(builder.load(block.total), squared, first)
        is_first = builder.icmp_signed("==", turn, index(0))
        with builder.if_then(builder.and_(is_first, has_own)):
            by_own = _write_limit_by_own(lanes, table, at, squared, own, ratio, drop)
            is_larger = builder.fcmp_ordered(">", by_own, least)
            builder.store(builder.select(is_larger, by_own, least), limit)


@intrinsic
def _squared_solves_by_lanes(
    typing_context, table, height, row, d, n, own, ratio, least, drop, sizes, scratch, squared
):
    generate = written_once("fill_squared_solves", _write_squared_solves, inlined=True)
    given = table, height, row, d, n, own, ratio, least, drop, sizes, scratch, squared
    return types.void(*given), generate


@jitted_inlined
def _fill_squared_solves(table, height, row, n, own, ratio, least, drop, sizes, scratch, squared):
    """Write |L^-1 (x - mu)|^2 of an observation x under each cluster, or lower bounds.

    Bounds are written for a block of clusters whose log densities c - h log(1 + f q) are all less
    than `least`, or by more than `drop` less than that of the own cluster without the observation;
    then those densities are so with the bound as q, too.

    Parameters
    ----------
    table : ndarray of float64
        Per cluster: mu (D), the inverse diagonal of L (D), the elements of L below the diagonal as
        `fill_triangle` writes them, and the numbers c, f, h and c' of `fill_student`.
    height : int
    row : ndarray of float64, shape (D,)
        The observation.
    n : int
        Clusters; rounded up to whole blocks.
    own : int
        The own cluster, -1 if there is none.
    ratio : float
        Of `fill_student`.
    least, drop : float
        -inf and inf if bounds will not do.
    sizes : ndarray of float64, shape (n,) in whole blocks
        0 where there is no cluster.
    scratch : ndarray of float64, shape (D * WIDE,)
        Workspace.
    squared : ndarray of float64, shape (n,) in whole blocks
        Overwritten.
    """
    d = row.shape[0]
    _squared_solves_by_lanes(
        table, height, row, d, n, int(own), ratio, least, drop, sizes, scratch, squared
    )


fill_squared_solves = _fill_squared_solves if LANES else fill_squared_solves_plainly
