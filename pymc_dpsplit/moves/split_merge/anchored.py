"""Split/merge of an anchored pair (after Jain & Neal 2004), with a parallel allocation.

An ordered pair (i, j) of observations is drawn uniformly.  If both are in one cluster, a split of
it with i and j on different sides is proposed; if they are in two clusters, a merge.  The pair does
not depend on the partition, so its probability cancels; eq. (3.3).  Under a Dirichlet process an
attempt reads only the clusters of i and j; a law with a discount also reads the number of clusters.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_beside
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import sum_of_rows
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_uniform
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, NOTHING_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.partition import log_split_ratio_given
from pymc_dpsplit.moves.partition_law import log_opening_mass
from pymc_dpsplit.moves.split_merge.decision import carry_out, divide_into, join, leave
from pymc_dpsplit.moves.split_merge.division import draw_division, log_division_probability


@jitted
def draw_anchors(n_obs, stream):
    """Draw an ordered pair of different observations; there must be at least two.

    Parameters
    ----------
    n_obs : int
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    ndarray of int64, shape (2,)
    """
    anchors = np.empty(2, np.int64)
    anchors[0] = next_index(stream, n_obs)
    anchors[1] = next_index(stream, n_obs - 1)
    if anchors[1] >= anchors[0]:
        anchors[1] += 1
    return anchors


@jitted
def decide_anchored(target, labels, stats, key):
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
    if labels.shape[0] < 2:
        return leave(NOTHING_PROPOSED, 0, 0)
    stream = new_stream(key)
    anchors = draw_anchors(labels.shape[0], stream)
    return decide_for_pair(target, labels, stats, stream, anchors)


@jitted
def decide_for_pair(target, labels, stats, stream, anchors):
    """Decide on the split or merge of the clusters of two given observations.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)
    anchors : ndarray of int64, shape (2,)

    Returns
    -------
    Decision
    """
    log_opening = log_opening_mass(target.law, n_clusters_when_whole(labels, stats, anchors))
    return decide_given_opening(target, labels, stats, stream, anchors, log_opening)


@jitted
def n_clusters_when_whole(labels, stats, anchors):
    """Return the number of clusters if two observations share one: as it is, or after a merge."""
    n_clusters = stats.shape[0]
    return n_clusters if labels[anchors[0]] == labels[anchors[1]] else n_clusters - 1


@jitted
def decide_given_opening(target, labels, stats, stream, anchors, log_opening):
    """Decide like `decide_for_pair`, given the log of the mass with which a cluster is opened.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)
    anchors : ndarray of int64, shape (2,)
    log_opening : float
        Beside the clusters that there are with the anchors in one.

    Returns
    -------
    Decision
    """
    a, b = np.int64(labels[anchors[0]]), np.int64(labels[anchors[1]])
    log_u = math.log(next_uniform(stream))
    if a == b:
        return _split(target, labels, stats, stream, a, anchors, log_u, log_opening)
    return _merge(target, labels, stats, stream, a, b, anchors, log_u, log_opening)


@jitted_beside("stats")
def anchored_attempt(target, labels, stats, rng, acceptance_counts):
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
    decision = decide_anchored(target, labels, stats, draw_key(rng))
    return carry_out(labels, stats, decision, acceptance_counts)


@jitted
def _split(target, labels, stats, stream, cluster, anchors, log_u, log_opening):
    members, side, pair, log_q = draw_division(target, labels, stats, stream, cluster, anchors)
    log_ratio = log_split_ratio_given(target, log_opening, pair[0], pair[1], stats[cluster])
    if log_u >= log_ratio - log_q:
        return leave(SPLITS_PROPOSED, cluster, cluster)
    return divide_into(SPLITS_PROPOSED, cluster, members, side, pair)


@jitted
def _merge(target, labels, stats, stream, a, b, anchors, log_u, log_opening):
    union = sum_of_rows(stats, a, b)
    log_ratio = log_split_ratio_given(target, log_opening, stats[a], stats[b], union)
    # q <= 1, so this rejection is exact and needs no launch.
    if log_u >= -log_ratio:
        return leave(MERGES_PROPOSED, a, b)
    log_q = log_division_probability(target, labels, stats, stream, a, b, anchors)
    if log_u >= log_q - log_ratio:
        return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)
