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
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted, jitted_uncounted
from pymc_dpsplit.kernels.rows import copy_row, copy_rows
from pymc_dpsplit.kernels.special import log_sum_of_two
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.collapsed.positions import (
    move_between,
    open_position,
    place_clusters,
    renumber,
    with_more_room,
)
from pymc_dpsplit.moves.collapsed.scan import density_of_rest
from pymc_dpsplit.moves.collapsed.unfinished_densities import (
    finish_choice,
    limit_of_bounds,
    limits_of_densities,
)
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import draw_stick

# Occupied clusters have positive weights; 0 marks one that has no weight yet.
_LEAST_WEIGHT = 1e-300


class Shares(NamedTuple):
    """What the choice of a cluster depends on beside densities, by position.

    Attributes
    ----------
    weights : ndarray of float64, shape (capacity,)
        Global weights.
    counts : ndarray of int64, shape (J, capacity)
        Number of rows of each group.
    log_masses : ndarray of float64, shape (J, capacity)
        Log prior masses of one row of each group that joins; -inf in a gap.
    log_largest : ndarray of float64, shape (J,)
        Log prior mass of one row that joins a cluster of its whole group: no mass is larger.
    log_rest : ndarray of float64, shape (1,)
        Log of the global weight of all clusters without rows.
    """

    weights: np.ndarray
    counts: np.ndarray
    log_masses: np.ndarray
    log_largest: np.ndarray
    log_rest: np.ndarray


@jitted_inlined_uncounted
def _log_mass(alpha, weight, count):
    mass = count + alpha * weight
    return math.log(mass) if mass > 0.0 else -math.inf


@jitted_uncounted
def _settle_in_groups(alpha, shares, p):
    """Bring the log prior masses of a cluster, whose weight has changed, up to date."""
    for j in range(shares.counts.shape[0]):
        shares.log_masses[j, p] = _log_mass(alpha, shares.weights[p], shares.counts[j, p])


@jitted
def _place_shares(target, positions, labels, weights, log_rest):
    capacity, n_clusters = positions.log_sizes.shape[0], weights.shape[0]
    counts = count_groups(target, labels, n_clusters)
    shares = Shares(
        np.zeros(capacity),
        np.zeros((counts.shape[0], capacity), np.int64),
        np.zeros((counts.shape[0], capacity)),
        np.log(target.sizes + target.alpha),
        np.full(1, log_rest),
    )
    for p in range(n_clusters):
        k = positions.label_of[p]
        shares.weights[p] = weights[k]
        shares.counts[:, p] = counts[:, k]
        _settle_in_groups(target.alpha, shares, p)
    return shares


@jitted
def _widened(shares):
    """Copy shares into twice as much room."""
    n_groups, capacity = shares.counts.shape
    wider = Shares(
        np.zeros(2 * capacity),
        np.zeros((n_groups, 2 * capacity), np.int64),
        np.zeros((n_groups, 2 * capacity)),
        shares.log_largest,
        shares.log_rest,
    )
    copy_row(shares.weights, wider.weights)
    copy_rows(shares.counts, wider.counts)
    copy_rows(shares.log_masses, wider.log_masses)
    return wider


@jitted_inlined_uncounted
def _draw_position(target, labels, i, log_alone, positions, shares, rng):
    """Draw the position of the cluster that row i joins; the next one for a new cluster.

    A row that is alone opens a new cluster by staying where it is; the weight of its own cluster
    is then in the remainder.
    """
    prior, data, _ = target.of_rows
    clusters, log_density, n = positions.clusters, positions.log_density, positions.counts[0]
    own, group, alpha = positions.position_of[labels[i]], target.group_of_row[i], target.alpha
    is_alone, log_own = clusters.sizes[own] == 1.0, -math.inf
    shared = -1 if is_alone else own
    if not is_alone:
        log_own = _log_mass(alpha, shares.weights[own], shares.counts[group, own] - 1)
    log_masses = row_of(shares.log_masses, group)
    log_new = math.log(alpha) + shares.log_rest[0] + log_alone
    least, drop = limits_of_densities(log_new, log_own, shares.log_largest[group])
    if fill_log_predictives(prior, data, i, clusters, n, shared, least, drop, log_density):
        limit = limit_of_bounds(log_density, shared, least, drop)
    else:
        log_density[own], limit = density_of_rest(prior, data, labels, i, clusters), math.inf
    u, weights = rng.random(), positions.weights
    p = choose_position(log_density, log_masses, own, log_own, n, log_new, log_alone, u, weights)
    if p < n and p != own and log_density[p] < limit:
        given = own, log_own, log_new, log_alone, limit, p
        p = finish_choice(prior, data, i, positions, log_masses, *given, rng)
    return own if is_alone and p == n else p


@jitted
def _break_stick(target, shares, p, rng):
    """Give a new cluster its global weight, a share Beta(1, gamma) of the remainder."""
    log_share, log_left = draw_stick(target.of_rows.law, 0, rng)
    shares.weights[p] = max(math.exp(shares.log_rest[0] + log_share), _LEAST_WEIGHT)
    shares.log_rest[0] += log_left
    _settle_in_groups(target.alpha, shares, p)


@jitted
def _return_weight(shares, p):
    """Give the weight of a cluster of one row, which is visited, to the remainder."""
    shares.log_rest[0] = log_sum_of_two(shares.log_rest[0], math.log(shares.weights[p]))
    shares.weights[p] = 0.0


@jitted_uncounted
def _move_in_group(target, shares, group, origin, goal):
    """Move one row of a group between two clusters."""
    for p, more in ((origin, -1), (goal, 1)):
        shares.counts[group, p] += more
        log_mass = _log_mass(target.alpha, shares.weights[p], shares.counts[group, p])
        shares.log_masses[group, p] = log_mass


@jitted_uncounted
def _visit_some(target, labels, rng, rows, log_alone, first, positions, shares):
    """Redraw labels from place `first` of `rows` on while there is room; return how far it came.

    Nothing is allocated here, so that no references need be counted.
    """
    prior, data, law = target.of_rows
    counts, capacity = positions.counts, positions.log_sizes.shape[0]
    at = first
    while at < rows.shape[0] and counts[0] < capacity:
        i = rows[at]
        origin = positions.position_of[labels[i]]
        is_alone = positions.clusters.sizes[origin] == 1.0
        if is_alone:
            _return_weight(shares, origin)
        goal = _draw_position(target, labels, i, log_alone[at], positions, shares, rng)
        at += 1
        if goal == counts[0]:
            goal = open_position(positions)
        if shares.weights[goal] == 0.0:
            _break_stick(target, shares, goal, rng)
        if goal != origin:
            _move_in_group(target, shares, target.group_of_row[i], origin, goal)
            move_between(prior, data, labels, i, law, positions, origin, goal)
            if is_alone:
                _settle_in_groups(target.alpha, shares, origin)
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
def scan_rows(target, labels, stats, weights, log_rest, rng, log_alone):
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
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities of all rows.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
        Those of clusters that keep a row are as they were.
    log_rest : float
    """
    prior, data, _ = target.of_rows
    everyone = np.arange(labels.shape[0])
    kept, log_rest = scan_some_rows(
        target, labels, stats, weights, log_rest, rng, everyone, log_alone
    )
    return gather_stats(prior, data, labels, kept.shape[0]), kept, log_rest
