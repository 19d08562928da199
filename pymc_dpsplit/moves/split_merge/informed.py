"""Split/merge with an informed choice of the cluster or the pair, without anchors.

A fair coin selects split or merge, also when there is one cluster (a merge then changes nothing).
The acceptance probability includes the probabilities of choosing the cluster and the pair, each in
the state in which it is chosen; eq. (3.4).
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_beside
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import copy_row, first_column_sum, sum_of_rows, with_more_rows
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.partition import log_split_ratio
from pymc_dpsplit.moves.split_merge.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.split_merge.division import (
    draw_division,
    log_division_probability,
    no_anchors,
)
from pymc_dpsplit.moves.split_merge.selection import (
    draw_cluster,
    draw_pair,
    log_marginals,
    log_pair_probability,
)


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


@jitted_beside("stats")
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
    cluster = draw_cluster(target, labels, stats, stream)
    members, side, pair, log_q = draw_division(target, labels, stats, stream, cluster, no_anchors())
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
        log_accept += log_division_probability(target, labels, stats, stream, a, b, no_anchors())
        if log_u >= log_accept:
            return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)
