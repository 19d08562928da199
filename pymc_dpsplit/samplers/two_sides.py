"""Two sides of a set of observations around two anchors, filled one observation at a time.

Weights and parameters are integrated out.  Given who is on the sides, an observation goes to a side
of n others with probability proportional to n (n - sigma under a law with a discount) times its
predictive density there.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_predictive,
    log_predictive,
    predictive_add,
    predictive_remove,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import sum_of_rows
from pymc_dpsplit.kernels.streams import next_uniform
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.partition import log_split_ratio, members_of
from pymc_dpsplit.moves.partition_law import log_joining_factor
from pymc_dpsplit.moves.split_merge.anchored import draw_anchors
from pymc_dpsplit.moves.split_merge.decision import divide_into, join, leave

# Side of an observation that is on neither, or whose side is to be drawn.
NO_SIDE = -1


@jitted
def _gather_sides(prior, data, members, side):
    pair = np.zeros((2, stats_size(prior)))
    for j in range(members.shape[0]):
        if side[j] >= 0:
            add_row(prior, data, members[j], pair[side[j]])
    return pair


class Allocation(NamedTuple):
    """Two anchors, and the members of their clusters, which an attempt puts on two sides.

    Attributes
    ----------
    anchors : ndarray of int64, shape (2,)
        Members that stay on sides 0 and 1.
    log_u : float
        Logarithm of the uniform number that decides on acceptance.
    a, b : int64
        Clusters of the anchors.
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
        To be overwritten with the division.
    goal : ndarray of int8, shape (n,)
        Result of `sides_to_reach`.
    """

    anchors: np.ndarray
    log_u: float
    a: np.int64
    b: np.int64
    members: np.ndarray
    side: np.ndarray
    goal: np.ndarray


@jitted
def draw_allocation(labels, stats, stream):
    """Draw the anchors of an attempt, and find the members of their clusters.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        At least two.
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    Allocation
    """
    anchors = draw_anchors(labels.shape[0], stream)
    log_u = math.log(next_uniform(stream))
    a, b = np.int64(labels[anchors[0]]), np.int64(labels[anchors[1]])
    members = members_of(labels, stats, a, b)
    side = np.empty(members.shape[0], np.int8)
    goal = sides_to_reach(labels, members, a, b)
    return Allocation(anchors, log_u, a, b, members, side, goal)


@jitted
def begin_sides(prior, data, members, anchors, side):
    """Put the anchors on their sides; return the sizes and predictive caches of both.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
    side : ndarray of int8, shape (n,)
        Changed for the anchors; others are where they are, or on `NO_SIDE`.

    Returns
    -------
    sizes : ndarray of float64, shape (2,)
    caches : ndarray of float64, shape (2, C)
    """
    for j in range(members.shape[0]):
        for s in range(2):
            if members[j] == anchors[s]:
                side[j] = s
    sizes, caches = np.zeros(2), np.zeros((2, predictive_size(prior)))
    fill_sides(prior, data, members, side, sizes, caches)
    return sizes, caches


@jitted
def fill_sides(prior, data, members, side, sizes, caches):
    """Compute the sizes and predictive caches of both sides.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
        0, 1 or `NO_SIDE`.
    sizes : ndarray of float64, shape (2,)
    caches : ndarray of float64, shape (2, C)
        Both overwritten.
    """
    pair = _gather_sides(prior, data, members, side)
    for s in range(2):
        sizes[s] = pair[s, 0]
        fill_predictive(prior, pair[s], caches[s])


@jitted
def take_from_side(prior, data, members, side, j, sizes, caches):
    """Take observation members[j] from its side.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
        Changed: side[j] becomes `NO_SIDE`.
    j : int
    sizes : ndarray of float64, shape (2,)
    caches : ndarray of float64, shape (2, C)
        Both updated.
    """
    s = side[j]
    side[j] = NO_SIDE
    sizes[s] -= multiplicity(prior, data, members[j])
    if not predictive_remove(prior, data, members[j], caches[s]):
        # Rounding has spoiled the cache.
        fill_sides(prior, data, members, side, sizes, caches)


@jitted
def put_on_side(prior, data, law, members, side, j, goal, sizes, caches, stream):
    """Put observation members[j] on a side, given who is on the sides already.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    law : PartitionLaw
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
        Changed: side[j] becomes 0 or 1.
    j : int
    goal : int
        The side, or `NO_SIDE` to draw it.
    sizes : ndarray of float64, shape (2,)
    caches : ndarray of float64, shape (2, C)
        Both updated.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    float
        Log probability of the side.
    """
    i = members[j]
    n_joining = multiplicity(prior, data, i)
    odds = log_joining_factor(law, sizes[0], n_joining)
    odds -= log_joining_factor(law, sizes[1], n_joining)
    odds += log_predictive(prior, data, i, caches[0]) - log_predictive(prior, data, i, caches[1])
    s = goal
    if goal == NO_SIDE:
        u = next_uniform(stream)
        s = 0 if odds > math.log(u / (1.0 - u)) else 1
    side[j] = s
    sizes[s] += n_joining
    predictive_add(prior, data, i, caches[s])
    return -np.logaddexp(0.0, -odds if s == 0 else odds)


@jitted
def sides_to_reach(labels, members, a, b):
    """Sides to which an allocation of the members of clusters a and b has to lead.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    members : ndarray of int64, shape (n,)
    a, b : int

    Returns
    -------
    ndarray of int8, shape (n,)
        The present division for a merge of a and b; `NO_SIDE` for a split of a == b.
    """
    goal = np.full(members.shape[0], NO_SIDE, np.int8)
    if a != b:
        for j in range(members.shape[0]):
            goal[j] = 0 if labels[members[j]] == a else 1
    return goal


@jitted
def decide_by_ratio(target, stats, a, b, members, side, log_q, log_u):
    """Accept or reject the split of a cluster, or the merge of two, around a pair of anchors.

    The pair does not depend on the partition, so its probability cancels.  The merge has one
    outcome.  So the ratio of Hastings is that of the posterior probabilities, divided by the
    probability of the division for a split and times it for a merge.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)
    a, b : int
        Clusters of the anchors; a == b for a split.
    members : ndarray of int64, shape (n,)
        Members of both.
    side : ndarray of int8, shape (n,)
        0 or 1 for each member: the division that a split proposes, or that a merge removes.
    log_q : float
        Log probability of the division.
    log_u : float
        Log of a uniform variable.

    Returns
    -------
    Decision
    """
    if a == b:
        pair = _gather_sides(target.prior, target.data, members, side)
        log_ratio = log_split_ratio(target, stats.shape[0], pair[0], pair[1], stats[a])
        if log_u >= log_ratio - log_q:
            return leave(SPLITS_PROPOSED, a, a)
        return divide_into(SPLITS_PROPOSED, a, members, side, pair)
    union = sum_of_rows(stats, a, b)
    log_ratio = log_split_ratio(target, stats.shape[0] - 1, stats[a], stats[b], union)
    if log_u >= log_q - log_ratio:
        return leave(MERGES_PROPOSED, a, b)
    return join(MERGES_PROPOSED, a, b)
