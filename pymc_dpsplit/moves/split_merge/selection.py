"""Choice of the cluster to split or the pair to merge, with its probability.

A cluster is chosen for a split with probability proportional to its size.  A pair is chosen for
a merge by how little log marginal likelihood per observation the merge loses, eq. (3.5).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import log_marginal
from pymc_dpsplit.components.multiplicity import observation_at
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.kernels.rows import first_column_sum, sum_of_rows
from pymc_dpsplit.kernels.streams import next_index, next_uniform
from pymc_dpsplit.moves.cluster_order import cluster_order

# Gives every pair a positive probability.
_AFFINITY_FLOOR = 1e-4


@jitted
def log_marginals(prior, stats):
    """Log marginal likelihood of every cluster, shape (K,)."""
    out = np.empty(stats.shape[0])
    for k in range(out.shape[0]):
        out[k] = log_marginal(prior, stats[k])
    return out


@jitted
def fill_affinities(prior, stats, log_m, a, out):
    """Write the affinity of cluster a to every other cluster, 0 to itself; return their sum.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (K, S)
    log_m : ndarray of float64, shape (K,)
        Result of `log_marginals`.
    a : int
    out : ndarray of float64, shape (K,)
        Overwritten.

    Returns
    -------
    float
    """
    total = 0.0
    for b in range(stats.shape[0]):
        out[b] = 0.0
        if b != a:
            lost = log_m[a] + log_m[b] - log_marginal(prior, sum_of_rows(stats, a, b))
            out[b] = _AFFINITY_FLOOR + math.exp(-max(0.0, lost) / min(stats[a, 0], stats[b, 0]))
            total += out[b]
    return total


@jitted
def draw_pair(prior, labels, stats, log_m, stream):
    """Draw a pair to merge: one cluster uniformly, the other by affinity to it.

    Parameters
    ----------
    prior : NamedTuple
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    log_m : ndarray of float64, shape (K,)
        Result of `log_marginals`.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    a, b : int
    """
    n_clusters = stats.shape[0]
    order = cluster_order(labels, stats)
    affinity, in_order = np.empty(n_clusters), np.empty(n_clusters)
    a = order[next_index(stream, n_clusters)]
    fill_affinities(prior, stats, log_m, a, affinity)
    for p in range(n_clusters):
        in_order[p] = affinity[order[p]]
    return a, order[categorical_at(next_uniform(stream), in_order)]


@jitted
def log_pair_probability(prior, stats, log_m, a, b):
    """Log probability that `draw_pair` returns the unordered pair {a, b}, eq. (3.5).

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (K, S)
    log_m : ndarray of float64, shape (K,)
        Result of `log_marginals`.
    a, b : int

    Returns
    -------
    float
    """
    n_clusters = stats.shape[0]
    affinity = np.empty(n_clusters)
    total_a = fill_affinities(prior, stats, log_m, a, affinity)
    s = affinity[b]
    total_b = fill_affinities(prior, stats, log_m, b, affinity)
    return math.log((s / total_a + s / total_b) / n_clusters)


@jitted
def draw_cluster(target, labels, stats, stream):
    """Draw a cluster to split with probability proportional to its size.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    int
    """
    place = next_index(stream, np.int64(first_column_sum(stats)))
    return np.int64(labels[observation_at(target.prior, target.data, place)])
