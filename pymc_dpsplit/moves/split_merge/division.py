"""Divisions of a set of observations into two: a launch, then an allocation.

The sides of a division with anchors are ordered, as each anchor has its own.  Without anchors they
are not, so the probability of the division is that of the allocation plus that of the allocation
with the sides exchanged.
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.partition import members_of
from pymc_dpsplit.moves.split_merge.allocation import allocate, order_by_block
from pymc_dpsplit.moves.split_merge.launch import launch


@jitted
def no_anchors():
    """Anchors that hold no observation: (-1, -1)."""
    anchors = np.empty(2, np.int64)
    anchors[:] = -1
    return anchors


@jitted
def draw_division(target, labels, stats, stream, cluster, anchors):
    """Launch in a cluster and draw a division of it.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)
    cluster : int
    anchors : ndarray of int64, shape (2,)
        Members that stay on the first and the second side, or `no_anchors`.

    Returns
    -------
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
    pair : ndarray of float64, shape (2, S)
    log_q : float
        Log probability of the division.
    """
    return divide_members(target, members_of(labels, stats, cluster, cluster), stream, anchors)


@jitted
def divide_members(target, members, stream, anchors):
    """Launch in a set and draw a division of it.

    Parameters
    ----------
    target : Target
    members : ndarray of int64, shape (n,)
        Ascending.
    stream : ndarray of uint64, shape (2,)
    anchors : ndarray of int64, shape (2,)
        See `draw_division`.

    Returns
    -------
    members, side, pair, log_q
        See `draw_division`.
    """
    ordered, bounds = order_by_block(members)
    side = np.empty(ordered.shape[0], np.int8)
    pair, log_q = _divide(target, ordered, bounds, anchors, side, True, stream)
    return ordered, side, pair, log_q


@jitted
def log_division_probability(target, labels, stats, stream, a, b, anchors):
    """Log probability that a launch in the union of clusters a and b divides it into a and b.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    stream : ndarray of uint64, shape (2,)
    a, b : int
    anchors : ndarray of int64, shape (2,)
        Members of a and of b, or `no_anchors`.

    Returns
    -------
    float
    """
    members, bounds = order_by_block(members_of(labels, stats, a, b))
    side = np.empty(members.shape[0], np.int8)
    for j in range(members.shape[0]):
        side[j] = 0 if labels[members[j]] == a else 1
    _, log_q = _divide(target, members, bounds, anchors, side, False, stream)
    return log_q


@jitted
def _divide(target, members, bounds, anchors, side, draw, stream):
    """Launch and draw the sides, or evaluate given ones; return statistics and log probability."""
    prior, data = target.prior, target.data
    log_shares, params = launch(prior, data, members, anchors, stream)
    pair, log_q, log_q_swapped = allocate(
        prior, data, members, bounds, anchors, log_shares, params, side, draw, stream
    )
    return pair, log_q if anchors[0] >= 0 else np.logaddexp(log_q, log_q_swapped)
