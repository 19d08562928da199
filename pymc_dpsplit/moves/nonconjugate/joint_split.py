"""Split/merge of an anchored pair that proposes labels and parameters jointly.

This is the move of non-conjugate families.  An ordered pair (i, j) of observations is drawn
uniformly.  If both are in one cluster, a split of it is proposed, i and j on different sides, with
parameters for both; if they are in two clusters, a merge, with parameters for the union.  The pair
does not depend on the partition, so its probability cancels; eq. (9.3)-(9.4).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import LOG_POSTERIOR, THETA, log_base_of
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.acceptance_counts import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)
from pymc_dpsplit.moves.nonconjugate.joint_launch import UNION, fill_log_odds_of, joint_launch
from pymc_dpsplit.moves.nonconjugate.modes import draw_around, log_density_around
from pymc_dpsplit.moves.nonconjugate.parameters import gather_columns, log_posterior
from pymc_dpsplit.moves.partition import apply_merge, apply_split, members_of
from pymc_dpsplit.moves.partition_law import log_split_factor


@jitted
def draw_anchors(n_obs, rng):
    """Draw an ordered pair of different observations.

    Parameters
    ----------
    n_obs : int
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (2,)
    """
    anchors = np.empty(2, np.int64)
    anchors[0] = np.int64(rng.random() * n_obs)
    anchors[1] = np.int64(rng.random() * (n_obs - 1))
    if anchors[1] >= anchors[0]:
        anchors[1] += 1
    return anchors


class JointProposal(NamedTuple):
    """Division of the members of a cluster, parameters, and how likely these are to be proposed.

    Attributes
    ----------
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
        0 or 1 for each member.
    pair : ndarray of float64, shape (2, S)
        Complete statistics of both sides.
    union : ndarray of float64, shape (S,)
        Complete statistics of all members.
    log_q : float
        Log density of division and parameters of both sides, less that of the parameters of the
        union: those that a split draws, and those that a merge draws.
    """

    members: np.ndarray
    side: np.ndarray
    pair: np.ndarray
    union: np.ndarray
    log_q: float


@jitted
def propose_jointly(prior, data, labels, stats, anchors, rng):
    """Propose to split the cluster of both anchors, or to merge their clusters.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    anchors : ndarray of int64, shape (2,)
        Result of `draw_anchors`.
    rng : numpy.random.Generator

    Returns
    -------
    JointProposal
    """
    a, b = labels[anchors[0]], labels[anchors[1]]
    members = members_of(labels, stats, a, b)
    log_shares, modes, factors = joint_launch(prior, data, members, anchors, rng)
    block = np.empty(tile_size(prior) * members.shape[0])
    gather_columns(prior, data, members, block)
    side = np.empty(members.shape[0], np.int8)
    pair, union = np.zeros((2, stats.shape[1])), np.zeros(stats.shape[1])
    n = members.shape[0]
    if a == b:
        union[:] = stats[a]
        for c in range(2):
            draw_around(modes[c], factors[c], rng, pair[c, THETA:])
    else:
        for j in range(n):
            side[j] = 0 if labels[members[j]] == a else 1
        pair[0], pair[1] = stats[a], stats[b]
        draw_around(modes[UNION], factors[UNION], rng, union[THETA:])
    union[0] = n
    log_q = divide_jointly(prior, block, members, anchors, log_shares, pair, side, a == b, rng)
    union[LOG_POSTERIOR] = log_posterior(prior, block, n, union[THETA:], np.empty(n))
    log_q -= log_density_around(modes[UNION], factors[UNION], union[THETA:])
    for c in range(2):
        log_q += log_density_around(modes[c], factors[c], pair[c, THETA:])
    return JointProposal(members, side, pair, union, log_q)


@jitted
def joint_attempt(target, labels, stats, rng, acceptance_counts):
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
    if labels.shape[0] < 2:
        return stats
    prior, data, law = target
    anchors = draw_anchors(labels.shape[0], rng)
    a, b = labels[anchors[0]], labels[anchors[1]]
    acceptance_counts[SPLITS_PROPOSED if a == b else MERGES_PROPOSED] += 1
    proposal = propose_jointly(prior, data, labels, stats, anchors, rng)
    pair, union = proposal.pair, proposal.union
    n_clusters = stats.shape[0] if a == b else stats.shape[0] - 1
    log_ratio = log_joint_ratio(law, n_clusters, pair, union) - proposal.log_q
    return _decide(
        labels, stats, a, b, proposal.members, proposal.side, pair, union, log_ratio, rng,
        acceptance_counts,
    )  # fmt: skip


@jitted
def _decide(labels, stats, a, b, members, side, pair, union, log_ratio, rng, acceptance_counts):
    """Accept the split with this log acceptance ratio, or the merge with minus it."""
    # A NaN ratio compares false, so the proposal is rejected.
    if a == b:
        if not log_ratio > -rng.standard_exponential():
            return stats
        acceptance_counts[SPLITS_ACCEPTED] += 1
        return apply_split(labels, stats, a, members, side, pair[0], pair[1])
    if not -log_ratio > -rng.standard_exponential():
        return stats
    acceptance_counts[MERGES_ACCEPTED] += 1
    stats = apply_merge(labels, stats, a, b)
    stats[min(a, b)] = union
    return stats


@jitted
def log_joint_ratio(law, n_clusters, pair, union):
    """Log ratio of the posterior of labels and parameters, split to whole, see eq. (9.4).

    Parameters
    ----------
    law : PartitionLaw
    n_clusters : int
        Number of clusters with `union` whole.
    pair : ndarray of float64, shape (2, S)
        Complete statistics of both sides.
    union : ndarray of float64, shape (S,)
        Those of the union.

    Returns
    -------
    float
    """
    return (
        log_split_factor(law, n_clusters, pair[0, 0], pair[1, 0])
        + pair[0, LOG_POSTERIOR]
        + pair[1, LOG_POSTERIOR]
        - union[LOG_POSTERIOR]
    )


@jitted
def divide_jointly(prior, block, members, anchors, log_shares, pair, side, draw, rng):
    """Draw the sides of the members, or evaluate the probability of given sides.

    Parameters
    ----------
    prior : NamedTuple
    block : ndarray of float64, shape (F * n,)
        Columns of the members, see `gather_columns`.
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
        Members held on sides 0 and 1; they contribute no probability.
    log_shares : ndarray of float64, shape (2,)
    pair : ndarray of float64, shape (2, S)
        Parameters of both sides; sizes and log posteriors are written.
    side : ndarray of int8, shape (n,)
        0 or 1 for each member: written if `draw`, else read.
    draw : bool
    rng : numpy.random.Generator

    Returns
    -------
    float
        Log probability of `side`, eq. (9.3).
    """
    n = members.shape[0]
    first, second = np.empty(n), np.empty(n)
    fill_log_odds_of(prior, block, n, log_shares, pair[:, THETA:], first, second)
    log_q = 0.0
    for c in range(2):
        pair[c, 0] = 0.0
        pair[c, LOG_POSTERIOR] = log_base_of(prior, pair[c, THETA:])
    for j in range(n):
        highest = max(first[j], second[j])
        total = highest + math.log(math.exp(first[j] - highest) + math.exp(second[j] - highest))
        if members[j] == anchors[0] or members[j] == anchors[1]:
            side[j] = 0 if members[j] == anchors[0] else 1
        else:
            if draw:
                side[j] = 0 if math.log(rng.random() + 1e-300) < first[j] - total else 1
            log_q += (first[j] if side[j] == 0 else second[j]) - total
        c = side[j]
        pair[c, 0] += 1.0
        pair[c, LOG_POSTERIOR] += (first[j] if c == 0 else second[j]) - log_shares[c]
    return log_q
