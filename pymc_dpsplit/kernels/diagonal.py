"""Normal log densities of a tile under independent features, constant - |(x - mu) p|^2 / 2.

The difference is computed before it is scaled, as the expanded square would cancel.
"""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, VECTORS, index, lanes_for, written_once
from pymc_dpsplit.kernels.tiles import TILE


@jitted
def fill_log_independent_plainly(tile, mu, precision, constant, out):
    """Plain twin of `fill_log_independent`, without vector code.

    Parameters
    ----------
    tile : ndarray of float64 or float32, shape (>= D * TILE,)
    mu, precision : ndarrays of the same type, shape (D,)
    constant : float
    out : ndarray of the same type, shape (TILE,)
    """
    for t in range(TILE):
        out[t] = 0.0
    for d in range(mu.shape[0]):
        for t in range(TILE):
            e = (tile[d * TILE + t] - mu[d]) * precision[d]
            out[t] += e * e
    for t in range(TILE):
        out[t] = constant - 0.5 * out[t]


def _write(
    builder: Any, tile: Any, mu: Any, precision: Any, n: Any, constant: Any, out: Any
) -> None:
    lanes = lanes_for(builder, out)
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        totals = [lanes.variable(lanes.constant(0.0)) for _ in range(VECTORS)]
        with lanes.steps(index(0), n, 1) as (d, _):
            feature = builder.mul(d, index(TILE))
            centre = lanes.splat(lanes.scalar(mu, d))
            scale = lanes.splat(lanes.scalar(precision, d))
            for start, total in zip(starts, totals, strict=True):
                x = lanes.load(tile, builder.add(feature, start))
                e = builder.fmul(builder.fsub(x, centre), scale)
                builder.store(lanes.fma(e, e, builder.load(total)), total)
        for start, total in zip(starts, totals, strict=True):
            half = lanes.constant(-0.5)
            value = lanes.fma(half, builder.load(total), lanes.splat(constant))
            lanes.store(value, out, start)


@intrinsic
def _fill_by_lanes(typing_context, tile, mu, precision, n_features, constant, out):
    generate = written_once(f"fill_log_independent_{out.dtype}", _write)
    return types.void(tile, mu, precision, n_features, out.dtype, out), generate


@jitted_inlined
def _fill_log_independent(tile, mu, precision, constant, out):
    """Write constant - |(x - mu) p|^2 / 2 for each observation of a tile into `out`.

    Parameters
    ----------
    tile : ndarray of float64 or float32, shape (>= D * TILE,)
    mu, precision : ndarrays of the same type, shape (D,)
        `precision` is the inverse of the standard deviation.
    constant : float
    out : ndarray of the same type, shape (TILE,)
    """
    _fill_by_lanes(tile, mu, precision, mu.shape[0], constant, out)


fill_log_independent = _fill_log_independent if LANES else fill_log_independent_plainly
