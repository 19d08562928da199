"""Tiles: blocks of observations laid out feature by feature, so that loops vectorise.

A tile holds TILE observations: feature j of its observation t is element j * TILE + t of a
flat array.  With one base address and constant distances LLVM knows that loads and stores do
not overlap; rows of a matrix would need a run-time check per pair and loop.  A short last tile is
padded with copies of its last row; results for the copies are ignored.
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_copied
from pymc_dpsplit.kernels.lines import on_lines, zeros_on_lines
from pymc_dpsplit.kernels.transposition import transpose_rows

TILE = 64


@jitted
def fill_range(rows, start, stop):
    """Write the indices start .. stop - 1 into `rows`, with the last one repeated.

    Parameters
    ----------
    rows : ndarray of int64, shape (TILE,)
    start, stop : int
    """
    for t in range(TILE):
        i = start + t
        rows[t] = i if i < stop else stop - 1


@jitted
def fill_members(rows, members, start):
    """Write members[start : start + TILE] into `rows`, with the last one repeated.

    Parameters
    ----------
    rows : ndarray of int64, shape (TILE,)
    members : ndarray of int64, shape (n,)
    start : int
    """
    last = members.shape[0] - 1
    for t in range(TILE):
        j = start + t
        rows[t] = members[j if j < last else last]


@jitted_copied
def load_dense_tile(x, shift, rows, tile):
    """Transpose rows of a dense matrix, less a shift, into a tile.

    Parameters
    ----------
    x : ndarray of float64 or float32, shape (N, D)
        Contiguous along rows, see `transpose_rows`.
    shift : ndarray of float64, shape (D,)
    rows : ndarray of int64, shape (TILE,)
    tile : ndarray of float64 or float32, shape (>= D * TILE,)
        Overwritten.
    """
    if x.shape[1] == 1:
        for t in range(TILE):
            tile[t] = x[rows[t], 0] - shift[0]
    else:
        transpose_rows(x, shift, rows, tile)


@jitted
def new_scratch(n_rows):
    """Allocate `n_rows` times TILE numbers on whole cache lines, uninitialised."""
    return on_lines(n_rows * TILE)


@jitted
def new_single_scratch(n_rows):
    """Allocate like `new_scratch`, but numbers of float32, `n_rows` times TILE of them."""
    return on_lines((n_rows * TILE + 1) // 2).view(np.float32)[: n_rows * TILE]


@jitted
def new_tile(n_features):
    """Allocate a zeroed tile of `n_features` features."""
    return zeros_on_lines(n_features * TILE)


@jitted
def new_rows():
    """Allocate the row indices of one tile."""
    return np.empty(TILE, np.int64)
