"""Split/merge of an anchored pair (after Jain & Neal 2004), with a parallel allocation.

An ordered pair (i, j) of observations is drawn uniformly.  In one cluster: propose to split it
with i and j on different sides.  In two: propose to merge them.  The pair does not depend on
the partition, so its probability cancels; eq. (11).  Nothing but the clusters of i and j is
read, so attempts whose clusters are others are indifferent to their order; eq. (140).
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_uniform
from pymc_dpsplit.moves.allocation import allocate, order_by_block
from pymc_dpsplit.moves.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.launch import launch
from pymc_dpsplit.moves.partition import log_split_ratio, members_of
from pymc_dpsplit.moves.tally import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED


@kernel
def draw_anchors(n_obs, stream):
    """Draw an ordered pair of different observations, of two or more."""
    anchors = np.empty(2, np.int64)
    anchors[0] = next_index(stream, n_obs)
    anchors[1] = next_index(stream, n_obs - 1)
    if anchors[1] >= anchors[0]:
        anchors[1] += 1
    return anchors


@kernel
def decide_anchored(prior, data, labels, stats, alpha, key):
    """Decide on one split or merge; all that is random comes from `key`.

    Returns
    -------
    Decision
    """
    if labels.shape[0] < 2:
        return leave(NOTHING_PROPOSED, 0, 0)
    stream = new_stream(key)
    anchors = draw_anchors(labels.shape[0], stream)
    return decide_for_pair(prior, data, labels, stats, alpha, anchors, stream)


@kernel
def decide_for_pair(prior, data, labels, stats, alpha, anchors, stream):
    """Decide on the split or merge of the clusters of two given observations."""
    a, b = np.int64(labels[anchors[0]]), np.int64(labels[anchors[1]])
    log_u = math.log(next_uniform(stream))
    if a == b:
        return _split(prior, data, labels, stats, alpha, a, anchors, log_u, stream)
    return _merge(prior, data, labels, stats, alpha, a, b, anchors, log_u, stream)


@kernel
def anchored_attempt(prior, data, labels, stats, alpha, rng, tally):
    """Attempt one split or merge; changes `labels` and `tally`, returns the statistics."""
    decision = decide_anchored(prior, data, labels, stats, alpha, draw_key(rng))
    return carry_out(labels, stats, decision, tally)


@kernel
def _split(prior, data, labels, stats, alpha, cluster, anchors, log_u, stream):
    members, bounds = order_by_block(members_of(labels, stats, cluster, cluster))
    log_shares, params = launch(prior, data, members, anchors, anchors, stream)
    side = np.empty(members.shape[0], np.int8)
    pair, log_q, _ = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, True, stream
    )
    log_ratio = log_split_ratio(prior, alpha, pair[0], pair[1], stats[cluster])
    if log_u >= log_ratio - log_q:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    return divide_into(SPLITS_PROPOSED, cluster, members, side, pair)


@kernel
def _merge(prior, data, labels, stats, alpha, a, b, anchors, log_u, stream):
    union = stats[a] + stats[b]
    log_ratio = log_split_ratio(prior, alpha, stats[a], stats[b], union)
    # q <= 1, so this rejection is exact and needs no launch.
    if log_u >= -log_ratio:
        return leave(MERGES_PROPOSED, a, b)
    members, bounds = order_by_block(members_of(labels, stats, a, b))
    log_shares, params = launch(prior, data, members, anchors, anchors, stream)
    side = np.empty(members.shape[0], np.int8)
    for j in range(members.shape[0]):
        side[j] = 0 if labels[members[j]] == a else 1
    _, log_q, _ = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, False, stream
    )
    if log_u >= log_q - log_ratio:
        return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)
