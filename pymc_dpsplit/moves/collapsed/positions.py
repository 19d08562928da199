"""Clusters of a collapsed scan by position, and the move of an observation between two of them.

Each cluster keeps a cache for its predictive density, and a family may keep a table of all
clusters, see `components.collapsed`.  Both change only if an observation moves.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import add_row, fill_predictive, predictive_size, stats_size
from pymc_dpsplit.components.collapsed import (
    Clusters,
    add_to_cluster,
    new_clusters,
    new_numbers_of_sizes,
    remove_from_cluster,
    tabulate,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.cluster_choice import workspace_size
from pymc_dpsplit.kernels.cluster_table import WIDE, whole_blocks
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted, jitted_uncounted
from pymc_dpsplit.kernels.lines import on_lines, zeros_on_lines
from pymc_dpsplit.kernels.rows import copy_row, copy_rows, first_column_sum
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.partition_law import joining_mass


class Positions(NamedTuple):
    """Clusters of a scan by position; a cluster that loses its last member leaves a gap.

    Attributes
    ----------
    label_of : ndarray of int64, shape (capacity,)
    position_of : ndarray of int64, shape (capacity,)
        Label of the observations of each position, and the reverse.
    totals : ndarray of float64, shape (capacity, S)
        Sufficient statistics; shape (0, S) where they are not followed.
    log_sizes : ndarray of float64, shape (capacity,)
        Log prior masses of one observation that joins; -inf in a gap and 0 after the last position.
    log_density : ndarray of float64, shape (capacity,)
    weights : ndarray of float64, shape (workspace_size(capacity),)
    one : ndarray of float64, shape (S,)
        Workspace.
    empty : ndarray of float64, shape (C,)
        Cache of a cluster without observations.
    log_joining : ndarray of float64
        Log prior mass of one observation that joins a cluster, by size; NaN where it is not known.
    log_largest : float
        Log prior mass of one observation that joins a cluster of all observations.
    counts : ndarray of int64, shape (2,)
        Number of positions, gaps included, and of clusters.
    clusters : Clusters
    """

    label_of: np.ndarray
    position_of: np.ndarray
    totals: np.ndarray
    log_sizes: np.ndarray
    log_density: np.ndarray
    weights: np.ndarray
    one: np.ndarray
    empty: np.ndarray
    log_joining: np.ndarray
    log_largest: float
    counts: np.ndarray
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
def _new_positions(prior, capacity, follows, empty, log_joining, log_largest, counts, norms):
    """Allocate room for clusters, all gaps, and for their totals if it `follows` these."""
    return Positions(
        np.arange(capacity),
        np.arange(capacity),
        np.zeros((capacity if follows else 0, stats_size(prior))),
        zeros_on_lines(capacity),
        on_lines(capacity),
        on_lines(workspace_size(capacity)),
        np.empty(stats_size(prior)),
        empty,
        log_joining,
        log_largest,
        counts,
        new_clusters(prior, capacity, norms),
    )


@jitted
def place_clusters(prior, law, labels, stats, follows_totals):
    """Place the clusters in an order that depends on the partition alone.

    Then neither the draws nor the new numbers of clusters depend on the old numbers.

    Parameters
    ----------
    prior : NamedTuple
    law : PartitionLaw
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    follows_totals : bool
        Whether moves change the sufficient statistics, see `kept_totals`.

    Returns
    -------
    Positions
    """
    n_clusters, n_obs = stats.shape[0], first_column_sum(stats)
    empty = np.empty(predictive_size(prior))
    fill_predictive(prior, np.zeros(stats_size(prior)), empty)
    positions = _new_positions(
        prior,
        whole_blocks(2 * n_clusters + WIDE),
        follows_totals,
        empty,
        new_numbers_of_sizes(n_obs),
        math.log(joining_mass(law, max(n_obs, 1.0))),
        np.full(2, n_clusters),
        new_numbers_of_sizes(n_obs),
    )
    copy_row(cluster_order(labels, stats), positions.label_of)
    for p in range(n_clusters):
        k = positions.label_of[p]
        positions.position_of[k] = p
        if follows_totals:
            copy_row(stats[k], positions.totals[p])
        positions.clusters.sizes[p] = stats[k, 0]
        fill_predictive(prior, stats[k], positions.clusters.caches[p])
        settle(prior, law, positions, p)
    return positions


@jitted
def with_more_room(prior, positions):
    """Copy the positions into twice as much room.

    Parameters
    ----------
    prior : NamedTuple
    positions : Positions

    Returns
    -------
    Positions
    """
    old, capacity = positions.clusters, positions.log_sizes.shape[0]
    longer = _new_positions(
        prior,
        2 * capacity,
        positions.totals.shape[0] > 0,
        positions.empty,
        positions.log_joining,
        positions.log_largest,
        positions.counts,
        old.norms,
    )
    copy_row(positions.label_of, longer.label_of)
    copy_row(positions.position_of, longer.position_of)
    copy_rows(positions.totals, longer.totals)
    copy_row(positions.log_sizes, longer.log_sizes)
    copy_row(old.sizes, longer.clusters.sizes)
    copy_rows(old.caches, longer.clusters.caches)
    copy_row(old.table, longer.clusters.table)
    return longer


@jitted_uncounted
def open_position(positions):
    """Make the first gap, or the next position, that of a cluster without observations.

    Parameters
    ----------
    positions : Positions

    Returns
    -------
    int
        The position.
    """
    sizes, counts, p = positions.clusters.sizes, positions.counts, 0
    while p < counts[0] and sizes[p] > 0.0:
        p += 1
    copy_row(positions.empty, row_of(positions.clusters.caches, p))
    if positions.totals.shape[0] > 0:
        for j in range(positions.totals.shape[1]):
            positions.totals[p, j] = 0.0
    counts[0] = max(counts[0], p + 1)
    counts[1] += 1
    return p


@jitted_inlined_uncounted
def log_joining_one(law, positions, size):
    """Log prior mass of one observation that joins a cluster; computed when first needed.

    Parameters
    ----------
    law : PartitionLaw
    positions : Positions
    size : float
        A positive whole number.

    Returns
    -------
    float
    """
    known, at = positions.log_joining, int(size)
    if at >= known.shape[0]:
        return math.log(joining_mass(law, size))
    if math.isnan(known[at]):
        known[at] = math.log(joining_mass(law, size))
    return known[at]


@jitted_inlined_uncounted
def settle(prior, law, positions, p):
    """Bring what is derived from the cache and the size of a cluster up to date.

    Parameters
    ----------
    prior : NamedTuple
    law : PartitionLaw
    positions : Positions
    p : int
    """
    size = positions.clusters.sizes[p]
    if size > 0.0:
        positions.log_sizes[p] = log_joining_one(law, positions, size)
        tabulate(prior, positions.clusters, p)
    else:
        positions.log_sizes[p] = -math.inf


@jitted_inlined_uncounted
def _move_in_totals(prior, data, i, positions, origin, goal):
    """Move observation i from the sufficient statistics of `origin` to those of `goal`."""
    totals, one = positions.totals, positions.one
    for j in range(one.shape[0]):
        one[j] = 0.0
    add_row(prior, data, i, one)
    for j in range(one.shape[0]):
        totals[goal, j] += one[j]
        totals[origin, j] -= one[j]


@jitted_inlined_uncounted
def move_between(prior, data, labels, i, law, positions, origin, goal):
    """Move observation i from position `origin` to position `goal`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Changed.
    i : int
    law : PartitionLaw
    positions : Positions
    origin, goal : int
        A goal without observations is one from `open_position`.
    """
    clusters, n_moving = positions.clusters, multiplicity(prior, data, i)
    labels[i] = positions.label_of[goal]
    if positions.totals.shape[0] > 0:
        _move_in_totals(prior, data, i, positions, origin, goal)
    add_to_cluster(prior, data, i, clusters, goal)
    clusters.sizes[goal] += n_moving
    settle(prior, law, positions, goal)
    clusters.sizes[origin] -= n_moving
    if clusters.sizes[origin] == 0.0:
        positions.counts[1] -= 1
    elif not remove_from_cluster(prior, data, i, clusters, origin):
        cache = row_of(clusters.caches, origin)
        refill(prior, data, labels, positions.label_of[origin], -1, cache)
    settle(prior, law, positions, origin)


@jitted
def kept_totals(positions):
    """Sufficient statistics of the clusters, in the order of positions.

    Parameters
    ----------
    positions : Positions
        From `place_clusters` with `follows_totals`.

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    kept, at = np.empty((positions.counts[1], positions.totals.shape[1])), 0
    for p in range(positions.counts[0]):
        if positions.clusters.sizes[p] > 0.0:
            copy_row(positions.totals[p], kept[at])
            at += 1
    return kept


@jitted
def renumber(labels, positions):
    """Give the clusters the numbers 0 .. K - 1 in the order of positions.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Changed; -1 for an observation of none of the clusters stays.
    positions : Positions

    Returns
    -------
    int
        Number of clusters K.
    """
    sizes, label_of = positions.clusters.sizes, positions.label_of
    number_of = np.empty(label_of.shape[0], np.int32)
    at, moved = 0, False
    for p in range(positions.counts[0]):
        if sizes[p] > 0.0:
            number_of[label_of[p]] = at
            moved = moved or label_of[p] != at
            at += 1
    if moved:
        for i in range(labels.shape[0]):
            if labels[i] >= 0:
                labels[i] = number_of[labels[i]]
    return at
