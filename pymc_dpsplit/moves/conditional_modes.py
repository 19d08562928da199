"""Iterated conditional modes: each observation in turn goes where it is likeliest; NOT invariant.

The sweep of MAP-DPM (Raykov, Boukouvalas & Little 2014), eq. (125): collapsed Gibbs with the mode
of each conditional in the place of a draw.  It climbs the joint density of data and partition.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    cache_add,
    cache_size,
    fill_cache,
    log_marginal,
    log_predictive,
    mean_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.collapsed import remove_row, twice
from pymc_dpsplit.moves.selection import log_marginals

# By how much a cluster must be better than the present one: ties, broken by rounding, would
# otherwise send an observation to and fro for ever.
LEAST_GAIN = 1e-9


@kernel
def _best_slot(prior, data, i, origin, sizes, caches, slots, n_clusters, log_new):
    """Position of the cluster that suits observation i best; n_clusters for a new one.

    `log_new` is the log mass of a new cluster.  One that was alone before has left the row
    `origin` free, at the position n_clusters.
    """
    best, highest, present = n_clusters, log_new, log_new
    at_present = n_clusters
    for p in range(n_clusters):
        k = slots[p]
        mass = math.log(sizes[k]) + log_predictive(prior, data, i, caches[k])
        if k == origin:
            at_present, present = p, mass
        if mass > highest:
            best, highest = p, mass
    return best if highest > present + LEAST_GAIN else at_present


@kernel
def climb_by_rows(prior, data, labels, stats, alpha, rows):
    """Move each of `rows` in turn to where it is likeliest; changes `labels`.

    Parameters
    ----------
    rows : ndarray of int64, shape (M,)

    Returns
    -------
    int
        Number of observations that moved.  Labels are of occupied clusters, but may skip numbers.
    """
    n_clusters = stats.shape[0]
    capacity = 2 * n_clusters + 8
    slots = np.arange(capacity)
    sizes = np.zeros(capacity)
    caches = np.zeros((capacity, cache_size(prior)))
    empty = np.zeros(cache_size(prior))
    fill_cache(prior, np.zeros(stats_size(prior)), empty)
    for k in range(n_clusters):
        sizes[k] = stats[k, 0]
        fill_cache(prior, stats[k], caches[k])
    n_moved = 0
    for j in range(rows.shape[0]):
        i = rows[j]
        origin = labels[i]
        n_clusters = remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters)
        log_new = math.log(alpha) + log_predictive(prior, data, i, empty)
        p = _best_slot(prior, data, i, origin, sizes, caches, slots, n_clusters, log_new)
        k = slots[p]
        if p == n_clusters:
            caches[k] = empty
            n_clusters += 1
        labels[i] = k
        sizes[k] += 1.0
        cache_add(prior, data, i, caches[k])
        if k != origin:
            n_moved += 1
        if n_clusters == sizes.shape[0]:
            sizes, caches = twice(sizes), twice(caches)
            slots = np.concatenate((slots, n_clusters + np.arange(n_clusters)))
    return n_moved


@kernel
def merge_gains(prior, stats, alpha):
    """What the log joint density gains by joining clusters a > b: element (a, b), else zero."""
    n_clusters = stats.shape[0]
    gains = np.zeros((n_clusters, n_clusters))
    alone = log_marginals(prior, stats)
    for k in range(n_clusters):
        alone[k] += math.lgamma(stats[k, 0])
    for a in range(n_clusters):
        for b in range(a):
            union = stats[a] + stats[b]
            together = math.lgamma(union[0]) + log_marginal(prior, union)
            gains[a, b] = together - alone[a] - alone[b] - math.log(alpha)
    return gains


@kernel
def plug_in_parameters(prior, stats):
    """Plug-in estimates (K, P) of the parameters of clusters, see `mean_parameters`."""
    params = np.empty((stats.shape[0], params_size(prior)))
    for k in range(stats.shape[0]):
        mean_parameters(prior, stats[k], params[k])
    return params
