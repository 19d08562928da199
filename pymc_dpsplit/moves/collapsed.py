"""Collapsed Gibbs: one observation at a time, weights and parameters summed out.

Algorithm 3 of Neal (2000), eq. (14).  Each cluster keeps a cache from which the predictive
density of an observation costs O(D^2) at most, updated by one observation in O(D^2).  The caches
are computed afresh at every sweep, and whenever rounding spoils one: errors cannot build up.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    cache_add,
    cache_remove,
    cache_size,
    fill_cache,
    log_predictive,
    stats_size,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_categorical
from pymc_dpsplit.moves.partition import gather_stats


@kernel
def _refill(prior, data, labels, cluster, cache):
    """Compute the cache of a cluster from its present members."""
    stats = np.zeros(stats_size(prior))
    for i in range(labels.shape[0]):
        if labels[i] == cluster:
            add_row(prior, data, i, stats)
    fill_cache(prior, stats, cache)


@kernel
def _remove(prior, data, labels, i, sizes, caches, slots, n_clusters):
    """Take observation i out of its cluster; returns the number of occupied slots.

    `slots[:n_clusters]` lists the occupied rows of `caches`, the rest are free.
    """
    k = labels[i]
    labels[i] = -1
    sizes[k] -= 1
    if sizes[k] > 0:
        if not cache_remove(prior, data, i, caches[k]):
            _refill(prior, data, labels, k, caches[k])
        return n_clusters
    for p in range(n_clusters):
        if slots[p] == k:
            slots[p] = slots[n_clusters - 1]
            slots[n_clusters - 1] = k
    return n_clusters - 1


@kernel
def _grow(sizes, caches, slots):
    """Twice as many slots, the new ones free."""
    n = sizes.shape[0]
    more_caches = np.empty((2 * n, caches.shape[1]))
    more_caches[:n] = caches
    more_slots = np.arange(2 * n)
    more_slots[:n] = slots
    return np.concatenate((sizes, np.zeros(n, np.int64))), more_caches, more_slots


@kernel
def _draw_slot(prior, data, i, sizes, log_of, caches, slots, n_clusters, log_new, mass, rng):
    """Position of the cluster that observation i joins; n_clusters for a new one.

    `log_of[n]` is log(n).
    """
    highest = log_new
    for p in range(n_clusters):
        k = slots[p]
        mass[p] = log_of[sizes[k]] + log_predictive(prior, data, i, caches[k])
        highest = max(highest, mass[p])
    mass[n_clusters] = log_new
    for p in range(n_clusters + 1):
        mass[p] = math.exp(mass[p] - highest)
    return draw_categorical(rng, mass[: n_clusters + 1])


@kernel
def collapsed_sweep(prior, data, labels, stats, alpha, rng):
    """Redraw every label in turn; changes `labels`, returns the new statistics."""
    n_obs, n_clusters = labels.shape[0], stats.shape[0]
    capacity = 2 * n_clusters + 8
    sizes, slots = np.zeros(capacity, np.int64), np.arange(capacity)
    log_of = np.log(np.arange(1.0 * n_obs + 1.0))
    caches = np.empty((capacity, cache_size(prior)))
    empty = np.empty(cache_size(prior))
    fill_cache(prior, np.zeros(stats_size(prior)), empty)
    for k in range(n_clusters):
        sizes[k] = np.int64(stats[k, 0])
        fill_cache(prior, stats[k], caches[k])
    mass = np.empty(capacity + 1)
    for i in range(n_obs):
        n_clusters = _remove(prior, data, labels, i, sizes, caches, slots, n_clusters)
        log_new = math.log(alpha) + log_predictive(prior, data, i, empty)
        p = _draw_slot(prior, data, i, sizes, log_of, caches, slots, n_clusters, log_new, mass, rng)
        k = slots[p]
        if p == n_clusters:
            caches[k] = empty
            n_clusters += 1
        labels[i] = k
        sizes[k] += 1
        cache_add(prior, data, i, caches[k])
        if n_clusters == sizes.shape[0]:
            sizes, caches, slots = _grow(sizes, caches, slots)
            mass = np.empty(sizes.shape[0] + 1)
    position = np.empty(sizes.shape[0], np.int32)
    for p in range(n_clusters):
        position[slots[p]] = p
    for i in range(n_obs):
        labels[i] = position[labels[i]]
    return gather_stats(prior, data, labels, n_clusters)
