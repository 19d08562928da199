"""Particles: partitions of the first observations, weighted, extended one observation at a time.

Sequential Monte Carlo with weights and parameters integrated out.  A particle takes the next
observation into one of its clusters, or a new one, with the probabilities of a collapsed sweep,
and its weight is multiplied by their normaliser, the predictive density of the observation.  That
does not depend on the choice, so that particles are resampled before it.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_predictive,
    log_predictive,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.kernels.rows import copy_row, copy_rows
from pymc_dpsplit.kernels.special import log_rising
from pymc_dpsplit.moves.partition_law import log_founding_factor, log_joining_factor

# Particles are resampled if they are worth fewer than this share of them.
_LEAST_SHARE = 0.5


@jitted
def log_masses(target, i, stats, caches, n_clusters, log_alone, out):
    """Write the log masses with which an observation joins the clusters of a particle, or none.

    Parameters
    ----------
    target : Target
    i : int
    stats : ndarray of float64, shape (C, S)
    caches : ndarray of float64, shape (C, P)
        Predictive densities of the clusters.
    n_clusters : int
        K <= C.
    log_alone : float
        Log prior predictive density of the observation.
    out : ndarray of float64, shape (>= K + 1,)
        Overwritten.

    Returns
    -------
    float
        Log of the sum of the masses.
    """
    prior, data, law = target
    n_joining = multiplicity(prior, data, i)
    for k in range(n_clusters):
        out[k] = log_joining_factor(law, stats[k, 0], n_joining)
        out[k] += log_predictive(prior, data, i, caches[k])
    out[n_clusters] = log_founding_factor(law, n_clusters, n_joining) + log_alone
    highest, total = out[: n_clusters + 1].max(), 0.0
    for k in range(n_clusters + 1):
        total += math.exp(out[k] - highest)
    return highest + math.log(total)


@jitted
def resampled(log_weights, u):
    """Choose which particles to copy, by systematic resampling.

    Parameters
    ----------
    log_weights : ndarray of float64, shape (M,)
        Of sum one.
    u : float
        Uniform.

    Returns
    -------
    ndarray of int64, shape (M,)
        For each particle the one that takes its place; a particle that is chosen at all stays
        where it is.
    """
    n, above, total = log_weights.shape[0], 0, 0.0
    copies = np.zeros(n, np.int64)
    for p in range(n):
        total += math.exp(log_weights[p]) * n
        while above < n and above + u < total:
            copies[p] += 1
            above += 1
    # What rounding leaves goes to the last one.
    copies[n - 1] += n - above
    source, q = np.arange(n), 0
    for p in range(n):
        if copies[p] > 0:
            continue
        while copies[q] < 2:
            q += 1
        source[p] = q
        copies[q] -= 1
    return source


@jitted
def _log_sum(log_weights):
    highest = log_weights.max()
    return highest + math.log(np.exp(log_weights - highest).sum())


@jitted
def _with_room(values):
    """Copy of particles with twice as many slots for clusters."""
    longer = np.zeros((values.shape[0], 2 * values.shape[1], values.shape[2]))
    for p in range(values.shape[0]):
        copy_rows(values[p], longer[p])
    return longer


@jitted
def _take_in(target, i, u, log_mass, labels, stats, caches, n_clusters):
    """Draw the cluster of an observation in one particle; return the number of its clusters."""
    prior, data = target.prior, target.data
    k = categorical_at(u, np.exp(log_mass[: n_clusters + 1] - log_mass[: n_clusters + 1].max()))
    if k == n_clusters:
        stats[k, :] = 0.0
    add_row(prior, data, i, stats[k])
    fill_predictive(prior, stats[k], caches[k])
    labels[i] = k
    return max(n_clusters, k + 1)


@jitted
def run_particles(target, order, log_alone, n_particles, generator):
    """Run particles through all observations.

    Parameters
    ----------
    target : Target
        Of a conjugate family, and a Dirichlet process.
    order : ndarray of int64, shape (N,)
        In which observations are taken in.
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities.
    n_particles : int
        M.
    generator : result of `address_of`, or numpy.random.Generator

    Returns
    -------
    labels : ndarray of int32, shape (M, N)
    log_weights : ndarray of float64, shape (M,)
        Of sum one.
    log_evidence : float
        Log of an unbiased estimate of the marginal likelihood.
    n_resampled : int
        How often the particles were resampled.
    """
    rng, prior, n = open_generator(generator), target.prior, n_particles
    labels, n_clusters = np.zeros((n, order.shape[0]), np.int32), np.zeros(n, np.int64)
    stats = np.zeros((n, 8, stats_size(prior)))
    caches = np.zeros((n, 8, predictive_size(prior)))
    log_mass, log_weights = np.empty((n, 9)), np.full(n, -math.log(n))
    log_evidence, n_before, n_resampled = 0.0, 0.0, 0
    for i in order:
        if n_clusters.max() == stats.shape[1]:
            stats, caches = _with_room(stats), _with_room(caches)
            log_mass = np.empty((n, stats.shape[1] + 1))
        for p in range(n):
            log_weights[p] += log_masses(
                target, i, stats[p], caches[p], n_clusters[p], log_alone[i], log_mass[p]
            )
        log_total = _log_sum(log_weights)
        log_weights -= log_total
        n_after = n_before + multiplicity(prior, target.data, i)
        log_evidence += log_total
        log_evidence -= log_rising(target.law.strength + n_before, float(n_after - n_before))
        n_before = n_after
        if 1.0 / np.exp(2.0 * log_weights).sum() < _LEAST_SHARE * n:
            source, n_resampled = resampled(log_weights, rng.random()), n_resampled + 1
            log_weights[:] = -math.log(n)
            for p in range(n):
                if source[p] != p:
                    copy_row(labels[source[p]], labels[p])
                    copy_rows(stats[source[p]], stats[p])
                    copy_rows(caches[source[p]], caches[p])
                    copy_row(log_mass[source[p]], log_mass[p])
                    n_clusters[p] = n_clusters[source[p]]
        for p in range(n):
            n_clusters[p] = _take_in(
                target, i, rng.random(), log_mass[p], labels[p], stats[p], caches[p], n_clusters[p]
            )
    return labels, log_weights, log_evidence, n_resampled
