"""Bounds on the full-covariance normal density by one projection per pair of clusters.

For any vector b, |W x - c| >= b'(W x - c) / |b| (Cauchy-Schwarz).  For observations of cluster z
the bound is tight with b = W mu_z - c, docs/method.md, eq. (2.4).  A row of bounds contains for
each atom the constant of its density, b'c / |b| and W'b / |b|; see `kernels.projections`.
"""

import math

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.mv_normal.family import MvNormalPrior
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.products import AT_ONCE, add_product
from pymc_dpsplit.kernels.projections import HEAD, ROWS, fill_highest
from pymc_dpsplit.kernels.views import columns_of, part_of, row_of, square_of

# Largest number of elements of the bounds: 32 MB.
_MOST_NUMBERS = 1 << 22
# Assumed deviation of the most extreme observation of a tile, in standard deviations.
_WORST = 2.0


@base.implements(base.find_bounds, MvNormalPrior)
def _find_bounds(prior, params, n_clusters):
    return _find(prior.has_bounds, prior.mu0.shape[0], params, n_clusters)


@jitted
def _find(has_bounds, n_features, params, n_clusters):
    if has_bounds is None:
        return None
    n_atoms = params.shape[0]
    width = (n_atoms + ROWS - 1) // ROWS * ROWS * (HEAD + n_features)
    if n_clusters * width > _MOST_NUMBERS:
        n_clusters = 0
    bounds = np.zeros((n_clusters, width))
    forecast = np.empty((n_clusters, n_clusters))
    means = _means(params, n_clusters, n_features)
    gap, distance = np.empty((n_features, n_clusters)), np.empty(n_clusters)
    directions = np.empty((n_clusters, n_features))
    for k in range(n_atoms if n_clusters > 0 else 0):
        atom = row_of(params, k)
        _fill_gap(atom, means, gap)
        _fill_directions(gap, distance, directions)
        own = columns_of(bounds, k * (HEAD + n_features), HEAD + n_features)
        _fill_bounds(atom, directions, own)
        for z in range(n_clusters if k < n_clusters else 0):
            log_ratio = params[k, 0] - params[z, 0]
            forecast[z, k] = _forecast(log_ratio, distance[z], n_features)
    return bounds, forecast


@jitted
def _means(params, n_clusters, n_features):
    """Return the means (D, K) of the first K atoms, the solutions of W mu = c."""
    means = np.empty((n_features, n_clusters))
    for z in range(n_clusters):
        for i in range(n_features):
            at = 1 + n_features * (1 + i)
            y = params[z, 1 + i]
            for j in range(i):
                y -= params[z, at + j] * means[j, z]
            means[i, z] = y / params[z, at + i]
    return means


@jitted
def _fill_gap(atom, means, gap):
    """Write W mu_z - c for one atom and all clusters z."""
    n_features, n_clusters = means.shape
    centre, whitening = part_of(atom, 1, n_features), square_of(atom, 1 + n_features, n_features)
    for i in range(n_features):
        for z in range(n_clusters):
            gap[i, z] = -centre[i]
    # W is lower triangular, so the product stops at the block that contains the diagonal.
    for first in range(0, n_features, AT_ONCE):
        last = min(first + AT_ONCE, n_features)
        add_product(1.0, whitening, means, (first, last), last, (0, n_clusters), gap)


@jitted
def _fill_directions(gap, distance, directions):
    """Write the norm and the direction of the gap of each cluster; the direction of 0 is 0."""
    n_features, n_clusters = gap.shape
    distance[:] = 0.0
    for i in range(n_features):
        for z in range(n_clusters):
            distance[z] += gap[i, z] * gap[i, z]
    for z in range(n_clusters):
        distance[z] = math.sqrt(distance[z])
        for i in range(n_features):
            directions[z, i] = gap[i, z] / distance[z] if distance[z] > 0.0 else 0.0


@jitted
def _fill_bounds(atom, directions, bounds):
    """Write the bounds of one atom for all clusters into an array of zeros."""
    n_clusters, n_features = directions.shape
    centre, whitening = part_of(atom, 1, n_features), square_of(atom, 1 + n_features, n_features)
    for z in range(n_clusters):
        bounds[z, 0] = atom[0]
        for i in range(n_features):
            bounds[z, 1] += directions[z, i] * centre[i]
    rows, columns = (0, n_clusters), (0, n_features)
    projected = columns_of(bounds, HEAD, n_features)
    add_product(1.0, directions, whitening, rows, n_features, columns, projected)


@jitted
def _forecast(log_ratio, distance, n_features):
    """Estimate the largest log ratio of the densities of an atom and a cluster over a tile.

    The most extreme observation of a tile of the cluster is assumed to deviate by _WORST standard
    deviations, in its distance from the atom and in its squared distance from the cluster.
    """
    near = max(distance - _WORST, 0.0)
    far = n_features + _WORST * math.sqrt(2.0 * n_features)
    return log_ratio + 0.5 * (far - near * near)


@base.implements(base.fill_excess, MvNormalPrior)
def _fill_excess(prior, tile, bounds, reference, excess):
    fill_highest(tile, bounds, prior.mu0.shape[0], reference, excess)
