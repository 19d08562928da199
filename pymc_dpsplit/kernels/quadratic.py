"""Normal log densities of a tile, constant - |W x - c|^2 / 2, the innermost loop of the package.

Observations run along the lanes.  Four rows of W by VECTORS vectors of observations are kept in
registers while the columns run, so that a multiply-add costs half a load.  The zeros above the
diagonal are skipped; each number of remaining rows has its own code.
"""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, VECTORS, index, lanes_for, written_once
from pymc_dpsplit.kernels.tiles import TILE

_ROWS = 4


@jitted
def fill_log_normal_plainly(tile, whitening, centre, constant, out, scratch):
    """Plain twin of `fill_log_normal`, without vector code.

    Parameters
    ----------
    tile : ndarray of float64 or float32, shape (>= D * TILE,)
    whitening : ndarray of the same type, shape (D, D)
    centre : ndarray of the same type, shape (D,)
    constant : float
    out : ndarray of the same type, shape (TILE,)
    scratch : ndarray of the same type, shape (>= TILE,)
    """
    for t in range(TILE):
        out[t] = 0.0
    for r in range(centre.shape[0]):
        for t in range(TILE):
            scratch[t] = -centre[r]
        for j in range(r + 1):
            w = whitening[r, j]
            for t in range(TILE):
                scratch[t] += w * tile[j * TILE + t]
        for t in range(TILE):
            out[t] += scratch[t] * scratch[t]
    for t in range(TILE):
        out[t] = constant - 0.5 * out[t]


class _Norms:
    """Writer of the code that sums the squares of rows of W x - c over a block of observations."""

    def __init__(self, builder: Any, tile: Any, whitening: Any, centre: Any, n: Any) -> None:
        self.builder, self.lanes = builder, lanes_for(builder, tile)
        self.tile, self.whitening, self.centre, self.n = tile, whitening, centre, n

    def add_rows(self, n_rows: int, row: Any, block: Any, totals: list[Any]) -> None:
        """Add the squares of the rows row .. row + n_rows - 1 to `totals`.

        Parameters
        ----------
        n_rows : int
        row, block : LLVM value
        totals : list of LLVM values
            One accumulator per vector of the block.
        """
        builder, lanes = self.builder, self.lanes
        rows = [builder.add(row, index(i)) for i in range(n_rows)]
        sums = []
        for i in range(n_rows):
            minus_c = lanes.splat(builder.fneg(lanes.scalar(self.centre, rows[i])))
            sums.append([lanes.variable(minus_c) for _ in range(VECTORS)])
        with lanes.steps(index(0), row, 1) as (column, _):
            self._add_column(column, rows, sums, block)
        for i in range(n_rows):
            self._add_column(rows[i], rows[i:], sums[i:], block)
        for row_sums in sums:
            for y, total in zip(row_sums, totals, strict=True):
                value = builder.load(y)
                builder.store(lanes.fma(value, value, builder.load(total)), total)

    def _add_column(self, column: Any, rows: list[Any], sums: list[list[Any]], block: Any) -> None:
        """Add one column of W times its feature to the sums of some rows."""
        builder, lanes = self.builder, self.lanes
        feature = builder.mul(column, index(TILE))
        x = [lanes.load(self.tile, builder.add(feature, t)) for t in lanes.within(block)]
        for row, row_sums in zip(rows, sums, strict=True):
            at = builder.add(builder.mul(row, self.n), column)
            w = lanes.splat(lanes.scalar(self.whitening, at))
            for y, x_v in zip(row_sums, x, strict=True):
                builder.store(lanes.fma(w, x_v, builder.load(y)), y)


def _write_log_normal(
    builder: Any, tile: Any, whitening: Any, centre: Any, n: Any, constant: Any, out: Any
) -> None:
    norms, lanes = _Norms(builder, tile, whitening, centre, n), lanes_for(builder, out)
    left = builder.srem(n, index(_ROWS))
    whole = builder.sub(n, left)
    with lanes.blocks(TILE) as (block, _):
        totals = [lanes.variable(lanes.constant(0.0)) for _ in range(VECTORS)]
        with lanes.steps(index(0), whole, _ROWS) as (row, _):
            norms.add_rows(_ROWS, row, block, totals)
        for n_rows in range(1, _ROWS):
            with builder.if_then(builder.icmp_signed("==", left, index(n_rows))):
                norms.add_rows(n_rows, whole, block, totals)
        for total, t in zip(totals, lanes.within(block), strict=True):
            half = lanes.constant(-0.5)
            value = lanes.fma(half, builder.load(total), lanes.splat(constant))
            lanes.store(value, out, t)


@intrinsic
def _fill_by_lanes(typing_context, tile, whitening, centre, n_features, constant, out):
    generate = written_once(f"fill_log_normal_{out.dtype}", _write_log_normal)
    return types.void(tile, whitening, centre, n_features, out.dtype, out), generate


@jitted_inlined
def _fill_log_normal_by_lanes(tile, whitening, centre, constant, out, scratch):
    """Write constant - |W x - c|^2 / 2 for each observation of a tile into `out`.

    Parameters
    ----------
    tile : ndarray of float64 or float32, shape (>= D * TILE,)
    whitening : ndarray of the same type, shape (D, D)
        C-contiguous; only its lower triangle is read.
    centre : ndarray of the same type, shape (D,)
    constant : float
    out : ndarray of the same type, shape (TILE,)
    scratch : ndarray of the same type, shape (>= TILE,)
    """
    _fill_by_lanes(tile, whitening, centre, centre.shape[0], constant, out)


fill_log_normal = _fill_log_normal_by_lanes if LANES else fill_log_normal_plainly
