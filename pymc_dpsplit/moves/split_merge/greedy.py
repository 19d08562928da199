"""Splits and merges for tuning only: they climb the joint density and are NOT invariant.

This is the informed move without the probability of the division.  Far from the posterior the
exact move rejects nearly every repair of an over-split cluster; this move needs a few
iterations.  Draws made with it are discarded (docs/method.md, section 6).
"""

import math

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import sum_of_rows
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.partition import log_split_ratio
from pymc_dpsplit.moves.split_merge.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.split_merge.informed import divide, log_choice_ratio, propose_split
from pymc_dpsplit.moves.split_merge.selection import draw_cluster, draw_pair, log_marginals


@jitted
def decide_greedily(target, labels, stats, key):
    """Decide on one split or merge; `key` determines all random numbers.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    key : uint64

    Returns
    -------
    Decision
    """
    stream = new_stream(key)
    log_u = math.log(next_uniform(stream))
    if next_uniform(stream) < 0.5:
        return _split(target, labels, stats, stream, log_u)
    if stats.shape[0] == 1:
        return leave(NOTHING_PROPOSED, 0, 0)
    a, b = draw_pair(target.prior, labels, stats, log_marginals(target.prior, stats), stream)
    log_accept = -log_split_ratio(
        target, stats.shape[0] - 1, stats[a], stats[b], sum_of_rows(stats, a, b)
    )
    if log_u >= log_accept - log_choice_ratio(target.prior, stats, a, b):
        return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)


@jitted
def greedy_attempt(target, labels, stats, rng, acceptance_counts):
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
    decision = decide_greedily(target, labels, stats, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)


@jitted
def _split(target, labels, stats, stream, log_u):
    cluster = draw_cluster(labels, stream)
    members, side, pair, _ = propose_split(target, labels, stats, stream, cluster)
    if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    log_accept = log_split_ratio(target, stats.shape[0], pair[0], pair[1], stats[cluster])
    divided = divide(stats, cluster, pair)
    if log_u >= log_accept + log_choice_ratio(target.prior, divided, cluster, stats.shape[0]):
        return leave(SPLITS_PROPOSED, cluster, cluster)
    return divide_into(SPLITS_PROPOSED, cluster, members, side, pair)
