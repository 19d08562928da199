"""Labels of rows with missing entries, given the parameters of the clusters."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted


@jitted
def relabel_rows(log_density, where, labels, group_of_row, counts, sizes, weights, alpha, rng):
    """Redraw the labels of some rows in turn among the clusters of other rows, eq. (16.11).

    Parameters
    ----------
    log_density : ndarray of float64, shape (n, K)
        Of the observed entries of these rows in each cluster.
    where : ndarray of int64, shape (n,)
        Indices of the rows.
    labels : ndarray of int32, shape (N,)
        Changed; a row that is alone stays where it is.
    group_of_row : ndarray of int64, shape (N,)
    counts : ndarray of int64, shape (J, K)
        Changed.
    sizes : ndarray of int64, shape (K,)
        Number of rows of each cluster; changed.
    weights : ndarray of float64, shape (K,)
        Global weights.
    alpha : float
    rng : numpy.random.Generator
    """
    n_clusters = weights.shape[0]
    masses = np.empty(n_clusters)
    for r in range(where.shape[0]):
        i, group = where[r], group_of_row[where[r]]
        own = labels[i]
        if sizes[own] == 1:
            continue
        counts[group, own] -= 1
        sizes[own] -= 1
        highest = -math.inf
        for k in range(n_clusters):
            prior = counts[group, k] + alpha * weights[k]
            masses[k] = log_density[r, k] + math.log(prior) if prior > 0.0 else -math.inf
            highest = max(highest, masses[k])
        total = 0.0
        for k in range(n_clusters):
            total += math.exp(masses[k] - highest)
            masses[k] = total
        u, goal = total * rng.random(), 0
        while goal < n_clusters - 1 and masses[goal] <= u:
            goal += 1
        labels[i] = goal
        counts[group, goal] += 1
        sizes[goal] += 1
