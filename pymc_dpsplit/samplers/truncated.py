"""Blocked Gibbs sampling of truncated sticks (Ishwaran & James 2001).

The random measure has T atoms: the first T - 1 sticks of the Dirichlet process in their order, and
one atom with all that they leave.  Given the positions of the observations, sticks and parameters
are independent; given these, so are the positions.

Exact for this measure, whose partitions have another law than those of the process.
"""

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, params_size
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.cluster_order import sort_keys
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.redraw import choose_atoms
from pymc_dpsplit.samplers.free_parameters import move_free_parameters
from pymc_dpsplit.samplers.sticks import (
    draw_sticks,
    kept_positions,
    number_atoms,
    positions_to_keep,
)

# Atoms T by default.
TRUNCATION = 20


@jitted
def _ranks(positions):
    """Rank of every cluster by its position, which are all different, shape (K,)."""
    order = sort_keys(positions.astype(np.float64))
    ranks = np.empty(positions.shape[0], np.int64)
    for p in range(positions.shape[0]):
        ranks[order[p]] = p
    return ranks


@jitted
def within_truncation(target, labels, stats, positions, n_atoms, rng):
    """Move clusters whose positions are beyond the last atom to atoms that are left.

    Clusters keep their order.  If there are more of them than atoms, the last ones in the order
    become one cluster, with the parameters of the first of these if they are not drawn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed if clusters are joined.
    stats : ndarray of float64, shape (K, S)
    positions : ndarray of int64, shape (K,)
    n_atoms : int
    rng : numpy.random.Generator

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    positions : ndarray of int64, shape (K',)
        All below `n_atoms`.
    """
    n_clusters = positions.shape[0]
    if positions.max() < n_atoms:
        return stats, positions
    ranks = _ranks(positions)
    if n_clusters <= n_atoms:
        for k in range(n_clusters):
            ranks[k] = min(positions[k], n_atoms - n_clusters + ranks[k])
        return stats, ranks
    params = np.empty((n_atoms, params_size(target.prior)))
    for k in range(n_clusters):
        if ranks[k] < n_atoms:
            draw_parameters(target.prior, stats[k], rng, params[ranks[k]])
    for i in range(labels.shape[0]):
        labels[i] = min(ranks[labels[i]], n_atoms - 1)
    return number_atoms(target.prior, target.data, labels, params)


@jitted
def close_sticks(log_weights, log_rest):
    """Give the last atom what all further sticks would have.

    Parameters
    ----------
    log_weights : ndarray of float64, shape (T,)
        Changed.
    log_rest : float
        Log weight of the sticks that would follow.
    """
    last = log_weights.shape[0] - 1
    log_weights[last] = np.logaddexp(log_weights[last], log_rest)


@jitted
def truncated_sweep(target, labels, stats, positions, n_atoms, rng):
    """Redraw sticks, parameters and positions.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
        Of a family that is not conjugate: with the parameters, which are not drawn.
    positions : ndarray of int64, shape (K,)
        All below `n_atoms`.
    n_atoms : int
        Level T of the truncation.
    rng : numpy.random.Generator

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    positions : ndarray of int64, shape (K',)
    """
    prior, data = target.prior, target.data
    log_weights, log_rest, params = draw_sticks(target, stats, positions, n_atoms, rng)
    close_sticks(log_weights, log_rest)
    choose_atoms(prior, data, labels, draw_key(rng), log_weights, params)
    return number_atoms(prior, data, labels, params)


@jitted
def iterate_truncated(
    target, labels, stats, generator, schedule, acceptance_counts, of_rows, of_clusters
):
    """Run sweeps, see `KernelForm`; what is kept are the positions.

    ``schedule.settings`` has the level of the truncation.
    """
    rng = open_generator(generator)
    atoms, n_atoms = no_atoms(target.prior), int(schedule.settings[0])
    for _ in range(schedule.n_iterations):
        positions = kept_positions(target.law, labels, stats, of_clusters, rng)
        stats, positions = within_truncation(target, labels, stats, positions, n_atoms, rng)
        stats, positions = truncated_sweep(target, labels, stats, positions, n_atoms, rng)
        stats = move_free_parameters(target.prior, target, labels, stats, rng)
        of_clusters = positions_to_keep(target.law, positions)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats, of_rows, of_clusters
