"""Bounds of the full-covariance normal density by one projection per pair of clusters.

For any vector b, |W x - c| >= b'(W x - c) / |b| (Cauchy-Schwarz).  For observations of cluster z
it is close with b = W mu_z - c, docs/method.md, eq. (33).  A row of bounds holds for each atom the
constant of its density, b'c / |b| and W'b / |b|; see `kernels.projections`.
"""

import math

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.mv_normal import MvNormalPrior
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.projections import HEAD, ROWS, fill_highest
from pymc_dpsplit.kernels.views import part_of, row_of, square_of

# Numbers kept at most: 32 MB.
_MOST_NUMBERS = 1 << 22
# Standard deviations by which the worst observation of a tile is taken to differ.
_WORST = 2.0


@base.implements(base.find_bounds, MvNormalPrior)
def _find_bounds(prior, params, n_clusters):
    return _find(prior.has_bounds, prior.mu0.shape[0], params, n_clusters)


@kernel
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
    gap = np.empty((n_features, n_clusters))
    for k in range(n_atoms if n_clusters > 0 else 0):
        atom = row_of(params, k)
        _fill_gap(atom, means, gap)
        for z in range(n_clusters):
            bound = bounds[z, k * (HEAD + n_features) : (k + 1) * (HEAD + n_features)]
            distance = _fill_bound(atom, gap, z, bound)
            if k < n_clusters:
                forecast[z, k] = _forecast(params[k, 0] - params[z, 0], distance, n_features)
    return bounds, forecast


@kernel
def _means(params, n_clusters, n_features):
    """Means of the first clusters, (D, K): solutions of W mu = c."""
    means = np.empty((n_features, n_clusters))
    for z in range(n_clusters):
        for i in range(n_features):
            at = 1 + n_features * (1 + i)
            y = params[z, 1 + i]
            for j in range(i):
                y -= params[z, at + j] * means[j, z]
            means[i, z] = y / params[z, at + i]
    return means


@kernel
def _fill_gap(atom, means, gap):
    """Write W mu_z - c of one atom for all clusters z, which the innermost loop runs over."""
    n_features, n_clusters = means.shape
    centre, whitening = part_of(atom, 1, n_features), square_of(atom, 1 + n_features, n_features)
    for i in range(n_features):
        for z in range(n_clusters):
            gap[i, z] = -centre[i]
        for j in range(i + 1):
            w = whitening[i, j]
            for z in range(n_clusters):
                gap[i, z] += w * means[j, z]


@kernel
def _fill_bound(atom, gap, z, bound):
    """Write the bound of one atom for one cluster, zero before; return the norm of the gap."""
    n_features = gap.shape[0]
    centre, whitening = part_of(atom, 1, n_features), square_of(atom, 1 + n_features, n_features)
    direction = part_of(bound, HEAD, n_features)
    squared = 0.0
    for i in range(n_features):
        squared += gap[i, z] * gap[i, z]
    norm = math.sqrt(squared)
    bound[0] = atom[0]
    for i in range(n_features if norm > 0.0 else 0):
        b = gap[i, z] / norm
        bound[1] += b * centre[i]
        for j in range(i + 1):
            direction[j] += b * whitening[i, j]
    return norm


@kernel
def _forecast(log_ratio, distance, n_features):
    """Largest log ratio of two densities in a tile of a cluster at some distance from an atom.

    The worst observation of a tile is taken to be _WORST standard deviations off the mean, in
    its distance from the atom and in its squared distance from the cluster.
    """
    near = max(distance - _WORST, 0.0)
    far = n_features + _WORST * math.sqrt(2.0 * n_features)
    return log_ratio + 0.5 * (far - near * near)


@base.implements(base.fill_excess, MvNormalPrior)
def _fill_excess(prior, tile, bounds, reference, excess):
    fill_highest(tile, bounds, prior.mu0.shape[0], reference, excess)
