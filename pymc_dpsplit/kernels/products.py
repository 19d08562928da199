"""Small matrix products added to an array, with columns along the lanes.

Up to AT_ONCE rows by VECTORS vectors are kept in registers while the inner index runs; columns
beyond the last one of a block are masked.
"""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import BLOCK, LANES, Lanes, index, written_once

AT_ONCE = 4
_ITEM = 8


@jitted
def add_product_plainly(sign, left, right, rows, n_inner, columns, out):
    """Plain twin of `add_product`, without vector code; see `_add_product`.

    Parameters
    ----------
    sign : float
    left, right : ndarrays of float64, shape (any, any)
    rows : tuple of two int
    n_inner : int
    columns : tuple of two int
    out : ndarray of float64, shape (any, any)
    """
    for r in range(rows[0], rows[1]):
        for m in range(n_inner):
            factor = sign * left[r, m]
            for b in range(columns[0], columns[1]):
                out[r, b] += factor * right[m, b]


def _add_rows(lanes: Lanes, parts: list[Any], row: Any, n_rows: int, block: Any, stop: Any) -> None:
    """Write the code for some rows of one block of columns."""
    sign, left, left_pitch, right, right_pitch, out, out_pitch, n_inner = parts
    builder, starts = lanes.builder, lanes.within(block)
    masks = [lanes.before(builder.sub(stop, start)) for start in starts]
    rows = [builder.add(row, index(i)) for i in range(n_rows)]
    places, sums = [], []
    for r in rows:
        own = [builder.add(builder.mul(r, out_pitch), start) for start in starts]
        loaded = [lanes.load_masked(out, at, mask) for at, mask in zip(own, masks, strict=True)]
        places.append(own)
        sums.append([lanes.variable(value) for value in loaded])
    with lanes.steps(index(0), n_inner, 1) as (m, _):
        at = builder.mul(m, right_pitch)
        x = [
            lanes.load_masked(right, builder.add(at, start), mask)
            for start, mask in zip(starts, masks, strict=True)
        ]
        for r, row_sums in zip(rows, sums, strict=True):
            number = lanes.scalar(left, builder.add(builder.mul(r, left_pitch), m))
            factor = lanes.splat(builder.fmul(sign, number))
            for x_v, y in zip(x, row_sums, strict=True):
                builder.store(lanes.fma(factor, x_v, builder.load(y)), y)
    for own, row_sums in zip(places, sums, strict=True):
        for at, y, mask in zip(own, row_sums, masks, strict=True):
            lanes.store_masked(builder.load(y), out, at, mask)


def _write(
    builder: Any,
    sign: Any,
    left: Any,
    left_pitch: Any,
    right: Any,
    right_pitch: Any,
    out: Any,
    out_pitch: Any,
    n_inner: Any,
    first: Any,
    last: Any,
    start: Any,
    stop: Any,
) -> None:
    lanes = Lanes(builder)
    parts = [sign, left, left_pitch, right, right_pitch, out, out_pitch, n_inner]
    whole = builder.sub(last, builder.srem(builder.sub(last, first), index(AT_ONCE)))
    with lanes.steps(start, stop, BLOCK) as (block, _):
        with lanes.steps(first, whole, AT_ONCE) as (row, _):
            _add_rows(lanes, parts, row, AT_ONCE, block, stop)
        with lanes.steps(whole, last, 1) as (row, _):
            _add_rows(lanes, parts, row, 1, block, stop)


@intrinsic
def _add_by_lanes(
    typing_context,
    sign,
    left,
    left_pitch,
    right,
    right_pitch,
    out,
    out_pitch,
    n_inner,
    first,
    last,
    start,
    stop,
):
    generate = written_once("add_product", _write)
    pitches = (left, left_pitch, right, right_pitch, out, out_pitch)
    return types.void(sign, *pitches, n_inner, first, last, start, stop), generate


@jitted_inlined
def _add_product(sign, left, right, rows, n_inner, columns, out):
    """Add to out[r, b] the sum over m of sign * left[r, m] * right[m, b], in the order of m.

    Parameters
    ----------
    sign : float
        1.0 or -1.0.
    left, right, out : ndarrays of float64, shapes (>= rows[1], >= M), (>= M, >= columns[1]),
        (>= rows[1], >= columns[1])
        Contiguous along rows.  If `out` and `right` are the same array, the rows of `out` that are
        written must not be among the first M rows.
    rows, columns : tuples of two int
        First r and b, and the ends, exclusive.
    n_inner : int
        M.
    """
    _add_by_lanes(
        sign,
        left,
        left.strides[0] // _ITEM,
        right,
        right.strides[0] // _ITEM,
        out,
        out.strides[0] // _ITEM,
        n_inner,
        rows[0],
        rows[1],
        columns[0],
        columns[1],
    )


# Vectors of two numbers have no masked loads.
add_product = _add_product if LANES > 2 else add_product_plainly
