"""Regrouping, for tuning only: clusters are divided and their sides put together anew.

Far from the posterior a chain needs many splits and merges, and where clusters can share members
in several ways the partition between two of them is often hundreds of nats worse.  A regrouping
divides neighbouring clusters all at once and merges the best pair of their sides until no merge
gains.  Where groups are held together in pairs, the best pairs one after another are not the best
pairs altogether, so neighbourhoods of a few clusters are then regrouped with gains discounted at
random, and the partition is kept if it is better.  All this climbs the joint density and is NOT
invariant: draws made with it are discarded (docs/method.md, section 6).
"""

import numpy as np

from pymc_dpsplit.components.base import log_marginal
from pymc_dpsplit.kernels.jit import jitted, jitted_beside
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import copy_row, sum_of_rows
from pymc_dpsplit.kernels.sorting import ascending
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_uniform
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.partition import log_joint, members_of
from pymc_dpsplit.moves.partition_law import log_opening_mass, log_split_factor_given
from pymc_dpsplit.moves.split_merge.division import divide_members, no_anchors
from pymc_dpsplit.moves.split_merge.selection import fill_affinities, log_marginals

# All pairs of the sides of so many clusters at most are compared.
MOST_CLUSTERS = 256
# Number of clusters of a neighbourhood, and how often each cluster is in one on average.
_LEAST_NEIGHBOURS, _MOST_NEIGHBOURS = 3, 18
_ROUNDS_OF_NEIGHBOURHOODS = 2


@jitted
def _neighbours(target, labels, stats, most, stream):
    """Draw a cluster, that of a random observation, and find those with most affinity to it.

    Returns
    -------
    ndarray of int64, shape (min(K, most),)
    """
    order, n_clusters = cluster_order(labels, stats), stats.shape[0]
    first = np.int64(labels[next_index(stream, labels.shape[0])])
    affinity, distance = np.empty(n_clusters), np.empty(n_clusters)
    fill_affinities(target.prior, stats, log_marginals(target.prior, stats), first, affinity)
    for p in range(n_clusters):
        distance[p] = -np.inf if order[p] == first else -affinity[order[p]]
    nearest = ascending(distance)
    chosen = np.empty(min(n_clusters, most), np.int64)
    for q in range(chosen.shape[0]):
        chosen[q] = order[nearest[q]]
    return chosen


@jitted
def _divide_all(target, labels, stats, chosen, stream):
    """Divide the chosen clusters; the second side of the q-th gets the label K + q.

    Returns
    -------
    ndarray of float64, shape (2 n, S)
        Statistics of the sides of the q-th in rows 2 q and 2 q + 1.
    """
    sides = np.zeros((2 * chosen.shape[0], stats.shape[1]))
    for q in range(chosen.shape[0]):
        members = members_of(labels, stats, chosen[q], chosen[q])
        if members.shape[0] == 1:
            copy_row(stats[chosen[q]], sides[2 * q])
            continue
        members, side, pair, _ = divide_members(target, members, stream, no_anchors())
        copy_row(pair[0], sides[2 * q])
        copy_row(pair[1], sides[2 * q + 1])
        for j in range(members.shape[0]):
            if side[j] == 1:
                labels[members[j]] = stats.shape[0] + q
    return sides


@jitted
def _gain(target, log_opening, sides, log_m, s, t):
    """Log ratio of the posterior with sides s and t as one cluster to that with two clusters."""
    log_factor = log_split_factor_given(target.law, log_opening, sides[s, 0], sides[t, 0])
    whole = log_marginal(target.prior, sum_of_rows(sides, s, t))
    return whole - log_m[s] - log_m[t] - log_factor


@jitted
def all_gains(target, log_opening, sides, log_m):
    """Gains of all pairs below the diagonal, shape (n, n); -inf elsewhere and of empty sides."""
    n_sides = sides.shape[0]
    gains = np.full((n_sides, n_sides), -np.inf)
    for s in range(n_sides):
        for t in range(s):
            if sides[s, 0] > 0.0 and sides[t, 0] > 0.0:
                gains[s, t] = _gain(target, log_opening, sides, log_m, s, t)
    return gains


@jitted
def _update_gains(target, log_opening, sides, log_m, a, b, gains):
    """Renew the gains of side a, which b has joined, and let b have none."""
    for s in range(gains.shape[0]):
        gains[max(s, b), min(s, b)] = -np.inf
        # A pair that is impossible stays so, and so does that of a side that has joined another.
        if gains[max(s, a), min(s, a)] > -np.inf:
            gains[max(s, a), min(s, a)] = _gain(target, log_opening, sides, log_m, s, a)


@jitted
def random_factors(n_sides, discount, stream):
    """Factors of the gains of all pairs below the diagonal, uniform from 1 - `discount` to 1."""
    factors = np.ones((n_sides, n_sides))
    if discount > 0.0:
        for s in range(n_sides):
            for t in range(s):
                factors[s, t] = 1.0 - discount * next_uniform(stream)
    return factors


