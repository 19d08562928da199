"""Collapsed Gibbs: one observation at a time, weights and parameters summed out.

Algorithm 3 of Neal (2000), eq. (14), over all observations or any fixed list of them.  Each
cluster keeps a cache from which the predictive density of an observation costs O(D^2) at most,
updated by one observation in O(D^2).  The caches are computed afresh at every scan, and whenever
rounding spoils one: errors cannot build up.
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
def remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters):
    """Take observation i out of its cluster; returns the number of occupied slots.

    `slots[:n_clusters]` lists the occupied rows of `caches`, the rest are free.
    """
    k = labels[i]
    labels[i] = -1
    sizes[k] -= 1.0
    if sizes[k] > 0.0:
        if not cache_remove(prior, data, i, caches[k]):
            _refill(prior, data, labels, k, caches[k])
        return n_clusters
    for p in range(n_clusters):
        if slots[p] == k:
            slots[p] = slots[n_clusters - 1]
            slots[n_clusters - 1] = k
    return n_clusters - 1


@kernel
def _move_row(prior, data, i, origin, goal, one):
    """Take observation i out of the statistics `origin` and add it to `goal`; `one` is scratch."""
    one[:] = 0.0
    add_row(prior, data, i, one)
    origin[:] -= one
    goal[:] += one


@kernel
def twice(array):
    """Copy of `array` with room for as many rows again, zeroed."""
    return np.concatenate((array, np.zeros_like(array)))


@kernel
def _draw_slot(prior, data, i, sizes, caches, slots, n_clusters, log_new, mass, rng):
    """Position of the cluster that observation i joins; n_clusters for a new one."""
    highest = log_new
    for p in range(n_clusters):
        k = slots[p]
        mass[p] = math.log(sizes[k]) + log_predictive(prior, data, i, caches[k])
        highest = max(highest, mass[p])
    mass[n_clusters] = log_new
    for p in range(n_clusters + 1):
        mass[p] = math.exp(mass[p] - highest)
    return draw_categorical(rng, mass[: n_clusters + 1])


@kernel
def _renumber(labels, stats, slots, n_clusters):
    """Give the occupied slots the numbers 0 .. K - 1; return their statistics."""
    position = np.empty(stats.shape[0], np.int32)
    kept = np.empty((n_clusters, stats.shape[1]))
    moved = False
    for p in range(n_clusters):
        position[slots[p]] = p
        kept[p] = stats[slots[p]]
        moved = moved or slots[p] != p
    if moved:
        for i in range(labels.shape[0]):
            labels[i] = position[labels[i]]
    return kept


@kernel
def collapsed_scan(prior, data, labels, stats, rows, alpha, rng):
    """Redraw the labels of `rows` in turn; changes `labels`, returns the new statistics.

    Parameters
    ----------
    rows : ndarray of int64, shape (M,)
        Observations; the list must not depend on the partition.
    """
    n_clusters = stats.shape[0]
    capacity = 2 * n_clusters + 8
    slots = np.arange(capacity)
    sizes = np.zeros(capacity)
    caches = np.zeros((capacity, cache_size(prior)))
    totals = np.zeros((capacity, stats.shape[1]))
    totals[:n_clusters] = stats
    one = np.zeros(stats.shape[1])
    empty = np.zeros(cache_size(prior))
    fill_cache(prior, one, empty)
    for k in range(n_clusters):
        sizes[k] = stats[k, 0]
        fill_cache(prior, stats[k], caches[k])
    mass = np.empty(capacity + 1)
    for j in range(rows.shape[0]):
        i = rows[j]
        origin = labels[i]
        n_clusters = remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters)
        log_new = math.log(alpha) + log_predictive(prior, data, i, empty)
        p = _draw_slot(prior, data, i, sizes, caches, slots, n_clusters, log_new, mass, rng)
        k = slots[p]
        if p == n_clusters:
            caches[k] = empty
            n_clusters += 1
        labels[i] = k
        sizes[k] += 1.0
        cache_add(prior, data, i, caches[k])
        if k != origin:
            if sizes[k] == 1.0:
                totals[k] = 0.0
            _move_row(prior, data, i, totals[origin], totals[k], one)
        if n_clusters == sizes.shape[0]:
            sizes, caches, totals = twice(sizes), twice(caches), twice(totals)
            slots = np.concatenate((slots, n_clusters + np.arange(n_clusters)))
            mass = np.empty(sizes.shape[0] + 1)
    return _renumber(labels, totals, slots, n_clusters)


@kernel
def collapsed_sweep(prior, data, labels, stats, alpha, rng):
    """Redraw every label in turn; changes `labels`, returns the new statistics."""
    rows = np.arange(labels.shape[0])
    stats = collapsed_scan(prior, data, labels, stats, rows, alpha, rng)
    return gather_stats(prior, data, labels, stats.shape[0])
