"""Iterated conditional modes: each observation joins its likeliest cluster; NOT invariant.

This is the sweep of MAP-DPM (Raykov, Boukouvalas & Little 2014), eq. (12.1): collapsed Gibbs with
the mode of each conditional instead of a draw.  It climbs the joint density of data and partition.
"""

import numpy as np

from pymc_dpsplit.components.base import (
    fill_predictive,
    log_marginal,
    log_predictive,
    mean_parameters,
    params_size,
    predictive_add,
    predictive_remove,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row, lengthened, with_free_slots, with_more_rows
from pymc_dpsplit.moves.collapsed.positions import refill
from pymc_dpsplit.moves.partition_law import (
    log_cluster_factor,
    log_founding_factor,
    log_joining_factor,
    log_opening_mass,
)
from pymc_dpsplit.moves.split_merge.selection import log_marginals

# Minimum gain of a move.  Without it, an observation could alternate for ever between clusters
# that differ by rounding only.
LEAST_GAIN = 1e-9


@jitted
def _remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters):
    """Remove observation i from its cluster; return the number of occupied slots.

    `slots[:n_clusters]` are the occupied rows of `sizes` and `caches`, the others are free; all
    are updated, and labels[i] becomes -1.
    """
    k = labels[i]
    labels[i] = -1
    sizes[k] -= multiplicity(prior, data, i)
    if sizes[k] > 0.0:
        if not predictive_remove(prior, data, i, caches[k]):
            refill(prior, data, labels, k, -1, caches[k])
        return n_clusters
    for p in range(n_clusters):
        if slots[p] == k:
            slots[p] = slots[n_clusters - 1]
            slots[n_clusters - 1] = k
    return n_clusters - 1


@jitted
def _best_slot(prior, data, i, law, origin, sizes, caches, slots, n_clusters, empty):
    """Position of the likeliest cluster of observation i; n_clusters for a new one.

    `empty` is the cache of a cluster without observations.  If i was alone in its cluster, the
    row `origin` is free and stands at position n_clusters.
    """
    n_joining = multiplicity(prior, data, i)
    log_new = log_founding_factor(law, n_clusters, n_joining)
    log_new += log_predictive(prior, data, i, empty)
    best, highest, present = n_clusters, log_new, log_new
    at_present = n_clusters
    for p in range(n_clusters):
        k = slots[p]
        log_joining = log_joining_factor(law, sizes[k], n_joining)
        mass = log_joining + log_predictive(prior, data, i, caches[k])
        if k == origin:
            at_present, present = p, mass
        if mass > highest:
            best, highest = p, mass
    return best if highest > present + LEAST_GAIN else at_present


@jitted
def climb_by_rows(target, labels, stats, rows):
    """Move each of `rows` in turn to its likeliest cluster.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.  Afterwards some numbers of clusters may be unused.
    stats : ndarray of float64, shape (K, S)
    rows : ndarray of int64, shape (M,)
        Observations, in the order in which they are visited.

    Returns
    -------
    int
        Number of observations that moved.
    """
    prior, data, law = target
    n_clusters = stats.shape[0]
    capacity = 2 * n_clusters + 8
    slots = np.arange(capacity)
    sizes = np.zeros(capacity)
    caches = np.zeros((capacity, predictive_size(prior)))
    empty = np.zeros(predictive_size(prior))
    fill_predictive(prior, np.zeros(stats_size(prior)), empty)
    for k in range(n_clusters):
        sizes[k] = stats[k, 0]
        fill_predictive(prior, stats[k], caches[k])
    n_moved = 0
    for j in range(rows.shape[0]):
        i = rows[j]
        origin = labels[i]
        n_clusters = _remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters)
        p = _best_slot(prior, data, i, law, origin, sizes, caches, slots, n_clusters, empty)
        k = slots[p]
        if p == n_clusters:
            copy_row(empty, caches[k])
            n_clusters += 1
        labels[i] = k
        sizes[k] += multiplicity(prior, data, i)
        predictive_add(prior, data, i, caches[k])
        if k != origin:
            n_moved += 1
        if n_clusters == sizes.shape[0]:
            sizes, caches = lengthened(sizes, n_clusters), with_more_rows(caches, n_clusters)
            slots = with_free_slots(slots)
    return n_moved


@jitted
def merge_gains(target, stats):
    """Gain in the log joint density from merging each pair of clusters.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    ndarray of float64, shape (K, K)
        Element (a, b) for clusters a > b, zero elsewhere.
    """
    prior, law = target.prior, target.law
    n_clusters = stats.shape[0]
    gains = np.zeros((n_clusters, n_clusters))
    alone = log_marginals(prior, stats)
    log_open = log_opening_mass(law, n_clusters - 1)
    for k in range(n_clusters):
        alone[k] += log_cluster_factor(law, stats[k, 0])
    for a in range(n_clusters):
        for b in range(a):
            union = stats[a] + stats[b]
            together = log_cluster_factor(law, union[0]) + log_marginal(prior, union)
            gains[a, b] = together - alone[a] - alone[b] - log_open
    return gains


@jitted
def plug_in_parameters(prior, stats):
    """Plug-in estimates of cluster parameters, shape (K, P), see `mean_parameters`."""
    params = np.empty((stats.shape[0], params_size(prior)))
    for k in range(stats.shape[0]):
        mean_parameters(prior, stats[k], params[k])
    return params


@jitted
def log_predictives(prior, data, stats):
    """Log predictive density of each row given the rows of each cluster, and given none.

    Parameters
    ----------
    prior : NamedTuple
    data : array or NamedTuple, of M rows
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    ndarray of float64, shape (K + 1, M)
        The last row is that of a cluster without observations.
    """
    n_clusters, n_rows = stats.shape[0], data.shape[0]
    found = np.empty((n_clusters + 1, n_rows))
    cache = np.zeros(predictive_size(prior))
    none = np.zeros(stats_size(prior))
    for k in range(n_clusters + 1):
        fill_predictive(prior, stats[k] if k < n_clusters else none, cache)
        for i in range(n_rows):
            found[k, i] = log_predictive(prior, data, i, cache)
    return found
