"""Split/merge of an anchored pair, labels and parameters together, where nothing integrates out.

An ordered pair (i, j) of observations is drawn uniformly.  In one cluster: propose to split it,
i and j on different sides, with parameters for both.  In two: propose to merge them, with one
parameter for both.  The pair does not depend on the partition, so its probability cancels;
eq. (78)-(79).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.generic import LOG_POSTERIOR, THETA, log_base_of
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.kept_fit import draw_around, log_density_around
from pymc_dpsplit.moves.kept_launch import UNION, fill_log_odds_of, joint_launch
from pymc_dpsplit.moves.kept_parameters import gather_columns, log_posterior
from pymc_dpsplit.moves.partition import apply_merge, apply_split, members_of
from pymc_dpsplit.moves.tally import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)


@kernel
def draw_anchors(n_obs, rng):
    """Draw an ordered pair of different observations."""
    anchors = np.empty(2, np.int64)
    anchors[0] = np.int64(rng.random() * n_obs)
    anchors[1] = np.int64(rng.random() * (n_obs - 1))
    if anchors[1] >= anchors[0]:
        anchors[1] += 1
    return anchors


@kernel
def joint_attempt(prior, data, labels, stats, alpha, rng, tally):
    """Attempt one split or merge; changes `labels` and `tally`, returns the statistics."""
    if labels.shape[0] < 2:
        return stats
    anchors = draw_anchors(labels.shape[0], rng)
    a, b = labels[anchors[0]], labels[anchors[1]]
    members = members_of(labels, stats, a, b)
    log_shares, modes, factors = joint_launch(prior, data, members, anchors, rng)
    block = np.empty(tile_size(prior) * members.shape[0])
    gather_columns(prior, data, members, block)
    side = np.empty(members.shape[0], np.int8)
    pair, union = np.zeros((2, stats.shape[1])), np.zeros(stats.shape[1])
    union[0] = members.shape[0]
    if a == b:
        tally[SPLITS_PROPOSED] += 1
        union[:] = stats[a]
        for c in range(2):
            draw_around(modes[c], factors[c], rng, pair[c, THETA:])
    else:
        tally[MERGES_PROPOSED] += 1
        for j in range(members.shape[0]):
            side[j] = 0 if labels[members[j]] == a else 1
        pair[0], pair[1] = stats[a], stats[b]
        draw_around(modes[UNION], factors[UNION], rng, union[THETA:])
    log_q = divide_jointly(prior, block, members, anchors, log_shares, pair, side, a == b, rng)
    log_ratio = log_joint_ratio(prior, block, alpha, pair, union) - log_q
    log_ratio += log_density_around(modes[UNION], factors[UNION], union[THETA:])
    for c in range(2):
        log_ratio -= log_density_around(modes[c], factors[c], pair[c, THETA:])
    return _decide(labels, stats, a, b, members, side, pair, union, log_ratio, rng, tally)


@kernel
def _decide(labels, stats, a, b, members, side, pair, union, log_ratio, rng, tally):
    """Accept the split with this log ratio, or the merge with minus it."""
    # Not a number is never larger: such a proposal is refused.
    if a == b:
        if not log_ratio > -rng.standard_exponential():
            return stats
        tally[SPLITS_ACCEPTED] += 1
        return apply_split(labels, stats, a, members, side, pair[0], pair[1])
    if not -log_ratio > -rng.standard_exponential():
        return stats
    tally[MERGES_ACCEPTED] += 1
    stats = apply_merge(labels, stats, a, b)
    stats[min(a, b)] = union
    return stats


@kernel
def log_joint_ratio(prior, block, alpha, pair, union):
    """Log ratio of the posterior of labels and parameters, split to whole, eq. (78).

    `pair` (2, S) must be complete; the log posterior of `union` (S,) is computed.
    """
    n = np.int64(union[0])
    union[LOG_POSTERIOR] = log_posterior(prior, block, n, union[THETA:], np.empty(n))
    return (
        math.log(alpha)
        + math.lgamma(pair[0, 0])
        + math.lgamma(pair[1, 0])
        - math.lgamma(union[0])
        + pair[0, LOG_POSTERIOR]
        + pair[1, LOG_POSTERIOR]
        - union[LOG_POSTERIOR]
    )


@kernel
def divide_jointly(prior, block, members, anchors, log_shares, pair, side, draw, rng):
    """Draw the sides of the members, or evaluate the probability of given ones.

    Completes `pair` (2, S), of which the parameters are given; returns the log probability of
    `side`, in which the anchors, held on sides 0 and 1, have no part.
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
