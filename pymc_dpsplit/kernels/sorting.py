"""Stable merge sort, which compiles in a tenth of the time of NumPy's sort under numba."""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row


@jitted
def _merge_runs(values, order, start, middle, stop, merged):
    """Merge two neighbouring runs of `order` into `merged`."""
    a, b = start, middle
    for q in range(start, stop):
        if a < middle and (b == stop or values[order[a]] <= values[order[b]]):
            merged[q] = order[a]
            a += 1
        else:
            merged[q] = order[b]
            b += 1


@jitted
def ascending(values):
    """Sort by value.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Without NaN.

    Returns
    -------
    ndarray of int64, shape (n,)
        Indices of the values in ascending order; equal values keep their order.
    """
    n = values.shape[0]
    order, merged = np.arange(n), np.empty(n, np.int64)
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            _merge_runs(values, order, start, middle, min(middle + width, n), merged)
        copy_row(merged, order)
        width *= 2
    return order


@jitted
def sum_by_size(values):
    """Add up `values`, shape (n,), in ascending order, so that their order does not matter."""
    total = 0.0
    for k in ascending(values):
        total += values[k]
    return total
