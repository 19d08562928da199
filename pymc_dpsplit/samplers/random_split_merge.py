"""Split/merge whose splits are drawn from the prior (Chang & Fisher 2013, section 5.5).

A coin decides between a split and a merge.  A split takes a cluster, uniformly, and divides its
members by a Dirichlet-multinomial law that does not look at the data; a merge takes two clusters,
uniformly.  Splits are hardly ever accepted, and merges have a reverse of known probability.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_uniform
from pymc_dpsplit.moves.acceptance_counts import NOTHING_PROPOSED, SPLITS_PROPOSED
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.partition import members_of
from pymc_dpsplit.moves.split_merge.decision import leave
from pymc_dpsplit.samplers.two_sides import decide_by_ratio, sides_to_reach


@jitted
def log_dirichlet_multinomial(n_left, n_right, mass):
    """Log probability of a division into sides of these sizes, Dirichlet-multinomial(mass, mass).

    Parameters
    ----------
    n_left, n_right : int
    mass : float

    Returns
    -------
    float
    """
    total = math.lgamma(2.0 * mass) - math.lgamma(n_left + n_right + 2.0 * mass)
    total += math.lgamma(n_left + mass) + math.lgamma(n_right + mass)
    return total - 2.0 * math.lgamma(mass)


@jitted
def draw_sides_from_prior(n, mass, stream):
    """Draw a division of n observations, Dirichlet-multinomial(mass, mass), by its urn.

    Parameters
    ----------
    n : int
    mass : float
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    ndarray of int8, shape (n,)
    """
    side, n_left = np.empty(n, np.int8), 0
    for j in range(n):
        side[j] = 0 if next_uniform(stream) * (j + 2.0 * mass) < n_left + mass else 1
        n_left += side[j] == 0
    return side


@jitted
def _n_left(side):
    n_left = 0
    for j in range(side.shape[0]):
        n_left += side[j] == 0
    return n_left


@jitted
def draw_two_clusters(order, stream):
    """Draw two different clusters, uniformly, from a list of at least two."""
    first = next_index(stream, order.shape[0])
    second = next_index(stream, order.shape[0] - 1)
    return order[first], order[second if second < first else second + 1]


@jitted
def decide_by_prior(target, labels, stats, key):
    """Decide on one random split or merge; `key` determines all random numbers.

    With K clusters before the move and q the Dirichlet-multinomial probability of the division, the
    ratio of Hastings is R / ((K + 1) q) for a split and K q / R for a merge: a cluster is drawn
    with probability 1 / K, a pair with 2 / (K (K - 1)), and either of two numberings of the sides
    makes the same division.

    Parameters
    ----------
    target : Target
        Of a Dirichlet process.
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    key : uint64

    Returns
    -------
    Decision
    """
    stream = new_stream(key)
    log_u = math.log(next_uniform(stream))
    n_clusters, order = stats.shape[0], cluster_order(labels, stats)
    is_split = next_uniform(stream) < 0.5
    if not is_split and n_clusters == 1:
        return leave(NOTHING_PROPOSED, 0, 0)
    a = b = order[next_index(stream, n_clusters)]
    if not is_split:
        a, b = draw_two_clusters(order, stream)
    members, mass = members_of(labels, stats, a, b), 0.5 * target.law.strength
    if is_split:
        side = draw_sides_from_prior(members.shape[0], mass, stream)
    else:
        side = sides_to_reach(labels, members, a, b)
    n_left = _n_left(side)
    n_right = side.shape[0] - n_left
    if n_left == 0 or n_right == 0:
        # The proposal is the present partition.
        return leave(SPLITS_PROPOSED, a, b)
    n_split = n_clusters + 1 if is_split else n_clusters
    log_q = math.log(n_split) + log_dirichlet_multinomial(n_left, n_right, mass)
    return decide_by_ratio(target, stats, a, b, members, side, log_q, log_u)
