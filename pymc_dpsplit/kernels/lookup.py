"""Log densities of a tile that are sums of table entries, one entry per feature.

The last row of such a tile, after the features, holds `extra`, the terms that do not depend on the
cluster.
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted_inlined
from pymc_dpsplit.kernels.tiles import TILE


@jitted_inlined
def fill_log_lookup(tile, table, n_features, constant, out):
    """Write constant + extra + sum_d table[x_d] for each observation of a tile into `out`.

    Parameters
    ----------
    tile : ndarray of float64, shape (>= (D + 1) * TILE,)
        The features, each a position in the table, then `extra`.
    table : ndarray of float64
    n_features : int
    constant : float
    out : ndarray of float64, shape (TILE,)
    """
    for t in range(TILE):
        out[t] = constant + tile[n_features * TILE + t]
    # Four features per pass, as each pass reads and writes `out`.  Unsigned 32-bit positions are
    # converted by vector code, and numba does not check them for negative indices.
    whole = n_features // 4 * 4
    for d in range(0, whole, 4):
        for t in range(TILE):
            at = d * TILE + t
            one = table[np.uint32(tile[at])] + table[np.uint32(tile[at + TILE])]
            two = table[np.uint32(tile[at + 2 * TILE])] + table[np.uint32(tile[at + 3 * TILE])]
            out[t] += one + two
    for d in range(whole, n_features):
        for t in range(TILE):
            out[t] += table[np.uint32(tile[d * TILE + t])]
