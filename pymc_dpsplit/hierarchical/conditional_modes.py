"""Conditional modes of rows in groups: each row joins its likeliest cluster; NOT invariant.

The sweep of MAP-DPM, eq. (12.1), with the masses of groups, eq. (16.16).  The mean global weights
are those of the partition before the sweep.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    fill_predictive,
    log_marginal,
    log_predictive,
    predictive_add,
    predictive_remove,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.hierarchical.state import count_groups
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row, lengthened, with_free_slots, with_more_rows
from pymc_dpsplit.kernels.special import log_rising
from pymc_dpsplit.moves.collapsed.conditional_modes import LEAST_GAIN
from pymc_dpsplit.moves.collapsed.positions import refill


class _Clusters(NamedTuple):
    """Clusters by slot; `slots[:n]` are the occupied ones.

    Attributes
    ----------
    slots : ndarray of int64, shape (capacity,)
    counts : ndarray of int64, shape (capacity, J)
    sizes : ndarray of int64, shape (capacity,)
    weights : ndarray of float64, shape (capacity,)
        Mean global weights.
    caches : ndarray of float64, shape (capacity, C)
    """

    slots: np.ndarray
    counts: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    caches: np.ndarray


@jitted
def _place(target, labels, stats, weights):
    """Clusters of a partition, with room for more."""
    prior, n_clusters = target.of_rows.prior, stats.shape[0]
    capacity, n_groups = 2 * n_clusters + 8, target.sizes.shape[0]
    clusters = _Clusters(
        np.arange(capacity),
        np.zeros((capacity, n_groups), np.int64),
        np.zeros(capacity, np.int64),
        np.zeros(capacity),
        np.zeros((capacity, predictive_size(prior))),
    )
    counts = count_groups(target, labels, n_clusters)
    for k in range(n_clusters):
        clusters.counts[k] = counts[:, k]
        clusters.sizes[k] = counts[:, k].sum()
        clusters.weights[k] = weights[k]
        fill_predictive(prior, stats[k], clusters.caches[k])
    return clusters


@jitted
def _widened(clusters):
    slots, counts, sizes, weights, caches = clusters
    n = sizes.shape[0]
    wider = np.zeros((2 * n, counts.shape[1]), np.int64)
    wider[:n] = counts
    return _Clusters(
        with_free_slots(slots), wider, lengthened(sizes, n), lengthened(weights, n),
        with_more_rows(caches, n),
    )  # fmt: skip


@jitted
def _remove_row(target, labels, i, clusters, n_clusters):
    """Remove row i from its cluster; return the number of occupied slots."""
    prior, data, _ = target.of_rows
    slots, k = clusters.slots, labels[i]
    labels[i] = -1
    clusters.counts[k, target.group_of_row[i]] -= 1
    clusters.sizes[k] -= 1
    if clusters.sizes[k] > 0:
        if not predictive_remove(prior, data, i, clusters.caches[k]):
            refill(prior, data, labels, k, -1, clusters.caches[k])
        return n_clusters
    for p in range(n_clusters):
        if slots[p] == k:
            slots[p], slots[n_clusters - 1] = slots[n_clusters - 1], k
    return n_clusters - 1


@jitted
def _best_slot(target, i, origin, clusters, n_clusters, rest, empty):
    """Position of the likeliest cluster of row i; n_clusters for a new one.

    If the row was alone, its own slot is free and stands at position n_clusters.
    """
    prior, data, _ = target.of_rows
    group, alpha = target.group_of_row[i], target.alpha
    log_new = log_predictive(prior, data, i, empty) + math.log(alpha * rest)
    best, highest, present = n_clusters, log_new, log_new
    at_present = n_clusters
    for p in range(n_clusters):
        k = clusters.slots[p]
        mass = math.log(clusters.counts[k, group] + alpha * clusters.weights[k])
        mass += log_predictive(prior, data, i, clusters.caches[k])
        if k == origin:
            at_present, present = p, mass
        if mass > highest:
            best, highest = p, mass
    return best if highest > present + LEAST_GAIN else at_present


@jitted
def climb_in_groups(target, labels, stats, weights, rest, rows):
    """Move each of `rows` in turn to its likeliest cluster, eq. (16.16).

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.  Afterwards some numbers of clusters may be unused.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
        Mean global weights.
    rest : float
        Mean weight of the remainder.
    rows : ndarray of int64, shape (M,)
        In the order in which they are visited.

    Returns
    -------
    int
        Number of rows that moved.
    """
    prior, data, law = target.of_rows
    clusters, n_clusters = _place(target, labels, stats, weights), stats.shape[0]
    empty = np.zeros(predictive_size(prior))
    fill_predictive(prior, np.zeros(stats_size(prior)), empty)
    n_moved = 0
    for i in rows:
        origin, n_before = labels[i], n_clusters
        n_clusters = _remove_row(target, labels, i, clusters, n_clusters)
        # The weight of a cluster that has lost its last row is in the remainder.
        returned = clusters.weights[origin] if n_clusters < n_before else 0.0
        p = _best_slot(target, i, origin, clusters, n_clusters, rest + returned, empty)
        k = clusters.slots[p]
        if p == n_clusters:
            copy_row(empty, clusters.caches[k])
            n_clusters += 1
            if k != origin:
                # The mean share of a new cluster.
                clusters.weights[k] = (rest + returned) / (1.0 + law.strength)
                rest -= clusters.weights[k]
        if k != origin:
            rest += returned
            n_moved += 1
        labels[i] = k
        clusters.counts[k, target.group_of_row[i]] += 1
        clusters.sizes[k] += 1
        predictive_add(prior, data, i, clusters.caches[k])
        if n_clusters == clusters.sizes.shape[0]:
            clusters = _widened(clusters)
    return n_moved


@jitted
def likely_merge_gains(target, stats, counts, weights):
    """Approximate gains in the log joint density from merging each pair of clusters.

    They are those of eq. (16.2) at the mean global weights, without the density of the share, and
    say which pairs are worth an exact evaluation.

    Parameters
    ----------
    target : GroupedTarget
    stats : ndarray of float64, shape (K, S)
    counts : ndarray of int64, shape (J, K)
    weights : ndarray of float64, shape (K,)

    Returns
    -------
    ndarray of float64, shape (K, K)
        Element (a, b) for clusters a > b, -inf elsewhere.
    """
    prior, alpha, n_clusters = target.of_rows.prior, target.alpha, stats.shape[0]
    gains = np.full((n_clusters, n_clusters), -math.inf)
    for a in range(n_clusters):
        for b in range(a):
            gain = log_marginal(prior, stats[a] + stats[b])
            gain -= log_marginal(prior, stats[a]) + log_marginal(prior, stats[b])
            for j in range(counts.shape[0]):
                n_a, n_b = counts[j, a], counts[j, b]
                if n_a > 0 and n_b > 0:
                    gain += log_rising(alpha * (weights[a] + weights[b]), n_a + n_b)
                    gain -= log_rising(alpha * weights[a], n_a)
                    gain -= log_rising(alpha * weights[b], n_b)
                elif n_a + n_b > 0:
                    of_one = weights[a] if n_a > 0 else weights[b]
                    gain += log_rising(alpha * (weights[a] + weights[b]), n_a + n_b)
                    gain -= log_rising(alpha * of_one, n_a + n_b)
            gains[a, b] = gain
    return gains
