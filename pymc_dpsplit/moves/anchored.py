"""Split/merge of an anchored pair (after Jain & Neal 2004), with a parallel allocation.

An ordered pair (i, j) of observations is drawn uniformly.  In one cluster: propose to split it
with i and j on different sides.  In two: propose to merge them.  The pair does not depend on
the partition, so its probability cancels; eq. (11).
"""

import numpy as np

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.allocation import allocate, order_by_block
from pymc_dpsplit.moves.launch import launch
from pymc_dpsplit.moves.partition import apply_merge, apply_split, log_split_ratio, members_of
from pymc_dpsplit.moves.tally import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)


@kernel
def anchored_attempt(prior, data, labels, stats, alpha, rng, tally):
    """Attempt one split or merge; changes `labels` and `tally`, returns the statistics."""
    n_obs = labels.shape[0]
    if n_obs < 2:
        return stats
    anchors = np.empty(2, np.int64)
    anchors[0] = np.int64(rng.random() * n_obs)
    anchors[1] = np.int64(rng.random() * (n_obs - 1))
    if anchors[1] >= anchors[0]:
        anchors[1] += 1
    a, b = labels[anchors[0]], labels[anchors[1]]
    log_u = -rng.standard_exponential()
    if a == b:
        tally[SPLITS_PROPOSED] += 1
        return _split(prior, data, labels, stats, alpha, rng, tally, a, anchors, log_u)
    tally[MERGES_PROPOSED] += 1
    return _merge(prior, data, labels, stats, alpha, rng, tally, a, b, anchors, log_u)


@kernel
def _split(prior, data, labels, stats, alpha, rng, tally, cluster, anchors, log_u):
    members, bounds = order_by_block(members_of(labels, stats, cluster, cluster))
    log_shares, params = launch(prior, data, members, anchors, anchors, rng)
    side = np.empty(members.shape[0], np.int8)
    pair, log_q, _ = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, True, rng
    )
    log_ratio = log_split_ratio(prior, alpha, pair[0], pair[1], stats[cluster])
    if log_u >= log_ratio - log_q:
        return stats
    tally[SPLITS_ACCEPTED] += 1
    return apply_split(labels, stats, cluster, members, side, pair[0], pair[1])


@kernel
def _merge(prior, data, labels, stats, alpha, rng, tally, a, b, anchors, log_u):
    union = stats[a] + stats[b]
    log_ratio = log_split_ratio(prior, alpha, stats[a], stats[b], union)
    # q <= 1, so this rejection is exact and needs no launch.
    if log_u >= -log_ratio:
        return stats
    members, bounds = order_by_block(members_of(labels, stats, a, b))
    log_shares, params = launch(prior, data, members, anchors, anchors, rng)
    side = np.empty(members.shape[0], np.int8)
    for j in range(members.shape[0]):
        side[j] = 0 if labels[members[j]] == a else 1
    _, log_q, _ = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, False, rng
    )
    if log_u >= log_q - log_ratio:
        return stats
    tally[MERGES_ACCEPTED] += 1
    return apply_merge(labels, stats, a, b)
