"""Collapsed Gibbs: one observation at a time, weights and parameters integrated out.

Algorithm 3 of Neal (2000), eq. (4.1), over all observations or any fixed list of them.  Each
cluster keeps a cache for its predictive density, and a family may keep a table of all clusters, see
`components.collapsed`.  Both are left alone unless the observation moves, as most do not: the
density given the others of its own cluster is found from the cache that includes it.  Caches are
recomputed at every scan, and whenever rounding spoils one, so that errors do not accumulate.
"""

import math
from typing import NamedTuple

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
from pymc_dpsplit.components.collapsed import (
    Clusters,
    fill_log_predictives,
    new_clusters,
    tabulate,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.cluster_choice import choose_position
from pymc_dpsplit.kernels.cluster_table import WIDE, whole_blocks
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined
from pymc_dpsplit.kernels.rows import copy_row, copy_rows
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import (
    joining_mass,
    log_founding_factor,
    log_joining_factor,
)


class Positions(NamedTuple):
    """Clusters of a scan by position; a cluster that loses its last member leaves a gap.

    Attributes
    ----------
    label_of : ndarray of int64, shape (capacity,)
    position_of : ndarray of int64, shape (capacity,)
        Label of the observations of each position, and the reverse.
    totals : ndarray of float64, shape (capacity, S)
        Sufficient statistics.
    log_sizes : ndarray of float64, shape (capacity,)
        Log prior masses of one observation that joins; -inf in a gap and 0 after the last position.
    log_mass : ndarray of float64, shape (capacity,)
    one : ndarray of float64, shape (S,)
        Workspace.
    clusters : Clusters
    """

    label_of: np.ndarray
    position_of: np.ndarray
    totals: np.ndarray
    log_sizes: np.ndarray
    log_mass: np.ndarray
    one: np.ndarray
    clusters: Clusters


@jitted
def refill(prior, data, labels, cluster, left_out, cache):
    """Compute the cache of a cluster from its present members but for one.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    cluster : int
        Label of the members.
    left_out : int
        Index of an observation that does not count; -1 for none.
    cache : ndarray of float64, shape (C,)
        Overwritten.
    """
    stats = np.zeros(stats_size(prior))
    for i in range(labels.shape[0]):
        if labels[i] == cluster and i != left_out:
            add_row(prior, data, i, stats)
    fill_predictive(prior, stats, cache)


@jitted
def _new_positions(prior, capacity):
    """Allocate room for clusters, all gaps."""
    return Positions(
        np.arange(capacity),
        np.arange(capacity),
        np.zeros((capacity, stats_size(prior))),
        np.zeros(capacity),
        np.empty(capacity),
        np.empty(stats_size(prior)),
        new_clusters(prior, capacity),
    )


@jitted
def _place_clusters(prior, labels, stats):
    """Place the clusters in an order that depends on the partition alone.

    Then neither the draws nor the new numbers of clusters depend on the old numbers.
    """
    n_clusters = stats.shape[0]
    positions = _new_positions(prior, whole_blocks(2 * n_clusters + WIDE))
    copy_row(cluster_order(labels, stats), positions.label_of)
    for p in range(n_clusters):
        k = positions.label_of[p]
        positions.position_of[k] = p
        copy_row(stats[k], positions.totals[p])
        positions.clusters.sizes[p] = stats[k, 0]
        fill_predictive(prior, stats[k], positions.clusters.caches[p])
    return positions


@jitted
def _with_more_room(prior, positions):
    """Copy the positions into twice as much room."""
    old, capacity = positions.clusters, positions.log_sizes.shape[0]
    longer = _new_positions(prior, 2 * capacity)
    copy_row(positions.label_of, longer.label_of)
    copy_row(positions.position_of, longer.position_of)
    copy_rows(positions.totals, longer.totals)
    copy_row(positions.log_sizes, longer.log_sizes)
    copy_row(old.sizes, longer.clusters.sizes)
    copy_rows(old.caches, longer.clusters.caches)
    copy_row(old.table, longer.clusters.table)
    return longer


@jitted
def _open_position(positions, n, empty):
    """Make the first gap, or position n, that of a cluster without observations; return it."""
    sizes, p = positions.clusters.sizes, 0
    while p < n and sizes[p] > 0.0:
        p += 1
    copy_row(empty, row_of(positions.clusters.caches, p))
    for j in range(positions.totals.shape[1]):
        positions.totals[p, j] = 0.0
    return p


@jitted
def _settle(prior, law, positions, p):
    """Bring what is derived from the cache and the size of a cluster up to date."""
    clusters = positions.clusters
    size = clusters.sizes[p]
    positions.log_sizes[p] = math.log(joining_mass(law, size)) if size > 0.0 else -math.inf
    if size > 0.0:
        tabulate(prior, row_of(clusters.caches, p), clusters.table, p)


@jitted
def _move_row(prior, data, labels, i, law, positions, origin, goal):
    """Move observation i from position `origin` to position `goal`.

    An empty goal has the cache of a cluster without observations.
    """
    clusters, totals, one = positions.clusters, positions.totals, positions.one
    n_moving = multiplicity(prior, data, i)
    labels[i] = positions.label_of[goal]
    for j in range(one.shape[0]):
        one[j] = 0.0
    add_row(prior, data, i, one)
    for j in range(one.shape[0]):
        totals[goal, j] += one[j]
        totals[origin, j] -= one[j]
    predictive_add(prior, data, i, row_of(clusters.caches, goal))
    clusters.sizes[goal] += n_moving
    _settle(prior, law, positions, goal)
    clusters.sizes[origin] -= n_moving
    cache = row_of(clusters.caches, origin)
    if clusters.sizes[origin] > 0.0 and not predictive_remove(prior, data, i, cache):
        refill(prior, data, labels, positions.label_of[origin], -1, cache)
    _settle(prior, law, positions, origin)


@jitted_inlined
def _log_own_mass(prior, data, labels, i, law, n_others, density, clusters):
    """Log mass of the own cluster of observation i, with `n_others` besides, given its density."""
    if math.isnan(density):
        refill(prior, data, labels, labels[i], i, clusters.spare)
        density = log_predictive(prior, data, i, clusters.spare)
    return log_joining_factor(law, n_others, multiplicity(prior, data, i)) + density


@jitted
def _add_masses_of_several(law, n_joining, positions, n, log_mass):
    """Turn log prior masses of one observation into those of several that join together."""
    sizes = positions.clusters.sizes
    for p in range(n):
        if sizes[p] > 0.0:
            log_mass[p] += log_joining_factor(law, sizes[p], n_joining) - positions.log_sizes[p]


@jitted_inlined
def _draw_position(prior, data, labels, i, law, log_alone, positions, n, n_clusters, rng):
    """Draw the position of the cluster that observation i joins; n for a new one.

    An observation that is alone opens a new cluster by staying where it is.
    """
    clusters, log_mass = positions.clusters, positions.log_mass
    own, n_joining = positions.position_of[labels[i]], multiplicity(prior, data, i)
    n_others, n_options = clusters.sizes[own] - n_joining, n
    shared = own if n_others > 0.0 else -1
    density = fill_log_predictives(prior, data, i, clusters, n, shared, log_mass)
    if n_joining != 1.0:
        _add_masses_of_several(law, n_joining, positions, n, log_mass)
    if shared < 0:
        log_own = log_founding_factor(law, n_clusters - 1, n_joining) + log_alone
    else:
        log_own = _log_own_mass(prior, data, labels, i, law, n_others, density, clusters)
        log_mass[n] = log_founding_factor(law, n_clusters, n_joining) + log_alone
        n_options += 1
    log_mass[own] = log_own - positions.log_sizes[own]
    n_padded = whole_blocks(n_options)
    for p in range(n_options, n_padded):
        log_mass[p] = -math.inf
    return choose_position(log_mass, positions.log_sizes, n_padded, rng.random())


@jitted
def _renumber(labels, positions, n, n_clusters):
    """Give the clusters the numbers 0 .. K - 1 in the order of positions; return statistics."""
    sizes, label_of = positions.clusters.sizes, positions.label_of
    number_of = np.empty(label_of.shape[0], np.int32)
    kept = np.empty((n_clusters, positions.totals.shape[1]))
    at, moved = 0, False
    for p in range(n):
        if sizes[p] > 0.0:
            number_of[label_of[p]] = at
            copy_row(positions.totals[p], kept[at])
            moved = moved or label_of[p] != at
            at += 1
    if moved:
        for i in range(labels.shape[0]):
            labels[i] = number_of[labels[i]]
    return kept


@jitted
def _visit_rows(target, labels, rng, rows, log_alone, first, positions, empty, counts):
    """Redraw the labels of rows[first:] while there is room; return how far it came.

    `empty` is the cache of a cluster without observations, `counts` the number of positions and of
    clusters; updated.  Nothing is allocated here, so that no references are counted.
    """
    prior, data, law = target
    n, n_clusters, capacity = counts[0], counts[1], positions.log_sizes.shape[0]
    j = first
    while j < rows.shape[0] and n < capacity:
        i, log_new = rows[j], log_alone[j]
        j += 1
        origin = positions.position_of[labels[i]]
        goal = _draw_position(prior, data, labels, i, law, log_new, positions, n, n_clusters, rng)
        if goal == origin:
            continue
        if goal == n:
            goal = _open_position(positions, n, empty)
            n = max(n, goal + 1)
            n_clusters += 1
        _move_row(prior, data, labels, i, law, positions, origin, goal)
        if positions.clusters.sizes[origin] == 0.0:
            n_clusters -= 1
    counts[0], counts[1] = n, n_clusters
    return j


@jitted
def collapsed_scan(target, labels, stats, rng, rows, log_alone):
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
    log_alone : ndarray of float64, shape (M,)
        Their log prior predictive densities.

    Returns
    -------
    ndarray of float64, shape (K', S)
        Sufficient statistics.
    """
    prior, _, law = target
    positions = _place_clusters(prior, labels, stats)
    counts = np.full(2, stats.shape[0])
    for p in range(stats.shape[0]):
        _settle(prior, law, positions, p)
    empty = np.zeros(predictive_size(prior))
    fill_predictive(prior, np.zeros(stats.shape[1]), empty)
    first = _visit_rows(target, labels, rng, rows, log_alone, 0, positions, empty, counts)
    while first < rows.shape[0]:
        positions = _with_more_room(prior, positions)
        first = _visit_rows(target, labels, rng, rows, log_alone, first, positions, empty, counts)
    return _renumber(labels, positions, counts[0], counts[1])


@jitted
def log_densities_alone(prior, data, rows):
    """Log prior predictive densities of the observations `rows`, shape (M,).

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    rows : ndarray of int64, shape (M,)

    Returns
    -------
    ndarray of float64, shape (M,)
    """
    empty = np.zeros(predictive_size(prior))
    fill_predictive(prior, np.zeros(stats_size(prior)), empty)
    out = np.empty(rows.shape[0])
    for j in range(rows.shape[0]):
        out[j] = log_predictive(prior, data, rows[j], empty)
    return out


@jitted
def collapsed_sweep_with(target, labels, stats, rng, everyone, log_alone):
    """Redraw every label in turn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    everyone : ndarray of int64, shape (N,)
        Indices of all observations.
    log_alone : ndarray of float64, shape (N,)
        Their log prior predictive densities.

    Returns
    -------
    ndarray of float64, shape (K', S)
        Sufficient statistics.
    """
    stats = collapsed_scan(target, labels, stats, rng, everyone, log_alone)
    return gather_stats(target.prior, target.data, labels, stats.shape[0])


@jitted
def collapsed_sweep(target, labels, stats, rng):
    """Redraw every label in turn, once; see `collapsed_sweep_with`.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    everyone = np.arange(labels.shape[0])
    log_alone = log_densities_alone(target.prior, target.data, everyone)
    return collapsed_sweep_with(target, labels, stats, rng, everyone, log_alone)
