"""Slice sampling of sticks in their order (Walker 2007; Kalli, Griffin & Walker 2011).

Given the positions of the observations, the sticks are beta variables.  Given the sticks, each
observation gets a slice u, uniform below the weight of its stick, and then a new position among the
sticks heavier than u, with probability proportional to its density there.
"""

import math

import numpy as np

from pymc_dpsplit.components.optional import begin_tile, find_table
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key, hash_uniform
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch
from pymc_dpsplit.moves.measure import break_remainder, no_atoms
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.all_atoms import fill_masses, new_masses
from pymc_dpsplit.moves.sweep.density import add_log_factors
from pymc_dpsplit.moves.sweep.tile_labels import choose_in_tile
from pymc_dpsplit.samplers.free_parameters import move_free_parameters
from pymc_dpsplit.samplers.sticks import (
    draw_sticks,
    kept_positions,
    number_atoms,
    positions_to_keep,
)

# Above it a sweep breaks more than a million sticks.
MOST_STRENGTH = 1e5


@jitted
def draw_slices(labels, positions, log_weights, key):
    """Draw the slice of every observation, uniform below the weight of its stick.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    positions : ndarray of int64, shape (K,)
    log_weights : ndarray of float64, shape (J,)
    key : uint64

    Returns
    -------
    ndarray of float64, shape (N,)
        Logarithms.
    """
    log_slices = np.empty(labels.shape[0])
    for i in range(labels.shape[0]):
        log_slices[i] = math.log(hash_uniform(key, i)) + log_weights[positions[labels[i]]]
    return log_slices


@jitted
def choose_within_slices(prior, data, labels, key, log_slices, log_weights, params):
    """Draw the stick of every observation among those above its slice, by density.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by rows of `params`.
    key : uint64
    log_slices : ndarray of float64, shape (N,)
    log_weights : ndarray of float64, shape (J,)
    params : ndarray of float64, shape (J, P)
    """
    n_obs, n_sticks = labels.shape[0], log_weights.shape[0]
    # The slice replaces one factor of the weight; an observation that stands for several of the
    # process has others.
    weighted = add_log_factors(prior, params, np.zeros(n_sticks), log_weights)
    rows, chosen = new_rows(), new_rows()
    tile, scratch = begin_tile(prior, data), new_scratch(4)
    table = find_table(prior, weighted)
    log_mass = new_masses(table, n_sticks, 1)
    for first in range(0, n_obs, TILE):
        fill_masses(prior, data, first, weighted, table, rows, tile, log_mass, scratch)
        for j in range(n_sticks):
            for t in range(TILE):
                if log_weights[j] <= log_slices[rows[t]]:
                    log_mass[0, j, t] = -np.inf
        choose_in_tile(log_mass[0], n_sticks, rows, key, chosen, scratch)
        for t in range(min(TILE, n_obs - first)):
            labels[first + t] = chosen[t]


@jitted
def slice_sweep_of_sticks(target, labels, stats, positions, rng):
    """Redraw sticks, parameters, slices and positions.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
        Of a family that is not conjugate: with the parameters, which are not drawn.
    positions : ndarray of int64, shape (K,)
    rng : numpy.random.Generator

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    positions : ndarray of int64, shape (K',)
    """
    prior, data = target.prior, target.data
    n_sticks = positions.max() + 1
    log_weights, log_rest, params = draw_sticks(target, stats, positions, n_sticks, rng)
    log_slices = draw_slices(labels, positions, log_weights, draw_key(rng))
    log_weights, params, _ = break_remainder(
        target, rng, log_weights, log_rest, params, log_slices.min()
    )
    choose_within_slices(prior, data, labels, draw_key(rng), log_slices, log_weights, params)
    return number_atoms(prior, data, labels, params)


@jitted
def iterate_slice(
    target, labels, stats, generator, schedule, acceptance_counts, of_rows, of_clusters
):
    """Run sweeps, see `KernelForm`; what is kept are the positions."""
    rng = open_generator(generator)
    atoms = no_atoms(target.prior)
    for _ in range(schedule.n_iterations):
        positions = kept_positions(target.law, labels, stats, of_clusters, rng)
        stats, positions = slice_sweep_of_sticks(target, labels, stats, positions, rng)
        stats = move_free_parameters(target.prior, target, labels, stats, rng)
        of_clusters = positions_to_keep(target.law, positions)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
        if target.law.strength > MOST_STRENGTH:
            # The next draw refuses it.
            break
    return stats, of_rows, of_clusters
