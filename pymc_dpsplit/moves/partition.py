"""State of the partition and the operations on it that moves share.

`labels` (N,) int32 holds the cluster 0 .. K - 1 of each observation; `stats` (K, S) holds the
sufficient statistics of the clusters, element 0 the size.  Labels are changed in place; a
changed `stats` is a new array.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import add_row, log_marginal, stats_size
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row, copy_rows, first_column_sum
from pymc_dpsplit.kernels.sorting import ascending, sum_by_size
from pymc_dpsplit.moves.partition_law import (
    log_cluster_factor,
    log_number_factor,
    log_opening_mass,
    log_split_factor_given,
)


@jitted
def gather_stats(prior, data, labels, n_clusters):
    """Compute the sufficient statistics of every cluster from its observations.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    n_clusters : int

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    stats = np.zeros((n_clusters, stats_size(prior)))
    for i in range(labels.shape[0]):
        add_row(prior, data, i, stats[labels[i]])
    return stats


@jitted
def members_of(labels, stats, a, b):
    """Indices of the observations in cluster a or b, ascending; a == b for one cluster.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    a, b : int

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    size = stats[a, 0] if a == b else stats[a, 0] + stats[b, 0]
    # A label may stand for several observations of the process, which are what sizes count.
    members = np.empty(min(np.int64(size), labels.shape[0]), np.int64)
    at = 0
    for i in range(labels.shape[0]):
        if labels[i] == a or labels[i] == b:
            members[at] = i
            at += 1
    return members[:at]


@jitted
def log_split_ratio(target, n_clusters, left, right, union):
    """Log ratio of the posterior with `union` split to that with it whole, eq. (3.1).

    Parameters
    ----------
    target : Target
    n_clusters : int
        Number of clusters with `union` whole.
    left : ndarray of float64, shape (S,)
        Sufficient statistics, left + right == union.
    right : ndarray of float64, shape (S,)
        Sufficient statistics, left + right == union.
    union : ndarray of float64, shape (S,)
        Sufficient statistics, left + right == union.

    Returns
    -------
    float
    """
    log_opening = log_opening_mass(target.law, n_clusters)
    return log_split_ratio_given(target, log_opening, left, right, union)


@jitted
def log_split_ratio_given(target, log_opening, left, right, union):
    """Compute `log_split_ratio` given the log of the mass with which the new cluster is opened."""
    return (
        log_split_factor_given(target.law, log_opening, left[0], right[0])
        + log_marginal(target.prior, left)
        + log_marginal(target.prior, right)
        - log_marginal(target.prior, union)
    )


@jitted
def apply_split(labels, stats, cluster, members, side, left, right):
    """Move the members on side 1 to a new cluster; return the new statistics.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    cluster : int
    members : ndarray of int64, shape (n,)
    side : ndarray of int8, shape (n,)
    left : ndarray of float64, shape (S,)
        Sufficient statistics of sides 0 and 1.
    right : ndarray of float64, shape (S,)
        Sufficient statistics of sides 0 and 1.

    Returns
    -------
    ndarray of float64, shape (K + 1, S)
    """
    n_clusters = stats.shape[0]
    for j in range(members.shape[0]):
        if side[j] == 1:
            labels[members[j]] = n_clusters
    changed = np.empty((n_clusters + 1, stats.shape[1]))
    copy_rows(stats, changed)
    copy_row(left, changed[cluster])
    copy_row(right, changed[n_clusters])
    return changed


@jitted
def apply_merge(labels, stats, a, b):
    """Merge two clusters under the smaller number; the last cluster takes the larger number.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    a, b : int

    Returns
    -------
    ndarray of float64, shape (K - 1, S)
    """
    last = stats.shape[0] - 1
    keep, gone = min(a, b), max(a, b)
    for i in range(labels.shape[0]):
        if labels[i] == gone:
            labels[i] = keep
        elif labels[i] == last:
            labels[i] = gone
    changed = stats[:last].copy()
    for j in range(stats.shape[1]):
        changed[keep, j] = stats[keep, j] + stats[gone, j]
    if gone != last:
        copy_row(stats[last], changed[gone])
    return changed


@jitted
def log_joint(target, stats):
    """Log density of data and partition, weights and parameters integrated out, eq. (1.4).

    Terms are added in order of size, so that renumbering the clusters does not change the result;
    otherwise rank statistics would distinguish chains by rounding errors.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    float
    """
    prior, law = target.prior, target.law
    n_clusters = stats.shape[0]
    terms = np.empty(n_clusters)
    for k in range(n_clusters):
        terms[k] = log_cluster_factor(law, stats[k, 0]) + log_marginal(prior, stats[k])
    n_obs = first_column_sum(stats)
    return log_number_factor(law, n_clusters, n_obs) + sum_by_size(terms)


@jitted
def entropy(stats):
    """Entropy of the partition in nats: minus the sum of p log p over the shares p of the clusters.

    Terms are added in order of size, for the reason given in `log_joint`.

    Parameters
    ----------
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    float
    """
    sizes = stats[:, 0].copy()
    n_obs = first_column_sum(stats)
    total = 0.0
    for k in ascending(sizes):
        share = sizes[k] / n_obs
        total -= share * math.log(share)
    return total
