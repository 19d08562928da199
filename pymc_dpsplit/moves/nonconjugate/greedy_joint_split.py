"""Joint splits and merges for tuning only: they climb and are NOT invariant.

Instead of the probabilities of the division and of the parameters, which the exact move uses,
these moves put the Laplace approximation of the marginal likelihood in eq. (3.1).  Draws made with
them are discarded.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import LOG_POSTERIOR, THETA
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.acceptance_counts import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.nonconjugate.joint_launch import UNION, joint_launch
from pymc_dpsplit.moves.nonconjugate.joint_split import divide_jointly
from pymc_dpsplit.moves.nonconjugate.modes import climb
from pymc_dpsplit.moves.nonconjugate.parameters import gather_columns, log_posterior
from pymc_dpsplit.moves.partition import apply_merge, apply_split, members_of
from pymc_dpsplit.moves.partition_law import log_split_factor


@jitted
def _log_volume(factor):
    """Log of the Gaussian integral whose precision has this Cholesky factor."""
    total = 0.5 * factor.shape[0] * math.log(2.0 * math.pi)
    for j in range(factor.shape[0]):
        total -= math.log(factor[j, j])
    return total


@jitted
def greedy_joint_attempt(target, labels, stats, rng, acceptance_counts):
    """Attempt one split or merge in place; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    acceptance_counts : ndarray of int64, shape (4,)

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    if rng.random() < 0.5:
        return _split(target, labels, stats, rng, acceptance_counts)
    if stats.shape[0] == 1:
        return stats
    return _merge(target, labels, stats, rng, acceptance_counts)


@jitted
def _split(target, labels, stats, rng, acceptance_counts):
    """Split the cluster of a random observation, if it has at least two members."""
    prior, data, law = target
    cluster = labels[np.int64(rng.random() * labels.shape[0])]
    members = members_of(labels, stats, cluster, cluster)
    n = members.shape[0]
    if n < 2:
        return stats
    acceptance_counts[SPLITS_PROPOSED] += 1
    anchors = np.empty(2, np.int64)
    at = np.int64(rng.random() * n)
    anchors[0] = members[at]
    anchors[1] = members[(at + 1 + np.int64(rng.random() * (n - 1))) % n]
    log_shares, modes, factors = joint_launch(prior, data, members, anchors, rng)
    block = np.empty(tile_size(prior) * n)
    gather_columns(prior, data, members, block)
    side, pair = np.empty(n, np.int8), np.zeros((2, stats.shape[1]))
    pair[:, THETA:] = modes[:2]
    divide_jointly(prior, block, members, anchors, log_shares, pair, side, True, rng)
    whole = log_posterior(prior, block, n, modes[UNION], np.empty(n)) + _log_volume(factors[UNION])
    log_ratio = log_split_factor(law, stats.shape[0], pair[0, 0], pair[1, 0]) - whole
    for c in range(2):
        log_ratio += pair[c, LOG_POSTERIOR] + _log_volume(factors[c])
    if not log_ratio > -rng.standard_exponential():
        return stats
    acceptance_counts[SPLITS_ACCEPTED] += 1
    return apply_split(labels, stats, cluster, members, side, pair[0], pair[1])


@jitted
def _log_evidence(prior, data, members, theta):
    """Climb from `theta` in place; return Laplace's approximate log marginal likelihood."""
    n = members.shape[0]
    block, out = np.empty(tile_size(prior) * n), np.empty(n)
    gather_columns(prior, data, members, block)
    factor = np.empty((theta.shape[0], theta.shape[0]))
    return climb(prior, block, n, theta, 3, factor, out) + _log_volume(factor)


@jitted
def _merge(target, labels, stats, rng, acceptance_counts):
    """Merge two clusters, chosen uniformly among all pairs."""
    prior, data, law = target
    acceptance_counts[MERGES_PROPOSED] += 1
    n_clusters = stats.shape[0]
    order = cluster_order(labels, stats)
    first = np.int64(rng.random() * n_clusters)
    a = order[first]
    b = order[(first + 1 + np.int64(rng.random() * (n_clusters - 1))) % n_clusters]
    log_ratio = log_split_factor(law, n_clusters - 1, stats[a, 0], stats[b, 0])
    best, best_value = stats[a].copy(), -np.inf
    members = members_of(labels, stats, a, b)
    for c in (a, b):
        own = members_of(labels, stats, c, c)
        log_ratio += _log_evidence(prior, data, own, stats[c, THETA:].copy())
        theta = stats[c, THETA:].copy()
        value = _log_evidence(prior, data, members, theta)
        if value > best_value:
            best_value = value
            best[THETA:] = theta
    log_ratio -= best_value
    if not -log_ratio > -rng.standard_exponential():
        return stats
    acceptance_counts[MERGES_ACCEPTED] += 1
    best[0] = stats[a, 0] + stats[b, 0]
    stats = apply_merge(labels, stats, a, b)
    stats[min(a, b)] = best
    return stats
