"""An order of the clusters that depends on the partition alone, not on their numbers.

The number of a cluster depends on when it was created and on the weight of its stick, so it
carries information about the random measure.  Moves that assign random numbers to clusters, or
draw a cluster, use this order instead, so that renumbering the clusters changes no draw;
docs/method.md, section 2.
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.sorting import ascending

# Number of statistics read.  Different clusters hardly ever agree in all of them; if they do, the
# order falls back on their first members.
_N_READ = 16
_GOLDEN = 0.6180339887498949
# Number of clusters up to which insertion sort is faster.
_FEW = 32


@jitted
def cluster_keys(stats):
    """Compute a sort key of each cluster, a function of its statistics alone.

    Parameters
    ----------
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    ndarray of float64, shape (K,)
    """
    n_read = min(stats.shape[1], _N_READ)
    keys = np.empty(stats.shape[0])
    for k in range(keys.shape[0]):
        key = 0.0
        for j in range(n_read):
            key += (1.0 + j * _GOLDEN) * stats[k, j]
        keys[k] = key
    return keys


@jitted
def sort_keys(keys):
    """Sort the clusters by their keys, stably.

    Parameters
    ----------
    keys : ndarray of float64, shape (K,)

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    if keys.shape[0] > _FEW:
        return ascending(keys)
    order = np.empty(keys.shape[0], np.int64)
    for k in range(keys.shape[0]):
        q = k
        while q > 0 and keys[order[q - 1]] > keys[k]:
            order[q] = order[q - 1]
            q -= 1
        order[q] = k
    return order


@jitted
def first_members(labels, n_clusters):
    """Find the first observation of each cluster; no cluster may be empty.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        -1 for an observation of none of these clusters.
    n_clusters : int

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    first = np.full(n_clusters, -1)
    n_found, i = 0, 0
    while n_found < n_clusters:
        if labels[i] >= 0 and first[labels[i]] < 0:
            first[labels[i]] = i
            n_found += 1
        i += 1
    return first


@jitted
def _has_ties(keys, order):
    n_ties = 0
    for p in range(1, order.shape[0]):
        n_ties += keys[order[p]] == keys[order[p - 1]]
    return n_ties > 0


@jitted
def _sort_ties(first, keys, order):
    """Sort clusters with equal keys by their first members, by insertion."""
    for p in range(1, order.shape[0]):
        k, q = order[p], p
        while q > 0 and keys[order[q - 1]] == keys[k] and first[order[q - 1]] > first[k]:
            order[q] = order[q - 1]
            q -= 1
        order[q] = k


@jitted
def cluster_order(labels, stats):
    """Sort the clusters by their statistics; clusters with equal keys by their first members.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    ndarray of int64, shape (K,)
        Numbers of the clusters.  Renumbering `labels` and the rows of `stats` alike renumbers the
        result and leaves the sequence of clusters unchanged.
    """
    keys = cluster_keys(stats)
    order = sort_keys(keys)
    # Members are looked up only to break ties, as this takes a pass over the labels.
    if _has_ties(keys, order):
        _sort_ties(first_members(labels, stats.shape[0]), keys, order)
    return order
