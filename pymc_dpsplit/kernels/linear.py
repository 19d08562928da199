"""Log densities of a tile that are linear in its features: constant + extra + sum_d slope_d x_d.

The last row of such a tile, after the features, holds `extra`, the terms that do not depend on the
cluster.
"""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once
from pymc_dpsplit.kernels.tiles import TILE


@jitted
def fill_log_linear_plainly(tile, slopes, constant, out):
    """Plain twin of `fill_log_linear`, without vector code.

    Parameters
    ----------
    tile : ndarray of float64, shape (>= (D + 1) * TILE,)
        The features, then `extra`.
    slopes : ndarray of float64, shape (D,)
    constant : float
    out : ndarray of float64, shape (TILE,)
    """
    last = slopes.shape[0] * TILE
    for t in range(TILE):
        out[t] = constant + tile[last + t]
    for d in range(slopes.shape[0]):
        for t in range(TILE):
            out[t] += tile[d * TILE + t] * slopes[d]


def _write(builder: Any, tile: Any, slopes: Any, n: Any, constant: Any, out: Any) -> None:
    lanes = Lanes(builder)
    last = builder.mul(n, index(TILE))
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        totals = []
        for start in starts:
            extra = lanes.load(tile, builder.add(last, start))
            totals.append(lanes.variable(builder.fadd(extra, lanes.splat(constant))))
        with lanes.steps(index(0), n, 1) as (d, _):
            feature = builder.mul(d, index(TILE))
            slope = lanes.splat(lanes.scalar(slopes, d))
            for start, total in zip(starts, totals, strict=True):
                x = lanes.load(tile, builder.add(feature, start))
                builder.store(lanes.fma(x, slope, builder.load(total)), total)
        for start, total in zip(starts, totals, strict=True):
            lanes.store(builder.load(total), out, start)


@intrinsic
def _fill_by_lanes(typing_context, tile, slopes, n_features, constant, out):
    generate = written_once("fill_log_linear", _write)
    return types.void(tile, slopes, n_features, constant, out), generate


@jitted_inlined
def _fill_log_linear(tile, slopes, constant, out):
    """Write constant + extra + sum_d slope_d x_d for each observation of a tile into `out`.

    Parameters
    ----------
    tile : ndarray of float64, shape (>= (D + 1) * TILE,)
        The features, then `extra`.
    slopes : ndarray of float64, shape (D,)
    constant : float
    out : ndarray of float64, shape (TILE,)
    """
    _fill_by_lanes(tile, slopes, slopes.shape[0], constant, out)


fill_log_linear = _fill_log_linear if LANES else fill_log_linear_plainly
