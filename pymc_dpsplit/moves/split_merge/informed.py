"""Split/merge with an informed choice of the cluster or the pair, without anchors.

A fair coin selects split or merge, also when there is one cluster (a merge then changes nothing).
The sides of a split are unordered, so its probability is that of the allocation plus that of the
allocation with the sides exchanged.  The acceptance probability includes the probabilities of
choosing the cluster and the pair, each in the state in which it is chosen; eq. (3.4).
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import copy_row, first_column_sum, sum_of_rows, with_more_rows
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.partition import log_split_ratio, members_of
from pymc_dpsplit.moves.split_merge.allocation import allocate, order_by_block
from pymc_dpsplit.moves.split_merge.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.split_merge.launch import draw_seeds, launch
from pymc_dpsplit.moves.split_merge.selection import (
    draw_cluster,
    draw_pair,
    log_marginals,
    log_pair_probability,
)


@jitted
def no_anchors():
    """Anchors that hold no observation: (-1, -1)."""
    anchors = np.empty(2, np.int64)
    anchors[:] = -1
    return anchors


@jitted
def propose_split(target, labels, stats, stream, cluster):
    """Launch in a cluster and draw a division of it.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)
    cluster : int

    Returns
    -------
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
    pair : ndarray of float64, shape (2, S)
    log_q : float
        Log probability of the unordered division.
    """
    prior, data = target.prior, target.data
    members, bounds = order_by_block(members_of(labels, stats, cluster, cluster))
    anchors = no_anchors()
    seeds = draw_seeds(prior, data, members, stream)
    log_shares, params = launch(prior, data, members, seeds, anchors, stream)
    side = np.empty(members.shape[0], np.int8)
    pair, log_q, log_q_swapped = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, True, stream
    )
    return members, side, pair, np.logaddexp(log_q, log_q_swapped)


@jitted
def log_division_probability(target, labels, stats, stream, a, b):
    """Log probability that a launch in the union of clusters a and b divides it into a and b.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)
    a, b : int

    Returns
    -------
    float
    """
    prior, data = target.prior, target.data
    members, bounds = order_by_block(members_of(labels, stats, a, b))
    anchors = no_anchors()
    seeds = draw_seeds(prior, data, members, stream)
    log_shares, params = launch(prior, data, members, seeds, anchors, stream)
    side = np.empty(members.shape[0], np.int8)
    for j in range(members.shape[0]):
        side[j] = 0 if labels[members[j]] == a else 1
    _, log_q, log_q_swapped = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, False, stream
    )
    return np.logaddexp(log_q, log_q_swapped)


@jitted
def log_choice_ratio(prior, divided, a, b):
    """Log probability of choosing the pair to merge, minus that of choosing the union to split.

    Parameters
    ----------
    prior : NamedTuple
    divided : ndarray of float64, shape (K, S)
        Statistics in which clusters a and b are separate.
    a, b : int

    Returns
    -------
    float
    """
    log_mu = log_pair_probability(prior, divided, log_marginals(prior, divided), a, b)
    share = (divided[a, 0] + divided[b, 0]) / first_column_sum(divided)
    return log_mu - np.log(share)


@jitted
def decide(target, labels, stats, key, is_exact):
    """Decide on one split or merge; `key` determines all random numbers.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    key : uint64
    is_exact : bool
        Whether the probability of the division counts; without it the posterior is not invariant.

    Returns
    -------
    Decision
    """
    stream = new_stream(key)
    log_u = math.log(next_uniform(stream))
    if next_uniform(stream) < 0.5:
        return _split(target, labels, stats, stream, log_u, is_exact)
    if stats.shape[0] == 1:
        return leave(NOTHING_PROPOSED, 0, 0)
    return _merge(target, labels, stats, stream, log_u, is_exact)


@jitted
def decide_informed(target, labels, stats, key):
    """Decide on one split or merge, see `decide`."""
    return decide(target, labels, stats, key, True)


@jitted
def informed_attempt(target, labels, stats, rng, acceptance_counts):
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
    decision = decide_informed(target, labels, stats, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)


@jitted
def divide(stats, cluster, pair):
    """Statistics after a split of `cluster` into `pair`; the second side becomes the last row.

    Parameters
    ----------
    stats : ndarray of float64, shape (K, S)
    cluster : int
    pair : ndarray of float64, shape (2, S)

    Returns
    -------
    ndarray of float64, shape (K + 1, S)
    """
    divided = with_more_rows(stats, 1)
    copy_row(pair[0], divided[cluster])
    copy_row(pair[1], divided[stats.shape[0]])
    return divided


@jitted
def _split(target, labels, stats, stream, log_u, is_exact):
    cluster = draw_cluster(labels, stream)
    members, side, pair, log_q = propose_split(target, labels, stats, stream, cluster)
    if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    log_accept = log_split_ratio(target, stats.shape[0], pair[0], pair[1], stats[cluster])
    if is_exact:
        log_accept -= log_q
    divided = divide(stats, cluster, pair)
    log_accept += log_choice_ratio(target.prior, divided, cluster, stats.shape[0])
    if log_u >= log_accept:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    return divide_into(SPLITS_PROPOSED, cluster, members, side, pair)


@jitted
def _merge(target, labels, stats, stream, log_u, is_exact):
    a, b = draw_pair(target.prior, labels, stats, log_marginals(target.prior, stats), stream)
    log_accept = -log_split_ratio(
        target, stats.shape[0] - 1, stats[a], stats[b], sum_of_rows(stats, a, b)
    )
    log_accept -= log_choice_ratio(target.prior, stats, a, b)
    # The probability of the division is at most 1, so this rejection is exact without a launch.
    if log_u >= log_accept:
        return leave(MERGES_PROPOSED, a, b)
    if is_exact:
        log_accept += log_division_probability(target, labels, stats, stream, a, b)
        if log_u >= log_accept:
            return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)
