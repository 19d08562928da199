"""The state of the partition, and what every move needs of it.

`labels` (N,) int32 holds the cluster 0 .. K - 1 of each observation; `stats` (K, S) holds the
sufficient statistics of the clusters, element 0 the size.  Labels are changed in place, a
changed `stats` is a new array.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import add_row, log_marginal, stats_size
from pymc_dpsplit.kernels.jit import kernel


@kernel
def gather_stats(prior, data, labels, n_clusters):
    """Sufficient statistics of every cluster, computed afresh."""
    stats = np.zeros((n_clusters, stats_size(prior)))
    for i in range(labels.shape[0]):
        add_row(prior, data, i, stats[labels[i]])
    return stats


@kernel
def members_of(labels, stats, a, b):
    """Indices of the observations in cluster a or b (a == b for one cluster), ascending."""
    size = stats[a, 0] if a == b else stats[a, 0] + stats[b, 0]
    members = np.empty(np.int64(size), np.int64)
    at = 0
    for i in range(labels.shape[0]):
        if labels[i] == a or labels[i] == b:
            members[at] = i
            at += 1
    return members


@kernel
def log_split_ratio(prior, alpha, left, right, union):
    """Log ratio of the posterior with `union` split to that with it whole, eq. (7).

    The arguments `left`, `right` and `union` are statistics, left + right == union.
    """
    return (
        math.log(alpha)
        + math.lgamma(left[0])
        + math.lgamma(right[0])
        - math.lgamma(union[0])
        + log_marginal(prior, left)
        + log_marginal(prior, right)
        - log_marginal(prior, union)
    )


@kernel
def apply_split(labels, stats, cluster, members, side, left, right):
    """Give the members with side 1 a new cluster; return the new statistics."""
    n_clusters = stats.shape[0]
    for j in range(members.shape[0]):
        if side[j] == 1:
            labels[members[j]] = n_clusters
    changed = np.empty((n_clusters + 1, stats.shape[1]))
    changed[:n_clusters] = stats
    changed[cluster] = left
    changed[n_clusters] = right
    return changed


@kernel
def apply_merge(labels, stats, a, b):
    """Join cluster b to a, give the last cluster the label b; return the new statistics."""
    last = stats.shape[0] - 1
    keep, gone = min(a, b), max(a, b)
    for i in range(labels.shape[0]):
        if labels[i] == gone:
            labels[i] = keep
        elif labels[i] == last:
            labels[i] = gone
    changed = stats[:last].copy()
    changed[keep] = stats[keep] + stats[gone]
    if gone != last:
        changed[gone] = stats[last]
    return changed


@kernel
def log_n_clusters(n_clusters, n_obs, alpha):
    """Log probability of a partition as a function of alpha, weights summed out, eq. (38)."""
    return math.lgamma(alpha) - math.lgamma(alpha + n_obs) + n_clusters * math.log(alpha)


@kernel
def log_joint(prior, stats, alpha):
    """Log density of data and partition, weights and parameters summed out, eq. (4).

    Terms are added in order of size: the same partition gives the same number however its
    clusters are numbered, or ranks of draws would tell chains apart by rounding.
    """
    n_clusters = stats.shape[0]
    terms = np.empty(n_clusters)
    for k in range(n_clusters):
        terms[k] = math.lgamma(stats[k, 0]) + log_marginal(prior, stats[k])
    n_obs = stats[:, 0].sum()
    return log_n_clusters(n_clusters, n_obs, alpha) + np.sort(terms).sum()


@kernel
def entropy(stats):
    """Entropy of the partition in nats: minus the sum of p log p of the cluster shares.

    Added in order of size, for the reason given at `log_joint`.
    """
    sizes = np.sort(stats[:, 0])
    n_obs = sizes.sum()
    total = 0.0
    for k in range(sizes.shape[0]):
        share = sizes[k] / n_obs
        total -= share * math.log(share)
    return total
