"""Split/merge with an informed choice of the cluster or the pair, without anchors.

A fair coin says split or merge, also when there is one cluster (a merge then stays).  The
sides of a split carry no names, so its probability is that of the allocation plus that of the
allocation with the sides exchanged; the probabilities of choosing the cluster and the pair
enter, each in the state it would be used from; eq. (12).
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.allocation import allocate, order_by_block
from pymc_dpsplit.moves.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.launch import draw_seeds, launch
from pymc_dpsplit.moves.partition import log_split_ratio, members_of
from pymc_dpsplit.moves.selection import (
    draw_cluster,
    draw_pair,
    log_marginals,
    log_pair_probability,
)
from pymc_dpsplit.moves.tally import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED


@kernel
def no_anchors():
    """Two anchors that are no observation."""
    anchors = np.empty(2, np.int64)
    anchors[:] = -1
    return anchors


@kernel
def propose_split(prior, data, labels, stats, cluster, stream):
    """Launch in a cluster and draw a division of it.

    Returns
    -------
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
    pair : ndarray of float64, shape (2, S)
    log_q : float
        Log probability of the unordered division.
    """
    members, bounds = order_by_block(members_of(labels, stats, cluster, cluster))
    anchors = no_anchors()
    seeds = draw_seeds(prior, data, members, stream)
    log_shares, params = launch(prior, data, members, seeds, anchors, stream)
    side = np.empty(members.shape[0], np.int8)
    pair, log_q, log_q_swapped = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, True, stream
    )
    return members, side, pair, np.logaddexp(log_q, log_q_swapped)


@kernel
def log_division_probability(prior, data, labels, stats, a, b, stream):
    """Log probability that a launch in the union of a and b divides it into them."""
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


@kernel
def log_choice_ratio(prior, divided, a, b):
    """Log of (probability of the pair in `divided`) / (probability of its union when merged)."""
    log_mu = log_pair_probability(prior, divided, log_marginals(prior, divided), a, b)
    share = (divided[a, 0] + divided[b, 0]) / divided[:, 0].sum()
    return log_mu - np.log(share)


@kernel
def decide_informed(prior, data, labels, stats, alpha, key):
    """Decide on one split or merge; all that is random comes from `key`.

    Returns
    -------
    Decision
    """
    stream = new_stream(key)
    log_u = math.log(next_uniform(stream))
    if next_uniform(stream) < 0.5:
        return _split(prior, data, labels, stats, alpha, log_u, stream)
    if stats.shape[0] == 1:
        return leave(NOTHING_PROPOSED, 0, 0)
    return _merge(prior, data, labels, stats, alpha, log_u, stream)


@kernel
def informed_attempt(prior, data, labels, stats, alpha, rng, tally):
    """Attempt one split or merge; changes `labels` and `tally`, returns the statistics."""
    decision = decide_informed(prior, data, labels, stats, alpha, draw_key(rng))
    return carry_out(labels, stats, decision, tally)


@kernel
def divide(stats, cluster, pair):
    """Statistics after a split of `cluster` into `pair`, the second one last."""
    divided = np.concatenate((stats, pair[1:2]))
    divided[cluster] = pair[0]
    return divided


@kernel
def _split(prior, data, labels, stats, alpha, log_u, stream):
    cluster = draw_cluster(stats, stream)
    members, side, pair, log_q = propose_split(prior, data, labels, stats, cluster, stream)
    if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    log_accept = log_split_ratio(prior, alpha, pair[0], pair[1], stats[cluster]) - log_q
    divided = divide(stats, cluster, pair)
    log_accept += log_choice_ratio(prior, divided, cluster, stats.shape[0])
    if log_u >= log_accept:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    return divide_into(SPLITS_PROPOSED, cluster, members, side, pair)


@kernel
def _merge(prior, data, labels, stats, alpha, log_u, stream):
    a, b = draw_pair(prior, stats, log_marginals(prior, stats), stream)
    log_accept = -log_split_ratio(prior, alpha, stats[a], stats[b], stats[a] + stats[b])
    log_accept -= log_choice_ratio(prior, stats, a, b)
    # The probability of the division is at most 1: this rejection is exact and needs no launch.
    if log_u >= log_accept:
        return leave(MERGES_PROPOSED, a, b)
    log_accept += log_division_probability(prior, data, labels, stats, a, b, stream)
    if log_u >= log_accept:
        return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)
