"""Direct assignment: one row at a time, weights of groups and parameters integrated out.

The sampler by direct assignment of Teh et al. (2006), eq. (16.1).  Tables do not enter: they are
summed out, given the global weights.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.collapsed import fill_log_predictives
from pymc_dpsplit.hierarchical.state import count_groups
from pymc_dpsplit.kernels.cluster_choice import choose_position
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.special import log_sum_of_two
from pymc_dpsplit.moves.collapsed.positions import (
    move_between,
    open_position,
    place_clusters,
    renumber,
    with_more_room,
)
from pymc_dpsplit.moves.collapsed.scan import density_of_rest, log_densities_alone
from pymc_dpsplit.moves.collapsed.unfinished_densities import (
    finish_choice,
    limit_of_bounds,
    limits_of_densities,
)
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import draw_stick

# Occupied clusters have positive weights; 0 marks one that has no weight yet.
_LEAST_WEIGHT = 1e-300
# Below the log of every mass, and finite.
_LOG_NOTHING = -1e300


class Shares(NamedTuple):
    """What the choice of a cluster depends on beside densities, by position.

    Attributes
    ----------
    weights : ndarray of float64, shape (capacity,)
        Global weights.
    counts : ndarray of int64, shape (J, capacity)
        Number of rows of each group.
    log_masses : ndarray of float64, shape (capacity,)
        Workspace: log prior masses of one row.
    log_rest : ndarray of float64, shape (1,)
        Log of the global weight of all clusters without rows.
    """

    weights: np.ndarray
    counts: np.ndarray
    log_masses: np.ndarray
    log_rest: np.ndarray


@jitted
def _place_shares(target, positions, labels, weights, log_rest):
    capacity, n_clusters = positions.log_sizes.shape[0], weights.shape[0]
    counts = count_groups(target, labels, n_clusters)
    shares = Shares(
        np.zeros(capacity),
        np.zeros((counts.shape[0], capacity), np.int64),
        np.zeros(capacity),
        np.full(1, log_rest),
    )
    for p in range(n_clusters):
        k = positions.label_of[p]
        shares.weights[p] = weights[k]
        shares.counts[:, p] = counts[:, k]
    return shares


@jitted
def _widened(shares):
    """Copy shares into twice as much room."""
    n_groups, capacity = shares.counts.shape
    wider = Shares(
        np.zeros(2 * capacity),
        np.zeros((n_groups, 2 * capacity), np.int64),
        np.zeros(2 * capacity),
        shares.log_rest,
    )
    wider.weights[:capacity] = shares.weights
    wider.counts[:, :capacity] = shares.counts
    return wider


@jitted
def _draw_position(target, labels, i, log_alone, positions, shares, rng):
    """Draw the position of the cluster that row i joins; the next one for a new cluster.

    A row that is alone opens a new cluster by staying where it is; the weight of its own cluster
    is then in the remainder.
    """
    prior, data, _ = target.of_rows
    clusters, log_density, n = positions.clusters, positions.log_density, positions.counts[0]
    own, group, alpha = positions.position_of[labels[i]], target.group_of_row[i], target.alpha
    is_alone = clusters.sizes[own] == 1.0
    shared = -1 if is_alone else own
    log_most = _LOG_NOTHING
    for p in range(n):
        mass = shares.counts[group, p] - (p == own) + alpha * shares.weights[p]
        is_open = clusters.sizes[p] > 0.0 and mass > 0.0 and not (is_alone and p == own)
        shares.log_masses[p] = math.log(mass) if is_open else -math.inf
        log_most = max(log_most, shares.log_masses[p])
    log_new = math.log(alpha) + shares.log_rest[0] + log_alone
    log_own = shares.log_masses[own]
    least, drop = limits_of_densities(log_new, log_own, log_most)
    if fill_log_predictives(prior, data, i, clusters, n, shared, least, drop, log_density):
        limit = limit_of_bounds(log_density, shared, least, drop)
    else:
        log_density[own], limit = density_of_rest(prior, data, labels, i, clusters), math.inf
    u, weights = rng.random(), positions.weights
    p = choose_position(log_density, shares.log_masses, -1, 0.0, n, log_new, log_alone, u, weights)
    if p < n and p != own and log_density[p] < limit:
        given = own, log_own, log_new, log_alone, limit, p
        p = finish_choice(prior, data, i, positions, shares.log_masses, *given, rng)
    return own if is_alone and p == n else p


@jitted
def _break_stick(law, shares, p, rng):
    """Give a new cluster its global weight, a share Beta(1, gamma) of the remainder."""
    log_share, log_left = draw_stick(law, 0, rng)
    shares.weights[p] = max(math.exp(shares.log_rest[0] + log_share), _LEAST_WEIGHT)
    shares.log_rest[0] += log_left


@jitted
def _visit_some(target, labels, rng, rows, log_alone, first, positions, shares):
    """Redraw labels from place `first` of `rows` on while there is room; return how far it came."""
    prior, data, law = target.of_rows
    counts, capacity = positions.counts, positions.log_sizes.shape[0]
    at = first
    while at < rows.shape[0] and counts[0] < capacity:
        i = rows[at]
        origin = positions.position_of[labels[i]]
        if positions.clusters.sizes[origin] == 1.0:
            log_weight = math.log(shares.weights[origin])
            shares.log_rest[0] = log_sum_of_two(shares.log_rest[0], log_weight)
            shares.weights[origin] = 0.0
        goal = _draw_position(target, labels, i, log_alone[at], positions, shares, rng)
        if goal == counts[0]:
            goal = open_position(positions)
            _break_stick(law, shares, goal, rng)
        elif shares.weights[goal] == 0.0:
            _break_stick(law, shares, goal, rng)
        if goal != origin:
            group = target.group_of_row[i]
            shares.counts[group, origin] -= 1
            shares.counts[group, goal] += 1
            move_between(prior, data, labels, i, law, positions, origin, goal)
        at += 1
    return at


@jitted
def scan_some_rows(target, labels, stats, weights, log_rest, rng, rows, log_alone):
    """Redraw the labels of some rows in turn, see `scan_rows`.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed; -1 for a row of none of the clusters, which stays.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
    log_rest : float
    rng : numpy.random.Generator
    rows : ndarray of int64, shape (M,)
    log_alone : ndarray of float64, shape (M,)
        Their log prior predictive densities.

    Returns
    -------
    weights : ndarray of float64, shape (K',)
        Of the clusters, which are numbered anew.
    log_rest : float
    """
    prior, _, law = target.of_rows
    positions = place_clusters(prior, law, labels, stats, False)
    shares = _place_shares(target, positions, labels, weights, log_rest)
    at = _visit_some(target, labels, rng, rows, log_alone, 0, positions, shares)
    while at < rows.shape[0]:
        positions, shares = with_more_room(prior, positions), _widened(shares)
        at = _visit_some(target, labels, rng, rows, log_alone, at, positions, shares)
    sizes = positions.clusters.sizes[: positions.counts[0]]
    kept = shares.weights[: positions.counts[0]][sizes > 0.0]
    renumber(labels, positions)
    return kept, shares.log_rest[0]


@jitted
def scan_rows(target, labels, stats, weights, log_rest, rng):
    """Redraw the label of every row in turn, eq. (16.1), with the global weights given.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
    log_rest : float
    rng : numpy.random.Generator

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
        Those of clusters that keep a row are as they were.
    log_rest : float
    """
    prior, data, _ = target.of_rows
    everyone = np.arange(labels.shape[0])
    log_alone = log_densities_alone(prior, data, everyone)
    kept, log_rest = scan_some_rows(
        target, labels, stats, weights, log_rest, rng, everyone, log_alone
    )
    return gather_stats(prior, data, labels, kept.shape[0]), kept, log_rest
