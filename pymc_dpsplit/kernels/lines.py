"""Arrays that begin at a cache line, so that no vector of eight numbers crosses two."""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted

_LINE = 8  # numbers in a cache line


@jitted
def on_lines(size):
    """Allocate `size` numbers, uninitialised, the first of which begins a cache line.

    Parameters
    ----------
    size : int

    Returns
    -------
    ndarray of float64, shape (size,)
    """
    roomy = np.empty(size + _LINE)
    skipped = -(roomy.ctypes.data // roomy.itemsize) % _LINE
    return roomy[skipped : skipped + size]


@jitted
def zeros_on_lines(size):
    """Allocate `size` zeros, the first of which begins a cache line.

    Parameters
    ----------
    size : int

    Returns
    -------
    ndarray of float64, shape (size,)
    """
    numbers = on_lines(size)
    for j in range(size):
        numbers[j] = 0.0
    return numbers
