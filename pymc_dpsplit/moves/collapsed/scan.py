"""Collapsed Gibbs: one observation at a time, weights and parameters integrated out.

Algorithm 3 of Neal (2000), eq. (4.1), over all observations or any fixed list of them.  Each
cluster keeps a cache for its predictive density; evaluating the density of an observation and
updating the cache by an observation cost O(D^2) at most.  The caches are recomputed at every
scan, and whenever rounding spoils one, so that errors do not accumulate.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_predictive,
    log_predictive,
    predictive_add,
    predictive_remove,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_categorical
from pymc_dpsplit.kernels.rows import copy_row, copy_rows, lengthened, with_more_rows
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import log_founding_factor, log_joining_factor


@jitted
def _refill(prior, data, labels, cluster, cache):
    """Compute the cache of a cluster from its present members."""
    stats = np.zeros(stats_size(prior))
    for i in range(labels.shape[0]):
        if labels[i] == cluster:
            add_row(prior, data, i, stats)
    fill_predictive(prior, stats, cache)


@jitted
def remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters):
    """Remove observation i from its cluster; return the number of occupied slots.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Changed: labels[i] becomes -1.
    i : int
    sizes : ndarray of float64, shape (capacity,)
        Cluster sizes; updated.
    caches : ndarray of float64, shape (capacity, C)
        Predictive caches of the clusters; updated.
    slots : ndarray of int64, shape (capacity,)
        slots[:n_clusters] are the occupied rows of `caches`, the others are free; updated.
    n_clusters : int

    Returns
    -------
    int
    """
    k = labels[i]
    labels[i] = -1
    sizes[k] -= multiplicity(prior, data, i)
    if sizes[k] > 0.0:
        if not predictive_remove(prior, data, i, caches[k]):
            _refill(prior, data, labels, k, caches[k])
        return n_clusters
    for p in range(n_clusters):
        if slots[p] == k:
            slots[p] = slots[n_clusters - 1]
            slots[n_clusters - 1] = k
    return n_clusters - 1


@jitted
def _move_row(prior, data, i, origin, goal, one):
    """Move observation i from statistics `origin` to statistics `goal`; `one` is scratch."""
    one[:] = 0.0
    add_row(prior, data, i, one)
    for j in range(one.shape[0]):
        origin[j] -= one[j]
        goal[j] += one[j]


@jitted
def with_free_slots(slots):
    """Double the length of `slots`, shape (n,); the new slots, n .. 2 n - 1, are free."""
    longer = lengthened(slots, slots.shape[0])
    for q in range(slots.shape[0], longer.shape[0]):
        longer[q] = q
    return longer


@jitted
def _draw_slot(prior, data, i, law, sizes, caches, slots, n_clusters, empty, mass, rng):
    """Draw the position of the cluster that observation i joins; n_clusters for a new one.

    `empty` is the cache of a cluster without observations.
    """
    n_joining = multiplicity(prior, data, i)
    log_new = log_founding_factor(law, n_clusters, n_joining)
    log_new += log_predictive(prior, data, i, empty)
    highest = log_new
    for p in range(n_clusters):
        k = slots[p]
        log_joining = log_joining_factor(law, sizes[k], n_joining)
        mass[p] = log_joining + log_predictive(prior, data, i, caches[k])
        highest = max(highest, mass[p])
    mass[n_clusters] = log_new
    for p in range(n_clusters + 1):
        mass[p] = math.exp(mass[p] - highest)
    return draw_categorical(rng, mass[: n_clusters + 1])


@jitted
def _renumber(labels, stats, slots, n_clusters):
    """Give the occupied slots the numbers 0 .. K - 1; return their statistics."""
    position = np.empty(stats.shape[0], np.int32)
    kept = np.empty((n_clusters, stats.shape[1]))
    moved = False
    for p in range(n_clusters):
        position[slots[p]] = p
        copy_row(stats[slots[p]], kept[p])
        moved = moved or slots[p] != p
    if moved:
        for i in range(labels.shape[0]):
            labels[i] = position[labels[i]]
    return kept


@jitted
def collapsed_scan(target, labels, stats, rng, rows):
    """Redraw the labels of `rows` in turn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    rows : ndarray of int64, shape (M,)
        Observations; the list must not depend on the partition.

    Returns
    -------
    ndarray of float64, shape (K', S)
        Sufficient statistics.
    """
    prior, data, law = target
    n_clusters = stats.shape[0]
    capacity = 2 * n_clusters + 8
    slots = np.arange(capacity)
    # So that neither the draws nor the new numbers of clusters depend on the old numbers.
    copy_row(cluster_order(labels, stats), slots)
    sizes = np.zeros(capacity)
    caches = np.zeros((capacity, predictive_size(prior)))
    totals = np.zeros((capacity, stats.shape[1]))
    copy_rows(stats, totals)
    one = np.zeros(stats.shape[1])
    empty = np.zeros(predictive_size(prior))
    fill_predictive(prior, one, empty)
    for k in range(n_clusters):
        sizes[k] = stats[k, 0]
        fill_predictive(prior, stats[k], caches[k])
    mass = np.empty(capacity + 1)
    for j in range(rows.shape[0]):
        i = rows[j]
        origin = labels[i]
        n_clusters = remove_row(prior, data, labels, i, sizes, caches, slots, n_clusters)
        p = _draw_slot(prior, data, i, law, sizes, caches, slots, n_clusters, empty, mass, rng)
        k = slots[p]
        if p == n_clusters:
            copy_row(empty, caches[k])
            n_clusters += 1
        labels[i] = k
        sizes[k] += multiplicity(prior, data, i)
        predictive_add(prior, data, i, caches[k])
        if k != origin:
            if sizes[k] == multiplicity(prior, data, i):
                totals[k] = 0.0
            _move_row(prior, data, i, totals[origin], totals[k], one)
        if n_clusters == sizes.shape[0]:
            sizes = lengthened(sizes, n_clusters)
            caches, totals = with_more_rows(caches, n_clusters), with_more_rows(totals, n_clusters)
            slots = with_free_slots(slots)
            mass = np.empty(sizes.shape[0] + 1)
    return _renumber(labels, totals, slots, n_clusters)


@jitted
def collapsed_sweep(target, labels, stats, rng):
    """Redraw every label in turn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K', S)
        Sufficient statistics.
    """
    rows = np.arange(labels.shape[0])
    stats = collapsed_scan(target, labels, stats, rng, rows)
    return gather_stats(target.prior, target.data, labels, stats.shape[0])
