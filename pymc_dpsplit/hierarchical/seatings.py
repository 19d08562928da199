"""Probability of a partition of rows in groups, with tables and global weights summed out.

Unsigned Stirling numbers s(n, m) a^m / (a (a + 1) .. (a + n - 1)) are the probabilities of m tables
of n rows, eq. (15.5), so that laws of numbers of tables take their place and nothing overflows.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.special import log_rising

# Probabilities of numbers of tables below this are zero.
_NEGLIGIBLE = 1e-80
# Steps to the global weights at which laws of numbers of tables are evaluated; any will do.
_STEPS = 8


class Seatings(NamedTuple):
    """What all numbers of tables of a partition say together.

    Attributes
    ----------
    log_probability : float
        Log probability of the partition, eq. (16.14).
    weights : ndarray of float64, shape (K,)
        Means of the global weights given the partition, eq. (16.15).
    rest : float
        Mean of the weight of the remainder.
    n_tables : ndarray of float64, shape (T + 1,)
        Probability of each number of tables in all groups given the partition.
    """

    log_probability: float
    weights: np.ndarray
    rest: float
    n_tables: np.ndarray


@jitted
def _central_weights(counts, alpha, gamma):
    """Global weights near their means, and the number of tables to expect with them."""
    n_groups, n_clusters = counts.shape
    weights = np.full(n_clusters, 1.0 / (n_clusters + gamma))
    total = 0.0
    for _ in range(_STEPS):
        total = 0.0
        for k in range(n_clusters):
            strength, weights[k] = alpha * weights[k], 0.0
            for j in range(n_groups):
                if counts[j, k] > 0:
                    grown = math.log((strength + counts[j, k] - 0.5) / (strength + 0.5))
                    weights[k] += 1.0 + strength * max(grown, 0.0)
            total += weights[k]
        weights /= total + gamma
    return weights, total


@jitted
def law_of_tables(counts, strength):
    """Probabilities of J', J' + 1, .. tables of one cluster, where J' groups have rows of it.

    Parameters
    ----------
    counts : ndarray of int64, shape (J,)
        Number of rows of each group.
    strength : float
        Alpha times the global weight of the cluster.

    Returns
    -------
    ndarray of float64, shape (L,)
    """
    law = np.zeros(16)
    law[0] = 1.0
    length = 1
    for n in counts:
        for i in range(1, n):
            if length == law.shape[0]:
                longer = np.zeros(2 * length)
                longer[:length] = law
                law = longer
            opening = strength / (strength + i)
            for t in range(length, 0, -1):
                law[t] = law[t] * (1.0 - opening) + law[t - 1] * opening
            law[0] *= 1.0 - opening
            length += 1
            while length > 1 and law[length - 1] < _NEGLIGIBLE:
                length -= 1
                law[length] = 0.0
    return law[:length]


@jitted
def _factor(counts, weight, alpha, scale):
    """Terms Gamma(t) T(t) (alpha / scale)^t of a cluster over t, their least t and log factor."""
    strength, least, log_factor = alpha * weight, 0, 0.0
    for n in counts:
        if n > 0:
            least += 1
            log_factor += log_rising(strength, n)
    terms = law_of_tables(counts, strength)
    highest = -math.inf
    for t in range(terms.shape[0]):
        if terms[t] > 0.0:
            log_weight = math.lgamma(least + t) - (least + t) * math.log(scale * weight)
            terms[t] = math.log(terms[t]) + log_weight
            highest = max(highest, terms[t])
        else:
            terms[t] = -math.inf
    for t in range(terms.shape[0]):
        terms[t] = math.exp(terms[t] - highest)
    return terms, least, log_factor + highest


@jitted
def _convolve(terms, before, length, after):
    """Write the convolution, scaled to a highest value of one; return the log of the scale."""
    for i in range(length):
        for t in range(terms.shape[0]):
            after[i + t] += before[i] * terms[t]
    highest = after.max()
    for i in range(length + terms.shape[0] - 1):
        after[i] /= highest
    return math.log(highest)


@jitted
def seatings_of(counts, alpha, gamma):
    """Sum over all numbers of tables of a partition.

    Parameters
    ----------
    counts : ndarray of int64, shape (J, K)
        Number of rows of each group in each cluster; no cluster is empty.
    alpha, gamma : float

    Returns
    -------
    Seatings
    """
    n_groups, n_clusters = counts.shape
    central, scale = _central_weights(counts, alpha, gamma)
    factors, starts = [], np.zeros(n_clusters + 1, np.int64)
    log_total, least = n_clusters * math.log(gamma), 0
    for k in range(n_clusters):
        terms, of_cluster, log_factor = _factor(counts[:, k], central[k], alpha, scale)
        factors.append((terms, of_cluster))
        log_total, least = log_total + log_factor, least + of_cluster
        starts[k + 1] = starts[k] + terms.shape[0] - 1
    for j in range(n_groups):
        log_total -= log_rising(alpha, counts[j].sum())
    # Terms of the first k clusters by the number of their tables beyond the least.
    sums = np.zeros((n_clusters + 1, starts[n_clusters] + 1))
    sums[0, 0] = 1.0
    for k in range(n_clusters):
        log_total += _convolve(factors[k][0], sums[k], starts[k] + 1, sums[k + 1])
    # Law of the number of tables, and the mean of 1 / (gamma + tables).
    law = np.empty(sums.shape[1])
    for i in range(law.shape[0]):
        tables = least + i
        law[i] = tables * math.log(scale) - log_rising(gamma, tables)
    highest = law.max()
    ahead = np.exp(law - highest)
    law = sums[n_clusters] * ahead
    total = law.sum()
    log_total += highest + math.log(total)
    law /= total
    inverse = 0.0
    for i in range(law.shape[0]):
        inverse += law[i] / (gamma + least + i)
        ahead[i] /= gamma + least + i
    weights = np.empty(n_clusters)
    for k in range(n_clusters - 1, -1, -1):
        weights[k], ahead = _mean_share(factors[k], sums[k], starts[k] + 1, ahead)
    n_tables = np.zeros(least + law.shape[0])
    n_tables[least:] = law
    return Seatings(log_total, weights * inverse, gamma * inverse, n_tables)


@jitted
def _mean_share(factor, before, length, ahead):
    """Mean number of tables of a cluster, and what lies ahead of the clusters before it."""
    terms, least = factor
    of_before = np.zeros(length)
    total, first = 0.0, 0.0
    for i in range(length):
        tables = 0.0
        for t in range(terms.shape[0]):
            mass = terms[t] * ahead[i + t]
            of_before[i] += mass
            tables += mass * (least + t)
        total += before[i] * of_before[i]
        first += before[i] * tables
    return first / total, of_before / of_before.max()
