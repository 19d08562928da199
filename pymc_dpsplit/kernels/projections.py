"""Smallest squared projections of a tile, which bound densities without evaluating them.

This is one product of the tile with a vector per atom, observations along the lanes as in
`quadratic`.
"""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.tiles import TILE

# Rows at a time, by VECTORS vectors: enough accumulators to hide the latency of an addition.
ROWS = 4
# Number of elements of a row before its direction.
HEAD = 2


@jitted
def fill_highest_plainly(tile, table, n_features, reference, out):
    """Plain twin of `fill_highest`, without vector code.

    Parameters
    ----------
    tile : ndarray of float64, shape (>= D * TILE,)
    table : ndarray of float64, shape (R * (HEAD + D),)
    n_features : int
    reference : ndarray of float64, shape (TILE,)
    out : ndarray of float64, shape (R,)
    """
    width = HEAD + n_features
    for r in range(out.shape[0]):
        at = r * width
        highest = -1e300
        for t in range(TILE):
            y = -table[at + 1]
            for j in range(n_features):
                y += table[at + HEAD + j] * tile[j * TILE + t]
            value = table[at] - 0.5 * y * y - reference[t]
            highest = value if value > highest else highest
        out[r] = highest


def _write(
    builder: Any, tile: Any, table: Any, n: Any, reference: Any, n_rows: Any, out: Any
) -> None:
    lanes = Lanes(builder)
    width = builder.add(n, index(HEAD))
    with lanes.steps(index(0), n_rows, ROWS) as (first, _):
        rows = [builder.mul(builder.add(first, index(i)), width) for i in range(ROWS)]
        tops = [lanes.variable(lanes.constant(-1e300)) for _ in rows]
        with lanes.blocks(TILE) as (block, _):
            _write_block(lanes, tile, table, n, reference, rows, block, tops)
        for i, top in enumerate(tops):
            value = lanes.largest(builder.load(top))
            builder.store(value, builder.gep(out, [builder.add(first, index(i))]))


def _write_block(
    lanes: Lanes,
    tile: Any,
    table: Any,
    n: Any,
    reference: Any,
    rows: list[Any],
    block: Any,
    tops: list[Any],
) -> None:
    """Write the code that raises `tops` to the largest values of some rows in a block."""
    builder, starts = lanes.builder, lanes.within(block)
    sums = []
    for row in rows:
        offset = lanes.splat(builder.fneg(lanes.scalar(table, builder.add(row, index(1)))))
        sums.append([lanes.variable(offset) for _ in starts])
    with lanes.steps(index(0), n, 1) as (j, _):
        feature = builder.mul(j, index(TILE))
        x = [lanes.load(tile, builder.add(feature, start)) for start in starts]
        for row, row_sums in zip(rows, sums, strict=True):
            at = builder.add(row, builder.add(j, index(HEAD)))
            weight = lanes.splat(lanes.scalar(table, at))
            for y, x_v in zip(row_sums, x, strict=True):
                builder.store(lanes.fma(weight, x_v, builder.load(y)), y)
    for row, row_sums, top in zip(rows, sums, tops, strict=True):
        constant = lanes.splat(lanes.scalar(table, row))
        for y, start in zip(row_sums, starts, strict=True):
            total = builder.load(y)
            half = builder.fmul(total, lanes.constant(-0.5))
            gap = builder.fsub(constant, lanes.load(reference, start))
            value = lanes.fma(half, total, gap)
            builder.store(lanes.larger(value, builder.load(top)), top)


@intrinsic
def _fill_by_lanes(typing_context, tile, table, n_features, reference, n_rows, out):
    generate = written_once("fill_highest", _write)
    return types.void(tile, table, n_features, reference, n_rows, out), generate


@jitted_inlined
def _fill_highest(tile, table, n_features, reference, out):
    """Write the maximum over a tile of a - (g'x - h)^2 / 2 - reference, for each row of a table.

    Parameters
    ----------
    tile : ndarray of float64, shape (>= D * TILE,)
    table : ndarray of float64, shape (R * (HEAD + D),)
        Rows (a, h, g), g of length D.
    n_features : int
    reference : ndarray of float64, shape (TILE,)
    out : ndarray of float64, shape (R,)
        Overwritten; R is a multiple of ROWS.
    """
    _fill_by_lanes(tile, table, n_features, reference, out.shape[0], out)


fill_highest = _fill_highest if LANES else fill_highest_plainly
