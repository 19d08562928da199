"""Sticks in their order: a random measure whose atoms have positions.

A Dirichlet process is sum_j w_j delta(theta_j), w_j = v_j prod_{l < j} (1 - v_l), with
v_j ~ Beta(1, alpha).  Samplers that instantiate the sticks have the position of every cluster in
their state: observation i is at position d_i, and a cluster is what is at one position.  Positions
are kept from draw to draw; `draw_positions` draws them given the partition alone.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, params_size, stats_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import keep_parameters
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.rows import first_column_sum
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import normalise
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import draw_log_remainder, draw_stick, joining_mass

# Columns of what is kept of a cluster: its position, and the strength under which it was drawn.
POSITION, STRENGTH = 0, 1


@jitted
def draw_positions(law, labels, stats, rng):
    """Draw the positions of the clusters given the partition.

    The sticks of a Dirichlet process are in size-biased order: each next one is a pick among those
    left, with probability proportional to weight.  So the weights are drawn given the partition,
    eq. (1.5), and then picked until every cluster has its position; a pick of the remainder breaks
    a stick off it, which has no observations.

    Parameters
    ----------
    law : PartitionLaw
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    n_clusters, order = stats.shape[0], cluster_order(labels, stats)
    log_weights, positions = np.empty(n_clusters), np.full(n_clusters, -1)
    for k in order:
        log_weights[k] = draw_log_gamma(rng, joining_mass(law, stats[k, 0]))
    log_rest = normalise(log_weights, draw_log_remainder(law, n_clusters, rng), order)
    n_picked, n_found = 0, 0
    while n_found < n_clusters:
        k = _pick(log_weights, log_rest, positions, order, rng.random())
        if k >= 0:
            positions[k] = n_picked
            n_found += 1
        else:
            log_rest += draw_stick(law, n_clusters + n_picked - n_found, rng)[1]
        n_picked += 1
    return positions


@jitted
def _pick(log_weights, log_rest, positions, order, u):
    """Pick a cluster that has no position yet, or -1 for the remainder, by weight."""
    highest = log_rest
    for k in order:
        if positions[k] < 0:
            highest = max(highest, log_weights[k])
    total = math.exp(log_rest - highest)
    for k in order:
        if positions[k] < 0:
            total += math.exp(log_weights[k] - highest)
    left = u * total - math.exp(log_rest - highest)
    if left < 0.0:
        return -1
    picked = -1
    for k in order:
        if positions[k] < 0:
            picked = k
            left -= math.exp(log_weights[k] - highest)
            if left < 0.0:
                break
    return picked


@jitted
def kept_positions(law, labels, stats, of_clusters, rng):
    """Return the positions that were kept, or draw them if there are none, or alpha has changed.

    Alpha moves given the partition, positions summed out, so that those under another alpha do
    not follow their law.

    Parameters
    ----------
    law : PartitionLaw
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    of_clusters : ndarray of float64, shape (K, 2) or (0, 0)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    n_clusters = of_clusters.shape[0]
    if n_clusters == 0 or of_clusters[0, STRENGTH] != law.strength:
        return draw_positions(law, labels, stats, rng)
    positions = np.empty(n_clusters, np.int64)
    for k in range(n_clusters):
        positions[k] = np.int64(of_clusters[k, POSITION])
    return positions


@jitted
def positions_to_keep(law, positions):
    """Positions as they are kept, with the strength under which they were drawn, shape (K, 2)."""
    of_clusters = np.empty((positions.shape[0], 2))
    for k in range(positions.shape[0]):
        of_clusters[k, POSITION], of_clusters[k, STRENGTH] = positions[k], law.strength
    return of_clusters


@jitted
def draw_sticks(target, stats, positions, n_sticks, rng):
    """Draw the first sticks and their parameters, given the positions of the observations.

    With n_j observations at position j, v_j ~ Beta(1 + n_j, alpha + sum_{l > j} n_l).

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)
    positions : ndarray of int64, shape (K,)
        All below `n_sticks`.
    n_sticks : int
    rng : numpy.random.Generator

    Returns
    -------
    log_weights : ndarray of float64, shape (J,)
    log_rest : float
        Log weight of the sticks that follow.
    params : ndarray of float64, shape (J, P)
    """
    prior, strength = target.prior, target.law.strength
    cluster_at = np.full(n_sticks, -1)
    for k in range(positions.shape[0]):
        cluster_at[positions[k]] = k
    log_weights, params = np.empty(n_sticks), np.empty((n_sticks, params_size(prior)))
    empty = np.zeros(stats_size(prior))
    n_beyond, log_rest = first_column_sum(stats), 0.0
    for j in range(n_sticks):
        own = stats[cluster_at[j]] if cluster_at[j] >= 0 else empty
        n_beyond -= own[0]
        # The logarithm of v / (1 - v).
        difference = draw_log_gamma(rng, 1.0 + own[0]) - draw_log_gamma(rng, strength + n_beyond)
        log_weights[j] = log_rest - np.logaddexp(0.0, -difference)
        log_rest -= np.logaddexp(0.0, difference)
        draw_parameters(prior, own, rng, params[j])
    return log_weights, log_rest, params


@jitted
def number_atoms(prior, data, labels, params):
    """Number the atoms that have observations 0 .. K - 1, in their order.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Rows of `params`; overwritten by clusters.
    params : ndarray of float64, shape (J, P)

    Returns
    -------
    stats : ndarray of float64, shape (K, S)
    positions : ndarray of int64, shape (K,)
        Row of the atom of each cluster.
    """
    n_sticks, n_clusters = params.shape[0], 0
    renumbered = np.full(n_sticks, -1)
    for i in range(labels.shape[0]):
        renumbered[labels[i]] = 0
    positions = np.empty(n_sticks, np.int64)
    for j in range(n_sticks):
        if renumbered[j] == 0:
            renumbered[j], positions[n_clusters] = n_clusters, j
            n_clusters += 1
    for i in range(labels.shape[0]):
        labels[i] = renumbered[labels[i]]
    stats = gather_stats(prior, data, labels, n_clusters)
    keep_parameters(prior, params, renumbered, stats)
    return stats, positions[:n_clusters].copy()
