"""Splits and merges of whole clusters, with tables and weights of groups summed out.

An attempt divides a cluster around two anchors, which are drawn regardless of the partition.  The
members join one side after the other in a random order, with probabilities that know their group.
The global weight is divided too; docs/method.md, (16.2)-(16.4).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    log_marginal,
    log_predictive,
    predictive_add,
    stats_size,
)
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted, jitted_uncounted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.rows import copy_row, sum_of_rows
from pymc_dpsplit.kernels.special import log_rising, log_sum_of_two
from pymc_dpsplit.kernels.streams import next_uniform
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.acceptance_counts import MERGES_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.partition import apply_merge, apply_split
from pymc_dpsplit.moves.partition_law import log_opening_mass
from pymc_dpsplit.samplers.sams import random_order
from pymc_dpsplit.samplers.two_sides import NO_SIDE, begin_sides, draw_allocation

# Between it and its inverse a ratio of masses is computed without underflow.
_LEAST_RATIO = 1e-200


class Division(NamedTuple):
    """Division of the members of a cluster, and the probability with which it is drawn.

    Attributes
    ----------
    side : ndarray of int8, shape (n,)
        0 or 1 for each member.
    counts : ndarray of int64, shape (2, J)
        Number of members of each group on both sides.
    pair : ndarray of float64, shape (2, S)
        Sufficient statistics of both sides.
    log_q : float
        Log probability of the sides given the order.
    """

    side: np.ndarray
    counts: np.ndarray
    pair: np.ndarray
    log_q: float


@jitted_inlined_uncounted
def _log_odds(half, counts, group):
    """Log of the ratio of the masses of both sides for a row of a group."""
    left, right = half + counts[0, group], half + counts[1, group]
    if _LEAST_RATIO * right < left < right / _LEAST_RATIO:
        return math.log(left / right)
    return math.log(left) - math.log(right)


@jitted_uncounted
def _put_members(target, half, order, allocation, caches, counts, pair, least, stream):
    """Put the members on their sides in this order; return the log probability of the division.

    Nothing is allocated here, so that no references need be counted.
    """
    prior, data, _ = target.of_rows
    _, _, _, _, members, side, goal = allocation
    log_q = 0.0
    for t in range(order.shape[0]):
        j = order[t]
        if side[j] != NO_SIDE:
            continue
        i, group, s = members[j], target.group_of_row[members[j]], goal[j]
        odds = _log_odds(half, counts, group)
        odds += log_predictive(prior, data, i, row_of(caches, 0))
        odds -= log_predictive(prior, data, i, row_of(caches, 1))
        inverse = math.exp(-abs(odds))
        likely = 0 if odds > 0.0 else 1
        if s == NO_SIDE:
            s = likely if next_uniform(stream) * (1.0 + inverse) > inverse else 1 - likely
            add_row(prior, data, i, row_of(pair, s))
        log_q -= math.log1p(inverse) + (0.0 if s == likely else abs(odds))
        if log_q < least:
            return log_q
        side[j] = s
        counts[s, group] += 1
        predictive_add(prior, data, i, row_of(caches, s))
    return log_q


@jitted
def _log_probability_of_sides(target, half, allocation, counts, pair, least, stream):
    """Put the members on their sides in a random order; return the log probability of these.

    Parameters
    ----------
    target : GroupedTarget
    half : float
        Half of alpha times the global weight of all members.
    allocation : Allocation
    counts : ndarray of int64, shape (2, J)
        Overwritten with the numbers of members of each group on both sides.
    pair : ndarray of float64, shape (2, S)
        The members whose side is drawn are added to the statistics of both sides.
    least : float
        Once the log probability is below it, the rest of the members stay where they are.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    float
    """
    prior, data, _ = target.of_rows
    members, side = allocation.members, allocation.side
    side[:], counts[:] = NO_SIDE, 0
    _, caches = begin_sides(prior, data, members, allocation.anchors, side)
    for anchor in range(2):
        counts[anchor, target.group_of_row[allocation.anchors[anchor]]] += 1
    order = random_order(members.shape[0], stream)
    return _put_members(target, half, order, allocation, caches, counts, pair, least, stream)


@jitted
def divide(target, half, allocation, stream):
    """Divide the members of one cluster.

    Parameters
    ----------
    target : GroupedTarget
    half : float
        Half of alpha times the global weight of all members.
    allocation : Allocation
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    Division
    """
    prior, data, _ = target.of_rows
    counts, pair = np.zeros((2, target.sizes.shape[0]), np.int64), np.zeros((2, stats_size(prior)))
    for anchor in range(2):
        add_row(prior, data, allocation.anchors[anchor], pair[anchor])
    given = target, half, allocation, counts, pair
    log_q = _log_probability_of_sides(*given, -math.inf, stream)
    return Division(allocation.side, counts, pair, log_q)


@jitted
def present_division(target, stats, allocation):
    """Return the division of the members of two clusters, without its probability."""
    members, goal = allocation.members, allocation.goal
    pair = np.empty((2, stats.shape[1]))
    copy_row(stats[allocation.a], pair[0])
    copy_row(stats[allocation.b], pair[1])
    return Division(goal, count_sides(target, members, goal), pair, 0.0)


@jitted
def count_sides(target, members, side):
    """Count the members of each group on both sides, shape (2, J)."""
    counts = np.zeros((2, target.sizes.shape[0]), np.int64)
    for j in range(members.shape[0]):
        counts[side[j], target.group_of_row[members[j]]] += 1
    return counts


@jitted
def shape_of_share(counts, half):
    """About the expected number of tables of one side; the parameter t of eq. (16.3)."""
    total = 0.0
    for j in range(counts.shape[0]):
        if counts[j] > 0:
            # Exactly 1 for one row: draws of a gamma variable differ below and above a shape of 1.
            total += 1.0 + half * math.log1p((counts[j] - 1.0) / (half + 0.5))
    return total


@jitted
def log_density_of_share(shapes, log_shares):
    """Log density of the share of side 0, Beta(t_0, t_1), at its logarithm and that of the rest."""
    return (
        math.lgamma(shapes[0] + shapes[1])
        - math.lgamma(shapes[0])
        - math.lgamma(shapes[1])
        + (shapes[0] - 1.0) * log_shares[0]
        + (shapes[1] - 1.0) * log_shares[1]
    )


@jitted
def log_split_ratio(target, division, union, strength, log_shares):
    """Log ratio of the posterior with a cluster divided to that with it whole, eq. (16.2).

    Parameters
    ----------
    target : GroupedTarget
    division : Division
    union : ndarray of float64, shape (S,)
        Sufficient statistics of all members.
    strength : float
        Alpha times the global weight of all members, a.
    log_shares : tuple of float
        Logarithms of the shares of both sides in the weight, rho and 1 - rho.

    Returns
    -------
    float
    """
    prior, _, law = target.of_rows
    total = log_opening_mass(law, 0) - log_shares[0] - log_shares[1]
    for s in range(2):
        total += log_marginal(prior, division.pair[s])
        of_side = strength * math.exp(log_shares[s])
        for j in range(division.counts.shape[1]):
            if division.counts[s, j] > 0:
                total += log_rising(of_side, division.counts[s, j])
    for j in range(division.counts.shape[1]):
        both = division.counts[0, j] + division.counts[1, j]
        if both > 0:
            total -= log_rising(strength, both)
    return total - log_marginal(prior, union)


@jitted
def draw_log_shares(shapes, rng):
    """Draw the logarithms of the shares of both sides in the weight, eq. (16.3)."""
    log_left, log_right = draw_log_gamma(rng, shapes[0]), draw_log_gamma(rng, shapes[1])
    log_sum = log_sum_of_two(log_left, log_right)
    return log_left - log_sum, log_right - log_sum


@jitted
def split_weights(weights, a, log_shares):
    """Divide the weight of a cluster; the new cluster is the last one."""
    changed = np.append(weights, weights[a] * math.exp(log_shares[1]))
    changed[a] = weights[a] * math.exp(log_shares[0])
    return changed


@jitted
def merged_weights(weights, a, b):
    """Add the weights of two clusters, numbered as by `apply_merge`."""
    changed = weights[:-1].copy()
    if max(a, b) < changed.shape[0]:
        changed[max(a, b)] = weights[-1]
    changed[min(a, b)] = weights[a] + weights[b]
    return changed


@jitted
def propose_shares(target, division, union, weights, a, b, rng):
    """Draw the shares of both sides in the weight, or find those of two clusters.

    Parameters
    ----------
    target : GroupedTarget
    division : Division
        Of one cluster a = b that is to be split, or of two that are to be merged.
    union : ndarray of float64, shape (S,)
    weights : ndarray of float64, shape (K,)
        Global weights.
    a, b : int
    rng : numpy.random.Generator

    Returns
    -------
    log_shares : tuple of float
    log_ratio : float
        Log of R over the density of what a split proposes, eq. (16.4).
    """
    is_split = a == b
    weight = weights[a] if is_split else weights[a] + weights[b]
    strength = target.alpha * weight
    half, counts = 0.5 * strength, division.counts
    shapes = shape_of_share(counts[0], half), shape_of_share(counts[1], half)
    log_shares = math.log(weights[a] / weight), math.log(weights[b] / weight)
    if is_split:
        log_shares = draw_log_shares(shapes, rng)
    log_ratio = log_split_ratio(target, division, union, strength, log_shares)
    log_proposed = division.log_q + log_density_of_share(shapes, log_shares)
    return log_shares, log_ratio - log_proposed


@jitted
def carry_out_division(labels, stats, weights, a, b, members, division, log_shares):
    """Split cluster a = b as divided, or merge clusters a and b; return statistics and weights."""
    if a == b:
        left, right = division.pair[0], division.pair[1]
        stats = apply_split(labels, stats, a, members, division.side, left, right)
        return stats, split_weights(weights, a, log_shares)
    return apply_merge(labels, stats, a, b), merged_weights(weights, a, b)


@jitted
def _split(target, labels, stats, weights, allocation, rng, stream, acceptance_counts):
    """Attempt to split the cluster of two rows, see `attempt_split_or_merge`."""
    a, members = allocation.a, allocation.members
    acceptance_counts[SPLITS_PROPOSED] += 1
    division = divide(target, 0.5 * target.alpha * weights[a], allocation, stream)
    given = target, division, stats[a].copy(), weights, a, a
    log_shares, log_ratio = propose_shares(*given, rng)
    if not allocation.log_u < log_ratio:
        return stats, weights
    acceptance_counts[SPLITS_PROPOSED + 1] += 1
    return carry_out_division(labels, stats, weights, a, a, members, division, log_shares)


@jitted
def _merge(target, labels, stats, weights, allocation, rng, stream, acceptance_counts):
    """Attempt to merge the clusters of two rows, see `attempt_split_or_merge`.

    The probability of the division is a product of the probabilities of its members, so that the
    merge is rejected as soon as a part of it is too small, most of them before the first.
    """
    a, b, members = allocation.a, allocation.b, allocation.members
    acceptance_counts[MERGES_PROPOSED] += 1
    division = present_division(target, stats, allocation)
    given = target, division, sum_of_rows(stats, a, b), weights, a, b
    log_shares, log_ratio = propose_shares(*given, rng)
    least = allocation.log_u + log_ratio
    if not least < 0.0:
        return stats, weights
    half, counts = 0.5 * target.alpha * (weights[a] + weights[b]), np.empty_like(division.counts)
    sides = target, half, allocation, counts, division.pair
    if not _log_probability_of_sides(*sides, least, stream) > least:
        return stats, weights
    acceptance_counts[MERGES_PROPOSED + 1] += 1
    return carry_out_division(labels, stats, weights, a, b, members, division, log_shares)


@jitted
def attempt_split_or_merge(target, labels, stats, weights, rng, stream, acceptance_counts):
    """Attempt to split the cluster of two rows, or to merge their clusters, eq. (16.4).

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
        Global weights.
    rng : numpy.random.Generator
    stream : ndarray of uint64, shape (2,)
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
    """
    if labels.shape[0] < 2:
        return stats, weights
    allocation = draw_allocation(labels, stats, stream)
    given = target, labels, stats, weights, allocation, rng, stream, acceptance_counts
    return _split(*given) if allocation.a == allocation.b else _merge(*given)
