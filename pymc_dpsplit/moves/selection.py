"""Which cluster to split and which pair to merge, with the probability of the choice.

A cluster is chosen for a split in proportion to its size.  A pair is chosen for a merge by how
little evidence per observation is lost by joining it, eq. (13).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import log_marginal
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.kernels.streams import next_index, next_uniform

# Keeps every pair possible, however bad.
_AFFINITY_FLOOR = 1e-4


@kernel
def log_marginals(prior, stats):
    """Log marginal likelihood of every cluster."""
    out = np.empty(stats.shape[0])
    for k in range(out.shape[0]):
        out[k] = log_marginal(prior, stats[k])
    return out


@kernel
def fill_affinities(prior, stats, log_m, a, out):
    """Affinity of cluster a to every other, 0 to itself; returns their sum."""
    total = 0.0
    for b in range(stats.shape[0]):
        out[b] = 0.0
        if b != a:
            lost = log_m[a] + log_m[b] - log_marginal(prior, stats[a] + stats[b])
            out[b] = _AFFINITY_FLOOR + math.exp(-max(0.0, lost) / min(stats[a, 0], stats[b, 0]))
            total += out[b]
    return total


@kernel
def draw_pair(prior, stats, log_m, stream):
    """Draw a pair to merge: one uniformly, the other by affinity to it."""
    n_clusters = stats.shape[0]
    affinity = np.empty(n_clusters)
    a = next_index(stream, n_clusters)
    fill_affinities(prior, stats, log_m, a, affinity)
    return a, np.int64(categorical_at(next_uniform(stream), affinity))


@kernel
def log_pair_probability(prior, stats, log_m, a, b):
    """Log probability that `draw_pair` gives the unordered pair {a, b}, eq. (13)."""
    n_clusters = stats.shape[0]
    affinity = np.empty(n_clusters)
    total_a = fill_affinities(prior, stats, log_m, a, affinity)
    s = affinity[b]
    total_b = fill_affinities(prior, stats, log_m, b, affinity)
    return math.log((s / total_a + s / total_b) / n_clusters)


@kernel
def draw_cluster(stats, stream):
    """Draw a cluster to split, in proportion to its size."""
    return np.int64(categorical_at(next_uniform(stream), stats[:, 0]))
