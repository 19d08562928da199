"""Transfer: a part of one cluster goes to another cluster, in one move.

Splits and merges take two moves for this, and the partition between them is often hundreds of nats
worse: if a group of observations can share a cluster with either of two other groups, it stays with
the one that it joined first.  Here a cluster is divided with two of its observations on different
sides, and the second side, as a block, draws the cluster that it joins from all others and the
first side, eq. (3.6).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import log_marginal
from pymc_dpsplit.kernels.jit import jitted, jitted_beside
from pymc_dpsplit.kernels.random import categorical_at, draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_uniform
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.partition import apply_merge, apply_split, members_of
from pymc_dpsplit.moves.partition_law import log_joining_factor
from pymc_dpsplit.moves.split_merge.division import divide_members, log_division_probability


@jitted
def _log_mass_of_joining(target, rest, part):
    """Log of the factor by which the posterior changes as `part` joins `rest`, up to a constant."""
    of_law = log_joining_factor(target.law, rest[0], part[0])
    return of_law + log_marginal(target.prior, rest + part) - log_marginal(target.prior, rest)


@jitted
def draw_goal(target, labels, stats, origin, pair, stream):
    """Draw the cluster that the second side of a division joins; the first side is one of them.

    Probabilities are proportional to the square root of the posterior.  In proportion to the
    posterior itself every gain would be spent on the choice, and none would be left to make up for
    a division back that is less probable.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    origin : int
        The cluster that is divided; it stands for its first side.
    pair : ndarray of float64, shape (2, S)
        Statistics of the sides.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    goal : int
    log_gain : float
        Log of what is left of the ratio of the posteriors, after that of the choices.
    """
    order = cluster_order(labels, stats)
    log_root, roots, of_origin = np.empty(order.shape[0]), np.empty(order.shape[0]), 0.0
    for p in range(order.shape[0]):
        rest = pair[0] if order[p] == origin else stats[order[p]]
        log_root[p] = 0.5 * _log_mass_of_joining(target, rest, pair[1])
        if order[p] == origin:
            of_origin = log_root[p]
    largest = log_root.max()
    for p in range(order.shape[0]):
        roots[p] = math.exp(log_root[p] - largest)
    chosen = categorical_at(next_uniform(stream), roots)
    return order[chosen], log_root[chosen] - of_origin


@jitted
def _draw_anchors(goes, members, stream):
    """Draw another member that stays, first, beside the one that goes, second.

    Members are ascending, at least two.
    """
    anchors = np.empty(2, np.int64)
    at = next_index(stream, members.shape[0] - 1)
    anchors[0] = members[at] if members[at] < goes else members[at + 1]
    anchors[1] = goes
    return anchors


@jitted
def _log_ratio_of_anchors(n_origin, n_moving, n_goal):
    """Log ratio of the probabilities of drawing anchors, on the way back and on the way there."""
    there = math.log(n_origin - 1.0) + math.log(n_goal)
    back = math.log(n_goal + n_moving - 1.0) + math.log(n_origin - n_moving)
    return there - back


@jitted_beside("stats")
def transfer_attempt(target, labels, stats, rng):
    """Attempt one transfer in place; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    stream = new_stream(draw_key(rng))
    goes = next_index(stream, labels.shape[0])
    origin = np.int64(labels[goes])
    members = members_of(labels, stats, origin, origin)
    if stats.shape[0] == 1 or members.shape[0] == 1:
        return stats
    anchors = _draw_anchors(goes, members, stream)
    members, side, pair, log_q = divide_members(target, members, stream, anchors)
    goal, log_gain = draw_goal(target, labels, stats, origin, pair, stream)
    if goal == origin:
        return stats
    others, log_u = members_of(labels, stats, goal, goal), math.log(next_uniform(stream))
    sizes = members.shape[0], np.sum(side), others.shape[0]
    log_accept = log_gain + (_log_ratio_of_anchors(*sizes) - log_q)
    # The probability of the division back is at most 1.
    if log_u >= log_accept:
        return stats
    part = stats.shape[0]
    divided = apply_split(labels, stats, origin, members, side, pair[0], pair[1])
    anchors[0] = others[next_index(stream, others.shape[0])]
    log_accept += log_division_probability(target, labels, divided, stream, goal, part, anchors)
    if log_u < log_accept:
        return apply_merge(labels, divided, goal, part)
    apply_merge(labels, divided, origin, part)
    return stats
