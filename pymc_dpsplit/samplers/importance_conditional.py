"""Importance conditional sampling (Canale, Corradin & Nipoti 2022).

Given the partition, the random measure is a Dirichlet draw over the clusters and a remainder, and
within the remainder a process of the same kind.  Of that process m values are drawn by its urn, and
they stand for it: an observation goes to a cluster, or to one of the distinct values, with
probability proportional to weight times density.

Not exact for finite m: m values are not the process that they are drawn from.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, stats_size
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import lengthened, with_more_rows
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import draw_measure, no_atoms
from pymc_dpsplit.moves.partition_law import draw_seats, remainder_law
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.redraw import choose_atoms
from pymc_dpsplit.samplers.free_parameters import move_free_parameters
from pymc_dpsplit.samplers.sticks import number_atoms

# Values m drawn from the remainder; 10 is the default of the authors' package BNPmix.
N_VALUES = 10


@jitted
def with_values(target, log_weights, log_rest, params, n_values, rng):
    """Append the distinct values of a sample from the remainder, with their shares of its weight.

    Parameters
    ----------
    target : Target
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder.
    params : ndarray of float64, shape (K, P)
    n_values : int
        Size m of the sample.
    rng : numpy.random.Generator

    Returns
    -------
    log_weights : ndarray of float64, shape (K + M,)
        A value that occurs m_j times has the share m_j / m of the weight.
    params : ndarray of float64, shape (K + M, P)
    """
    n_clusters = log_weights.shape[0]
    if log_rest == -np.inf:
        return log_weights, params
    seats = draw_seats(remainder_law(target.law, n_clusters), n_values, rng)
    n_distinct = seats.max() + 1
    counts = np.zeros(n_distinct)
    for j in range(n_values):
        counts[seats[j]] += 1.0
    log_weights = lengthened(log_weights, n_distinct)
    params = with_more_rows(params, n_distinct)
    empty = np.zeros(stats_size(target.prior))
    for j in range(n_distinct):
        log_weights[n_clusters + j] = log_rest + math.log(counts[j] / n_values)
        draw_parameters(target.prior, empty, rng, params[n_clusters + j])
    return log_weights, params


@jitted
def importance_sweep(target, labels, stats, rng, n_values=N_VALUES):
    """Draw weights, parameters and values of the remainder, then redraw every label.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
        Of a family that is not conjugate: with the parameters, which are not drawn.
    rng : numpy.random.Generator
    n_values : int
        Size m of the sample that stands for the remainder.

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    order = cluster_order(labels, stats)
    log_weights, log_rest, params = draw_measure(target, stats, rng, order)
    log_weights, params = with_values(target, log_weights, log_rest, params, n_values, rng)
    choose_atoms(target.prior, target.data, labels, draw_key(rng), log_weights, params)
    return number_atoms(target.prior, target.data, labels, params)[0]


@jitted
def iterate_ics(target, labels, stats, generator, schedule, acceptance_counts):
    """Run sweeps, see `KernelForm`; ``schedule.settings`` has the number of values m."""
    rng = open_generator(generator)
    atoms, n_values = no_atoms(target.prior), int(schedule.settings[0])
    for _ in range(schedule.n_iterations):
        stats = importance_sweep(target, labels, stats, rng, n_values)
        stats = move_free_parameters(target.prior, target, labels, stats, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats
