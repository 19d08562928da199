"""Sums of outer products x x' over rows of a matrix, for the scatter of clusters."""

from typing import Any

from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic, jitted, jitted_inlined
from pymc_dpsplit.kernels.lanes import LANES, Lanes, index, written_once

# Eight rows of the sum by one vector: enough accumulators to hide the latency of an addition.
_ROWS = 8


@jitted
def padded(n_features):
    """Length of a row of `packed`: a multiple of the number of rows that are summed at once."""
    return (n_features + _ROWS - 1) // _ROWS * _ROWS


@jitted
def sum_outer_plainly(packed, n_rows, width, square):
    """Plain twin of `sum_outer`, without vector code.

    Parameters
    ----------
    packed : ndarray of float64, shape (>= n_rows * width,)
    n_rows, width : int
    square : ndarray of float64, shape (width * width,)
    """
    for a in range(width):
        for b in range(a + 1):
            square[a * width + b] = 0.0
        for i in range(n_rows):
            x = packed[i * width + a]
            for b in range(a + 1):
                square[a * width + b] += x * packed[i * width + b]


def _write_sum_outer(builder: Any, packed: Any, n_rows: Any, width: Any, square: Any) -> None:
    lanes = Lanes(builder)
    with lanes.steps(index(0), width, _ROWS) as (a, _):
        end = builder.add(a, index(_ROWS))
        with lanes.steps(index(0), end, LANES) as (b, _):
            sums = [lanes.variable(lanes.constant(0.0)) for _ in range(_ROWS)]
            with lanes.steps(index(0), n_rows, 1) as (i, _):
                row = builder.mul(i, width)
                right = lanes.load(packed, builder.add(row, b))
                left = builder.add(row, a)
                for r, total in enumerate(sums):
                    x = lanes.splat(lanes.scalar(packed, builder.add(left, index(r))))
                    builder.store(lanes.fma(x, right, builder.load(total)), total)
            for r, total in enumerate(sums):
                at = builder.mul(builder.add(a, index(r)), width)
                lanes.store(builder.load(total), square, builder.add(at, b))


@intrinsic
def _sum_outer_by_lanes(typing_context, packed, n_rows, width, square):
    generate = written_once("sum_outer", _write_sum_outer)
    return types.void(packed, n_rows, width, square), generate


@jitted_inlined
def _sum_outer(packed, n_rows, width, square):
    """Write the sum of x x' over rows x of `packed` into the lower triangle of `square`.

    Parameters
    ----------
    packed : ndarray of float64, shape (>= n_rows * width,)
    n_rows, width : int
        `width` is a result of `padded`.
    square : ndarray of float64, shape (width * width,)
        Above the diagonal some elements are written as well.
    """
    _sum_outer_by_lanes(packed, n_rows, width, square)


sum_outer = _sum_outer if LANES else sum_outer_plainly
