"""Squared norms |W x - c|^2 for a tile of x: the innermost loop of Gaussian densities.

Observations run along the vector lanes.  One and two features have loops of their own; more
are handled in blocks of four rows by four columns, so that sixteen multiply-adds share four
loads of data and four of accumulators.
"""

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.tiles import TILE


@kernel
def padded(n_features):
    """Number of rows of a whitening matrix: a multiple of four, or 1 or 2."""
    if n_features <= 2:
        return n_features
    return (n_features + 3) // 4 * 4


@kernel
def fill_squared_norm(tile, whitening, centre, n_features, out, scratch):
    """Write |W x - c|^2 for each observation of a tile into `out`.

    Parameters
    ----------
    tile : ndarray of float64, shape (P * TILE,)
        P = padded(n_features); features beyond n_features are zero.
    whitening : ndarray of float64, shape (P, P)
        Lower triangular, zero in the padding.
    centre : ndarray of float64, shape (P,)
    n_features : int
    out : ndarray of float64, shape (TILE,)
    scratch : ndarray of float64, shape (4 * TILE,)
    """
    if n_features == 1:
        w00, c0 = whitening[0, 0], centre[0]
        for t in range(TILE):
            y0 = w00 * tile[t] - c0
            out[t] = y0 * y0
    elif n_features == 2:
        w00, w10, w11 = whitening[0, 0], whitening[1, 0], whitening[1, 1]
        c0, c1 = centre[0], centre[1]
        for t in range(TILE):
            y0 = w00 * tile[t] - c0
            y1 = w10 * tile[t] + w11 * tile[TILE + t] - c1
            out[t] = y0 * y0 + y1 * y1
    else:
        _fill_by_blocks(tile, whitening, centre, out, scratch)


@kernel
def _fill_by_blocks(tile, w, centre, out, acc):
    for t in range(TILE):
        out[t] = 0.0
    for r in range(0, w.shape[0], 4):
        for i in range(4):
            for t in range(TILE):
                acc[i * TILE + t] = -centre[r + i]
        for j in range(0, r + 4, 4):
            w00, w01, w02, w03 = w[r, j], w[r, j + 1], w[r, j + 2], w[r, j + 3]
            w10, w11, w12, w13 = w[r + 1, j], w[r + 1, j + 1], w[r + 1, j + 2], w[r + 1, j + 3]
            w20, w21, w22, w23 = w[r + 2, j], w[r + 2, j + 1], w[r + 2, j + 2], w[r + 2, j + 3]
            w30, w31, w32, w33 = w[r + 3, j], w[r + 3, j + 1], w[r + 3, j + 2], w[r + 3, j + 3]
            x = tile[j * TILE : (j + 4) * TILE]
            for t in range(TILE):
                x0, x1, x2, x3 = x[t], x[TILE + t], x[2 * TILE + t], x[3 * TILE + t]
                acc[t] += w00 * x0 + w01 * x1 + w02 * x2 + w03 * x3
                acc[TILE + t] += w10 * x0 + w11 * x1 + w12 * x2 + w13 * x3
                acc[2 * TILE + t] += w20 * x0 + w21 * x1 + w22 * x2 + w23 * x3
                acc[3 * TILE + t] += w30 * x0 + w31 * x1 + w32 * x2 + w33 * x3
        for t in range(TILE):
            y0, y1, y2, y3 = acc[t], acc[TILE + t], acc[2 * TILE + t], acc[3 * TILE + t]
            out[t] += y0 * y0 + y1 * y1 + y2 * y2 + y3 * y3
