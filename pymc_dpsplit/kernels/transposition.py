"""Rows of a matrix laid out feature by feature, in squares of LANES x LANES numbers in registers.

If numbers were written one by one, each would go to another cache line.
"""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once


@jitted
def transpose_rows_plainly(x, shift, rows, tile):
    """Plain twin of `transpose_rows`, without vector code.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, D)
    shift : ndarray of float64, shape (D,)
    rows : ndarray of int64, shape (n,)
    tile : ndarray of float64 or float32, shape (>= D * n,)
    """
    n_rows, n_features = rows.shape[0], x.shape[1]
    for t in range(n_rows):
        i = rows[t]
        for j in range(n_features):
            tile[j * n_rows + t] = x[i, j] - shift[j]


def _exchange(lanes: Lanes, square: list[Any], size: int) -> list[Any]:
    """Exchange the blocks of `size` x `size` numbers on either side of the diagonal."""
    exchanged = list(square)
    kind = ir.VectorType(ir.IntType(32), LANES)
    upper = [lane ^ size | LANES if lane & size else lane for lane in range(LANES)]
    lower = [lane | LANES if lane & size else lane | size for lane in range(LANES)]
    for a in range(LANES):
        if not a & size:
            pair = square[a], square[a | size]
            exchanged[a] = lanes.builder.shuffle_vector(*pair, ir.Constant(kind, upper))
            exchanged[a | size] = lanes.builder.shuffle_vector(*pair, ir.Constant(kind, lower))
    return exchanged


def _transposed(lanes: Lanes, square: list[Any]) -> list[Any]:
    size = LANES // 2
    while size > 0:
        square = _exchange(lanes, square, size)
        size //= 2
    return square


def _write_narrow(
    builder: Any, x: Any, n_features: Any, pitch: Any, shift: Any, rows: Any, n_rows: Any, tile: Any
) -> None:
    """Fewer features than lanes.  LLVM leaves out what makes features that are not written."""
    half = LANES // 2
    is_half = builder.icmp_signed("<=", n_features, index(half))
    with builder.if_else(is_half) as (then, otherwise):
        for block, most in ((then, half), (otherwise, LANES)):
            with block:
                _write_few(Lanes(builder), x, n_features, pitch, shift, rows, n_rows, tile, most)


def _write_few(
    lanes: Lanes,
    x: Any,
    n_features: Any,
    pitch: Any,
    shift: Any,
    rows: Any,
    n_rows: Any,
    tile: Any,
    most: int,
) -> None:
    builder = lanes.builder
    present = lanes.before(n_features)
    centre = lanes.load_masked(shift, index(0), present)
    with lanes.steps(index(0), n_rows, LANES) as (t, _):
        at = [lanes.scalar(rows, builder.add(t, index(lane))) for lane in range(LANES)]
        square = [lanes.load_masked(x, builder.mul(i, pitch), present) for i in at]
        square = _transposed(lanes, [builder.fsub(row, centre) for row in square])
        for lane, feature in enumerate(square[:most]):
            with builder.if_then(builder.icmp_signed("<", index(lane), n_features)):
                lanes.store(feature, tile, builder.add(builder.mul(index(lane), n_rows), t))


def _write(
    builder: Any, x: Any, n_features: Any, pitch: Any, shift: Any, rows: Any, n_rows: Any, tile: Any
) -> None:
    lanes = Lanes(builder)
    last = builder.sub(n_features, index(LANES))
    with lanes.steps(index(0), n_rows, LANES) as (t, _):
        at = [lanes.scalar(rows, builder.add(t, index(lane))) for lane in range(LANES)]
        starts = [builder.mul(i, pitch) for i in at]
        with lanes.steps(index(0), n_features, LANES) as (step, _):
            # The last square may overlap the previous one.
            j = builder.select(builder.icmp_signed("<", step, last), step, last)
            centre = lanes.load(shift, j)
            square = [lanes.load_widened(x, builder.add(start, j)) for start in starts]
            square = _transposed(lanes, [builder.fsub(row, centre) for row in square])
            for lane, feature in enumerate(square):
                column = builder.mul(builder.add(j, index(lane)), n_rows)
                lanes.store(feature, tile, builder.add(column, t))


@intrinsic
def _transpose_by_lanes(typing_context, x, n_features, pitch, shift, rows, n_rows, tile):
    name = f"transpose_rows_{x.dtype}_{tile.dtype}"
    generate = written_once(name, _write)
    return types.void(x, n_features, pitch, shift, rows, n_rows, tile), generate


@intrinsic
def _transpose_few_by_lanes(typing_context, x, n_features, pitch, shift, rows, n_rows, tile):
    name = f"transpose_few_{x.dtype}_{tile.dtype}"
    generate = written_once(name, _write_narrow)
    return types.void(x, n_features, pitch, shift, rows, n_rows, tile), generate


@jitted_inlined
def _transpose_rows(x, shift, rows, tile):
    """Write some rows of a matrix, less a shift, as columns.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, D)
        Contiguous along rows: a C-contiguous matrix, or adjacent columns of one.
    shift : ndarray of float64, shape (D,)
    rows : ndarray of int64, shape (n,)
        n is a multiple of eight.
    tile : ndarray of float64 or float32, shape (>= D * n,)
        Overwritten: feature j of row t becomes element j * n + t.
    """
    pitch = x.strides[0] // x.itemsize
    if x.shape[1] < LANES:
        _transpose_few_by_lanes(x, x.shape[1], pitch, shift, rows, rows.shape[0], tile)
    else:
        _transpose_by_lanes(x, x.shape[1], pitch, shift, rows, rows.shape[0], tile)


transpose_rows = _transpose_rows if LANES else transpose_rows_plainly