@jitted
def _best_pair(gains, factors):
    """Rows of the largest product, the smaller first; equal rows if no gain is positive."""
    best, a, b = 0.0, 0, 0
    for s in range(gains.shape[0]):
        for t in range(s):
            if gains[s, t] * factors[s, t] > best:
                best, a, b = gains[s, t] * factors[s, t], t, s
    return a, b


@jitted
def join_sides(target, log_opening, sides, log_m, gains, factors):
    """Merge the best pair until no merge gains.

    Parameters
    ----------
    target : Target
    log_opening : float
        Log mass with which a cluster is opened; one value for all merges.
    sides : ndarray of float64, shape (n, S)
        Changed: a side has the statistics of those that have joined it.
    log_m : ndarray of float64, shape (n,)
        Log marginal likelihoods of the sides; changed with them.
    gains : ndarray of float64, shape (n, n)
        Result of `all_gains`; changed.
    factors : ndarray of float64, shape (n, n)
        By which gains are multiplied when pairs are compared.

    Returns
    -------
    ndarray of int64, shape (n,)
        The side that each has joined, one before it, or itself.
    """
    joined = np.arange(sides.shape[0])
    a, b = _best_pair(gains, factors)
    while a != b:
        copy_row(sum_of_rows(sides, a, b), sides[a])
        log_m[a] = log_marginal(target.prior, sides[a])
        for s in range(joined.shape[0]):
            if joined[s] == b:
                joined[s] = a
        _update_gains(target, log_opening, sides, log_m, a, b, gains)
        a, b = _best_pair(gains, factors)
    return joined


@jitted
def _number_anew(stats, chosen, sides, joined):
    """Number the clusters that were not chosen, then the groups of sides.

    Returns
    -------
    numbers : ndarray of int64, shape (K + n,)
        New number of each label.
    regrouped : ndarray of float64, shape (K', S)
    """
    n_clusters, n_chosen = stats.shape[0], chosen.shape[0]
    numbers = np.zeros(n_clusters + n_chosen, np.int64)
    for q in range(n_chosen):
        numbers[chosen[q]] = -1
    regrouped, at = np.empty((n_clusters + n_chosen, stats.shape[1])), 0
    for k in range(n_clusters):
        if numbers[k] == 0:
            copy_row(stats[k], regrouped[at])
            numbers[k] = at
            at += 1
    of_sides = np.empty(joined.shape[0], np.int64)
    for s in range(joined.shape[0]):
        if joined[s] == s and sides[s, 0] > 0.0:
            copy_row(sides[s], regrouped[at])
            of_sides[s] = at
            at += 1
        else:
            of_sides[s] = of_sides[joined[s]]
    for q in range(n_chosen):
        numbers[chosen[q]] = of_sides[2 * q]
        numbers[n_clusters + q] = of_sides[2 * q + 1]
    return numbers, regrouped[:at].copy()


@jitted
def _regroup_some(target, labels, stats, most, discount, stream):
    """Attempt one regrouping of some clusters in place; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed if the joint density is higher.
    stats : ndarray of float64, shape (K, S)
    most : int
        Number of clusters, if there are so many.
    discount : float
        Largest share by which the gain of a merge is lowered at random.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    n_clusters = stats.shape[0]
    chosen = _neighbours(target, labels, stats, most, stream)
    sides = _divide_all(target, labels, stats, chosen, stream)
    factors = random_factors(sides.shape[0], discount, stream)
    # Of a cluster that is there, so that it is positive where the number of clusters is bounded.
    log_opening = log_opening_mass(target.law, n_clusters - 1)
    log_m = log_marginals(target.prior, sides)
    gains = all_gains(target, log_opening, sides, log_m)
    joined = join_sides(target, log_opening, sides, log_m, gains, factors)
    numbers, regrouped = _number_anew(stats, chosen, sides, joined)
    is_better = log_joint(target, regrouped) > log_joint(target, stats)
    for i in range(labels.shape[0]):
        if is_better:
            labels[i] = numbers[labels[i]]
        elif labels[i] >= n_clusters:
            labels[i] = chosen[labels[i] - n_clusters]
    return regrouped if is_better else stats


@jitted_beside("stats")
def regroup(target, labels, stats, rng):
    """Regroup all clusters, up to 256, then random neighbourhoods; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed in place if the joint density is higher.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    stream = new_stream(draw_key(rng))
    stats = _regroup_some(target, labels, stats, MOST_CLUSTERS, 0.0, stream)
    left = _ROUNDS_OF_NEIGHBOURHOODS * min(stats.shape[0], MOST_CLUSTERS)
    while left > 0:
        size = _LEAST_NEIGHBOURS + next_index(stream, _MOST_NEIGHBOURS - _LEAST_NEIGHBOURS + 1)
        stats = _regroup_some(target, labels, stats, size, next_uniform(stream), stream)
        left -= size
    return stats
