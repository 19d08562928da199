"""Splits and merges proposed by sub-clusters that sample on their own; exact.

Two observations of different sub-clusters are drawn.  If they share a cluster, a split of it is
proposed, with one of them on each side; if not, the merge of their clusters.  The two sub-clusters,
as far as they are among the members, give the parameters by which these are allocated to the
sides.  Nothing of this looks at how the members are divided at present, so that split and merge are
each other's reverse (launch lemma of docs/method.md, section 3).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import add_row, params_size, stats_size
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import sum_of_rows
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_uniform
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, NOTHING_PROPOSED
from pymc_dpsplit.moves.partition import log_split_ratio, members_of
from pymc_dpsplit.moves.split_merge.allocation import allocate, order_by_block
from pymc_dpsplit.moves.split_merge.decision import carry_out, leave
from pymc_dpsplit.moves.split_merge.launch import fit_pair
from pymc_dpsplit.samplers.sub_cluster_chain import rows_with_sub_clusters
from pymc_dpsplit.samplers.two_sides import decide_by_ratio, sides_to_reach


@jitted
def draw_anchors_apart(rows, sub_labels, stream):
    """Draw an observation, and another one of another sub-cluster, uniformly.

    Parameters
    ----------
    rows : ndarray of int64, shape (n,)
        Observations that have sub-clusters.
    sub_labels : ndarray of int8, shape (N,)
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    ndarray of int64, shape (2,)
        (-1, -1) if there is no other sub-cluster.
    """
    anchors, others, n_others = np.full(2, -1), np.empty(rows.shape[0], np.int64), 0
    first = rows[next_index(stream, rows.shape[0])]
    for i in rows:
        if sub_labels[i] != sub_labels[first]:
            others[n_others] = i
            n_others += 1
    if n_others > 0:
        anchors[0], anchors[1] = first, others[next_index(stream, n_others)]
    return anchors


@jitted
def fit_sub_clusters(prior, data, labels, rows, sub_labels, anchors):
    """Fit the sub-clusters of two anchors, as far as they are in the clusters of the anchors.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    rows : ndarray of int64, shape (n,)
    sub_labels : ndarray of int8, shape (N,)
    anchors : ndarray of int64, shape (2,)

    Returns
    -------
    log_shares : ndarray of float64, shape (2,)
    params : ndarray of float64, shape (2, P)
    """
    a, b = labels[anchors[0]], labels[anchors[1]]
    pair = np.zeros((2, stats_size(prior)))
    for i in rows:
        if labels[i] == a or labels[i] == b:
            for s in range(2):
                if sub_labels[i] == sub_labels[anchors[s]]:
                    add_row(prior, data, i, pair[s])
    log_shares, params = np.empty(2), np.empty((2, params_size(prior)))
    fit_pair(prior, pair, log_shares, params)
    return log_shares, params


@jitted
def decide_by_sub_clusters(target, labels, stats, sub_labels, key):
    """Decide on one split or merge; `key` determines all random numbers.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    sub_labels : ndarray of int8, shape (N,)
    key : uint64

    Returns
    -------
    Decision
    """
    prior, data, _ = target
    stream, rows = new_stream(key), rows_with_sub_clusters(labels.shape[0])
    anchors = draw_anchors_apart(rows, sub_labels, stream)
    log_u = math.log(next_uniform(stream))
    if anchors[0] < 0:
        return leave(NOTHING_PROPOSED, 0, 0)
    a, b = np.int64(labels[anchors[0]]), np.int64(labels[anchors[1]])
    if a != b:
        union = sum_of_rows(stats, a, b)
        # q <= 1, so this rejection is exact and needs no allocation.
        if log_u >= -log_split_ratio(target, stats.shape[0] - 1, stats[a], stats[b], union):
            return leave(MERGES_PROPOSED, a, b)
    log_shares, params = fit_sub_clusters(prior, data, labels, rows, sub_labels, anchors)
    members, bounds = order_by_block(members_of(labels, stats, a, b))
    side = sides_to_reach(labels, members, a, b)
    _, log_q, _ = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, a == b, stream
    )
    return decide_by_ratio(target, stats, a, b, members, side, log_q, log_u)


@jitted
def sub_cluster_attempt(target, labels, stats, sub_labels, rng, acceptance_counts):
    """Attempt one split or merge in place; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    sub_labels : ndarray of int8, shape (N,)
    rng : numpy.random.Generator
    acceptance_counts : ndarray of int64, shape (4,)

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    decision = decide_by_sub_clusters(target, labels, stats, sub_labels, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)
