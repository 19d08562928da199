"""Numbers, sums and scatter of groups of observations, for Gaussian clusters with covariances.

Statistics are a flat vector: n, sums (D), and the lower triangle of the sum of outer products, by
rows, all of observations less a shift.
"""

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.outer import padded, sum_outer
from pymc_dpsplit.kernels.tiles import TILE, new_scratch, new_tile
from pymc_dpsplit.kernels.views import part_of, row_of


@jitted
def add_outer(shift, data, i, stats):
    """Add observation i to number, sums and outer products.

    Parameters
    ----------
    shift : ndarray of float64, shape (D,)
    data : ndarray of float64, shape (N, D)
    i : int
    stats : ndarray of float64, shape (S,)
        Added to.
    """
    n_features = data.shape[1]
    stats[0] += 1.0
    at = 1 + n_features
    for a in range(n_features):
        x = data[i, a] - shift[a]
        stats[1 + a] += x
        for b in range(a + 1):
            stats[at + b] += x * (data[i, b] - shift[b])
        at += a + 1


@jitted
def add_outer_groups(shift, data, members, bounds, stats):
    """Add the observations members[bounds[k] : bounds[k + 1]] to `stats[k]`, for each k.

    With up to four features they are summed in registers, with more by matrix products.

    Parameters
    ----------
    shift : ndarray of float64, shape (D,)
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    bounds : ndarray of int64, shape (K + 1,)
    stats : ndarray of float64, shape (K, S)
        Added to.
    """
    for k in range(stats.shape[0]):
        if bounds[k + 1] > bounds[k]:
            stats[k, 0] += bounds[k + 1] - bounds[k]
            group = part_of(members, bounds[k], bounds[k + 1] - bounds[k])
            if data.shape[1] == 1:
                _add_scalars(shift[0], data, group, row_of(stats, k))
            elif data.shape[1] == 2:
                _add_pairs(shift[0], shift[1], data, group, row_of(stats, k))
            elif data.shape[1] == 3:
                _add_triples(shift, data, group, row_of(stats, k))
            elif data.shape[1] == 4:
                _add_quadruples(shift, data, group, row_of(stats, k))
    if data.shape[1] > 4:
        _add_vectors(shift, data, members, bounds, stats)


@jitted
def _add_scalars(shift, data, group, stats):
    s, ss = 0.0, 0.0
    for j in range(group.shape[0]):
        x = data[group[j], 0] - shift
        s += x
        ss += x * x
    stats[1] += s
    stats[2] += ss


@jitted
def _add_pairs(shift0, shift1, data, group, stats):
    s0, s1, s00, s10, s11 = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(group.shape[0]):
        x0, x1 = data[group[j], 0] - shift0, data[group[j], 1] - shift1
        s0 += x0
        s1 += x1
        s00 += x0 * x0
        s10 += x1 * x0
        s11 += x1 * x1
    stats[1] += s0
    stats[2] += s1
    stats[3] += s00
    stats[4] += s10
    stats[5] += s11


@jitted
def _add_triples(shift, data, group, stats):
    c0, c1, c2 = shift[0], shift[1], shift[2]
    s0, s1, s2 = 0.0, 0.0, 0.0
    s00, s10, s11, s20, s21, s22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(group.shape[0]):
        i = group[j]
        x0, x1, x2 = data[i, 0] - c0, data[i, 1] - c1, data[i, 2] - c2
        s0 += x0
        s1 += x1
        s2 += x2
        s00 += x0 * x0
        s10 += x1 * x0
        s11 += x1 * x1
        s20 += x2 * x0
        s21 += x2 * x1
        s22 += x2 * x2
    for at, total in enumerate((s0, s1, s2, s00, s10, s11, s20, s21, s22)):
        stats[1 + at] += total


@jitted
def _add_quadruples(shift, data, group, stats):
    c0, c1, c2, c3 = shift[0], shift[1], shift[2], shift[3]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    s00, s10, s11, s20, s21, s22 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s30, s31, s32, s33 = 0.0, 0.0, 0.0, 0.0
    for j in range(group.shape[0]):
        i = group[j]
        x0, x1, x2, x3 = data[i, 0] - c0, data[i, 1] - c1, data[i, 2] - c2, data[i, 3] - c3
        s0 += x0
        s1 += x1
        s2 += x2
        s3 += x3
        s00 += x0 * x0
        s10 += x1 * x0
        s11 += x1 * x1
        s20 += x2 * x0
        s21 += x2 * x1
        s22 += x2 * x2
        s30 += x3 * x0
        s31 += x3 * x1
        s32 += x3 * x2
        s33 += x3 * x3
    totals = (s0, s1, s2, s3, s00, s10, s11, s20, s21, s22, s30, s31, s32, s33)
    for at, total in enumerate(totals):
        stats[1 + at] += total


@jitted
def _add_vectors(shift, data, members, bounds, stats):
    """Add groups by matrix products of up to TILE observations."""
    n_features = data.shape[1]
    width = padded(n_features)
    packed, square = new_tile(width), new_scratch(width * width // TILE + 1)
    for k in range(stats.shape[0]):
        for first in range(bounds[k], bounds[k + 1], TILE):
            n_rows = min(TILE, bounds[k + 1] - first)
            for t in range(n_rows):
                i = members[first + t]
                for a in range(n_features):
                    x = data[i, a] - shift[a]
                    packed[t * width + a] = x
                    stats[k, 1 + a] += x
            sum_outer(packed, n_rows, width, square)
            at = 1 + n_features
            for a in range(n_features):
                for b in range(a + 1):
                    stats[k, at + b] += square[a * width + b]
                at += a + 1
