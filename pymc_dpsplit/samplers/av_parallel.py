"""Processors by auxiliary variables (Williamson, Dubey & Xing 2013), or super-clusters.

A Dirichlet process is a mixture of P processes with concentrations alpha mu_p, whose weights are
Dirichlet(alpha mu_1, .., alpha mu_P), where mu_1 + .. + mu_P = 1.  Every observation has a
processor, and a cluster lives on one.  Given the processors the processes are independent, and each
is sampled on its own.  Then whole clusters change their processors.

Given the partition the processors are independent, p with probability mu_p: p(z, processors) has
the factor alpha mu_p for each cluster where p(z) has alpha, and all else is the same.  With equal
shares, mu_p = 1 / P, this is the sampler of the paper; uneven ones are those of size-biased
super-clusters.  The paper accepts a redraw with a
ratio from Ewens' formula instead, which is the law of the sizes of clusters and not of clusters.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.kernels.rows import copy_row
from pymc_dpsplit.moves.cluster_order import cluster_order, sort_keys
from pymc_dpsplit.moves.collapsed.scan import collapsed_scan, log_densities_alone
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.target import Target

# Processors P by default, and settings that are no shares.
N_PROCESSORS, N_SETTINGS = 4, 2


@jitted
def shares_of(settings):
    """Share of every processor, of sum 1: those given, or equal ones for so many processors.

    Parameters
    ----------
    settings : ndarray of float64, shape (2,) or (2 + P,)
        Number of processors, whether the published ratio decides, then shares if there are any.

    Returns
    -------
    ndarray of float64, shape (P,)
    """
    if settings.shape[0] > N_SETTINGS:
        return settings[N_SETTINGS:] / settings[N_SETTINGS:].sum()
    n_processors = int(settings[0])
    return np.full(n_processors, 1.0 / n_processors)


@jitted
def draw_processors(labels, stats, shares, rng):
    """Draw the processor of every cluster, with its share as probability.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    shares : ndarray of float64, shape (P,)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    processors = np.empty(stats.shape[0], np.int64)
    for k in cluster_order(labels, stats):
        processors[k] = categorical_at(rng.random(), shares)
    return processors


@jitted
def log_factorials(sizes, processors):
    """Log of the product over processors and sizes of a!, a clusters of that size being there.

    Parameters
    ----------
    sizes : ndarray of float64, shape (K,)
    processors : ndarray of int64, shape (K,)

    Returns
    -------
    float
    """
    # Each cluster of equal size and processor before it multiplies a! by one more number.
    order, total, first = sort_keys(sizes), 0.0, 0
    for p in range(order.shape[0]):
        if sizes[order[p]] > sizes[order[first]]:
            first = p
        n_equal = 1.0
        for q in range(first, p):
            n_equal += processors[order[q]] == processors[order[p]]
        total += math.log(n_equal)
    return total


@jitted
def published_processors(labels, stats, processors, shares, rng):
    """Propose processors, and accept them with the ratio of the paper, eq. 5.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    processors : ndarray of int64, shape (K,)
    shares : ndarray of float64, shape (P,)
        All equal.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    proposed = draw_processors(labels, stats, shares, rng)
    sizes = stats[:, 0].copy()
    log_ratio = log_factorials(sizes, processors) - log_factorials(sizes, proposed)
    return proposed if math.log1p(-rng.random()) < log_ratio else processors


@jitted
def local_labels(labels, processors, p):
    """Labels of the observations of a processor among its clusters, and -1 for all others.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    processors : ndarray of int64, shape (K,)
    p : int

    Returns
    -------
    own : ndarray of int32, shape (N,)
    clusters : ndarray of int64, shape (K_p,)
        The clusters of the processor.
    rows : ndarray of int64, shape (N_p,)
        Its observations.
    """
    number, n_clusters = np.full(processors.shape[0], -1), 0
    clusters = np.empty(processors.shape[0], np.int64)
    for k in range(processors.shape[0]):
        if processors[k] == p:
            number[k], clusters[n_clusters] = n_clusters, k
            n_clusters += 1
    own, rows, n_rows = np.empty_like(labels), np.empty(labels.shape[0], np.int64), 0
    for i in range(labels.shape[0]):
        own[i] = number[labels[i]]
        if own[i] >= 0:
            rows[n_rows] = i
            n_rows += 1
    return own, clusters[:n_clusters], rows[:n_rows]


@jitted
def local_sweeps(target, labels, stats, processors, shares, log_alone, rng):
    """Redraw the label of every observation among the clusters of its processor, and new ones.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    processors : ndarray of int64, shape (K,)
    shares : ndarray of float64, shape (P,)
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities of the observations.
    rng : numpy.random.Generator

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    processors : ndarray of int64, shape (K',)
    """
    prior, data, law = target
    found, n_found = np.empty_like(labels), 0
    lives_on = np.empty(labels.shape[0], np.int64)
    for p in range(shares.shape[0]):
        own, clusters, rows = local_labels(labels, processors, p)
        if rows.shape[0] == 0:
            continue
        local = Target(prior, data, PartitionLaw(law.discount, law.strength * shares[p]))
        own_stats = np.empty((clusters.shape[0], stats.shape[1]))
        for c in range(clusters.shape[0]):
            copy_row(stats[clusters[c]], own_stats[c])
        own_stats = collapsed_scan(local, own, own_stats, rng, rows, log_alone[rows])
        for i in rows:
            found[i] = n_found + own[i]
        lives_on[n_found : n_found + own_stats.shape[0]] = p
        n_found += own_stats.shape[0]
    copy_row(found, labels)
    return gather_stats(prior, data, labels, n_found), lives_on[:n_found].copy()


@jitted
def iterate_av_parallel(
    target, labels, stats, generator, schedule, acceptance_counts, of_rows, of_clusters
):
    """Run iterations, see `KernelForm`; what is kept are the processors of the clusters.

    For ``schedule.settings`` see `shares_of`.
    """
    rng = open_generator(generator)
    atoms, shares = no_atoms(target.prior), shares_of(schedule.settings)
    log_alone = log_densities_alone(target.prior, target.data, np.arange(labels.shape[0]))
    if of_clusters.shape[0] > 0:
        processors = of_clusters[:, 0].astype(np.int64)
    else:
        processors = draw_processors(labels, stats, shares, rng)
    for _ in range(schedule.n_iterations):
        stats, processors = local_sweeps(target, labels, stats, processors, shares, log_alone, rng)
        if schedule.settings[1] != 0.0:
            processors = published_processors(labels, stats, processors, shares, rng)
        else:
            processors = draw_processors(labels, stats, shares, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    kept = np.empty((stats.shape[0], 1))
    kept[:, 0] = processors
    return stats, of_rows, kept
