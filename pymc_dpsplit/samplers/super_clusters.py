"""Super-clusters: groups of similar clusters among which observations move (Chang & Fisher 2013).

Algorithm 1 of the paper: every cluster draws a neighbour, with probability proportional to
exp(-J), J the J-divergence between their densities; what is connected is a super-cluster.

J is the symmetric Kullback-Leibler divergence, sum over x of (f_k - f_m) (log f_k - log f_m).  It
has a closed form for some families only.  Here it is estimated for all of them, from observations
as draws from the mixture: with w_ik proportional to f(x_i; theta_k) / sum_m pi_m f(x_i; theta_m)
and of sum one, it is sum_i (w_ik - w_im) (log f(x_i; theta_k) - log f(x_i; theta_m)), which depends
on weights, parameters and data, and not on the labels.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import fill_log_density, load_tile
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.moves.sweep.tile_labels import choose_in_tile, group_by_label

# Observations by which divergences are estimated, at most.
_MOST_ROWS = 1024


@jitted
def _log_densities(prior, data, rows_used, params):
    """Log density of some observations under every cluster, shape (K, n)."""
    n_used, rows, tile = rows_used.shape[0], new_rows(), begin_tile(prior, data)
    scratch, out = new_scratch(4), new_scratch(1)
    log_density = np.empty((params.shape[0], n_used))
    for first in range(0, n_used, TILE):
        fill_members(rows, rows_used, first)
        load_tile(prior, data, rows, tile)
        for k in range(params.shape[0]):
            fill_log_density(prior, tile, params[k], out, scratch)
            for t in range(min(TILE, n_used - first)):
                log_density[k, first + t] = out[t]
    return log_density


@jitted
def divergences(log_density, log_weights):
    """Estimate the J-divergence between every two clusters.

    Parameters
    ----------
    log_density : ndarray of float64, shape (K, n)
        Of n observations.
    log_weights : ndarray of float64, shape (K,)

    Returns
    -------
    ndarray of float64, shape (K, K)
    """
    n_clusters, n = log_density.shape
    shares = np.empty((n_clusters, n))
    for i in range(n):
        highest, total = -math.inf, 0.0
        for k in range(n_clusters):
            highest = max(highest, log_weights[k] + log_density[k, i])
        for k in range(n_clusters):
            total += math.exp(log_weights[k] + log_density[k, i] - highest)
        for k in range(n_clusters):
            shares[k, i] = log_density[k, i] - highest - math.log(total)
    for k in range(n_clusters):
        highest = shares[k].max()
        shares[k] = np.exp(shares[k] - highest)
        shares[k] /= shares[k].sum()
    found = np.zeros((n_clusters, n_clusters))
    for k in range(n_clusters):
        for m in range(k):
            for i in range(n):
                difference = log_density[k, i] - log_density[m, i]
                found[k, m] += (shares[k, i] - shares[m, i]) * difference
            found[m, k] = found[k, m]
    return found


@jitted
def connected(neighbours):
    """Number the groups of clusters that are connected, given a neighbour of each.

    Parameters
    ----------
    neighbours : ndarray of int64, shape (K,)

    Returns
    -------
    ndarray of int32, shape (K,)
        Groups 0, 1, .. in the order of their first clusters.
    """
    n_clusters = neighbours.shape[0]
    group = np.arange(n_clusters).astype(np.int32)
    changed = True
    while changed:
        changed = False
        for k in range(n_clusters):
            least = min(group[k], group[neighbours[k]])
            changed = changed or group[k] != group[neighbours[k]]
            group[k], group[neighbours[k]] = least, least
    number, n_groups = np.full(n_clusters, -1, np.int32), 0
    for k in range(n_clusters):
        if number[group[k]] < 0:
            number[group[k]] = n_groups
            n_groups += 1
        group[k] = number[group[k]]
    return group


@jitted
def draw_super_clusters(prior, data, log_weights, params, rng):
    """Draw the super-cluster of every cluster, Algorithm 1 of the paper.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int32, shape (K,)
    """
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    rows = np.arange(0, n_obs, 1 + n_obs // _MOST_ROWS)
    divergence = divergences(_log_densities(prior, data, rows, params), log_weights)
    neighbours, mass = np.empty(n_clusters, np.int64), np.empty(n_clusters)
    for k in range(n_clusters):
        for m in range(n_clusters):
            mass[m] = math.exp(-max(divergence[k, m], 0.0))
        neighbours[k] = categorical_at(rng.random(), mass)
    return connected(neighbours)


@jitted
def choose_within_groups(prior, data, labels, key, log_weights, params, group):
    """Draw the cluster of every observation among those of its super-cluster, eq. 9 of the paper.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Changed.
    key : uint64
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    group : ndarray of int32, shape (K,)
        Super-cluster of each cluster.
    """
    n_obs, n_clusters, n_groups = labels.shape[0], group.shape[0], group.max() + 1
    of_rows = np.empty(n_obs, np.int32)
    for i in range(n_obs):
        of_rows[i] = group[labels[i]]
    members, bounds = np.empty(n_obs, np.int64), np.empty(n_groups + 1, np.int64)
    group_by_label(of_rows, np.arange(n_obs), bounds, members)
    clusters, within = np.empty(n_clusters, np.int64), np.empty(n_groups + 1, np.int64)
    group_by_label(group, np.arange(n_clusters), within, clusters)
    rows, chosen, tile, scratch = new_rows(), new_rows(), begin_tile(prior, data), new_scratch(4)
    log_mass = new_scratch(n_clusters).reshape(n_clusters, TILE)
    for g in range(n_groups):
        own, among = members[bounds[g] : bounds[g + 1]], clusters[within[g] : within[g + 1]]
        for first in range(0, own.shape[0], TILE):
            fill_members(rows, own, first)
            load_tile(prior, data, rows, tile)
            for c in range(among.shape[0]):
                fill_log_density(prior, tile, params[among[c]], log_mass[c], scratch)
                for t in range(TILE):
                    weight = log_weights[among[c]] * multiplicity(prior, data, rows[t])
                    log_mass[c, t] += weight
            choose_in_tile(log_mass, among.shape[0], rows, key, chosen, scratch)
            for t in range(min(TILE, own.shape[0] - first)):
                labels[rows[t]] = among[chosen[t]]
