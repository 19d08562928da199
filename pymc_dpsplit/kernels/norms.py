"""Largest norm of the observations of a tile, which bounds what is computed from any of them."""

import math
from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, index, lanes_for, written_once
from pymc_dpsplit.kernels.tiles import TILE


@jitted
def largest_norm_plainly(tile, n_features):
    """Plain twin of `largest_norm`, without vector code.

    Parameters
    ----------
    tile : ndarray of float32, shape (>= D * TILE,)
    n_features : int

    Returns
    -------
    float
    """
    largest = 0.0
    for t in range(TILE):
        square = 0.0
        for d in range(n_features):
            square += float(tile[d * TILE + t]) ** 2
        largest = max(largest, square)
    return math.sqrt(largest)


def _write(builder: Any, tile: Any, n_features: Any) -> Any:
    """Write the code of the largest square, one that is NaN being left out."""
    lanes = lanes_for(builder, tile)
    largest = lanes.variable(lanes.constant(0.0))
    with lanes.blocks(TILE) as (block, _):
        starts = lanes.within(block)
        squares = [lanes.variable(lanes.constant(0.0)) for _ in starts]
        with lanes.steps(index(0), n_features, 1) as (d, _):
            feature = builder.mul(d, index(TILE))
            for start, square in zip(starts, squares, strict=True):
                x = lanes.load(tile, builder.add(feature, start))
                builder.store(lanes.fma(x, x, builder.load(square)), square)
        for square in squares:
            builder.store(lanes.larger(builder.load(square), builder.load(largest)), largest)
    return lanes.largest(builder.load(largest))


@intrinsic
def _largest_square(typing_context, tile, n_features):
    generate = written_once("largest_square", _write, ir.FloatType())
    return types.float32(tile, n_features), generate


@jitted_inlined
def _largest_norm(tile, n_features):
    """Largest Euclidean norm of an observation of a tile.

    Parameters
    ----------
    tile : ndarray of float32, shape (>= D * TILE,)
    n_features : int

    Returns
    -------
    float
        inf if a square overflows.
    """
    return math.sqrt(_largest_square(tile, n_features))


largest_norm = _largest_norm if LANES else largest_norm_plainly
