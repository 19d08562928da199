"""Gibbs sampling with auxiliary parameters: algorithm 8 of Neal (2000).

Weights are integrated out and the parameters of the clusters instantiated, so that no conjugacy is
needed.  An observation joins a cluster with n other members with probability proportional to n
times its density there, or one of m auxiliary clusters, with alpha / m times its density there.
Their parameters are drawn anew for every observation from the base measure; those of a cluster that
the observation leaves empty are the first of them.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    draw_parameters,
    fill_log_density,
    load_tile,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.nonconjugate.compiled_prior import keep_parameters
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.kernels.rows import copy_row, lengthened, with_free_slots, with_more_rows
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import log_founding_factor, log_joining_factor
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.samplers.free_parameters import move_free_parameters

# Auxiliary clusters m.
N_AUXILIARY = 3


class Clusters(NamedTuple):
    """Clusters of a sweep, in slots that are occupied or free.

    Attributes
    ----------
    slots : ndarray of int64, shape (capacity,)
        The occupied slots come first.
    sizes : ndarray of float64, shape (capacity,)
    params : ndarray of float64, shape (capacity, P)
    log_density : ndarray of float64, shape (capacity, TILE)
        Of the observations of the present tile.
    """

    slots: np.ndarray
    sizes: np.ndarray
    params: np.ndarray
    log_density: np.ndarray


class Auxiliary(NamedTuple):
    """Auxiliary clusters of one observation, and workspace.

    Attributes
    ----------
    params : ndarray of float64, shape (m, P)
    log_density : ndarray of float64, shape (m, TILE)
    empty : ndarray of float64, shape (S,)
        Statistics of a cluster without members.
    scratch : ndarray of float64, shape (4 * TILE,)
    """

    params: np.ndarray
    log_density: np.ndarray
    empty: np.ndarray
    scratch: np.ndarray


@jitted
def matrix_of_tiles(n_rows):
    """Workspace for the densities of a tile under so many clusters, shape (n_rows, TILE)."""
    return new_scratch(n_rows).reshape(n_rows, TILE)


@jitted
def begin_clusters(prior, labels, stats, rng):
    """Draw the parameters of the clusters; return them in slots, with room for a tile of others."""
    capacity = stats.shape[0] + TILE
    order = cluster_order(labels, stats)
    slots, sizes = np.arange(capacity), np.zeros(capacity)
    # So that neither the draws nor the new numbers of clusters depend on the old numbers.
    copy_row(order, slots)
    params = np.zeros((capacity, params_size(prior)))
    for k in order:
        sizes[k] = stats[k, 0]
        draw_parameters(prior, stats[k], rng, params[k])
    return Clusters(slots, sizes, params, matrix_of_tiles(capacity))


@jitted
def with_room(clusters, n_clusters):
    """Double the slots if those that are free are fewer than the observations of a tile."""
    capacity = clusters.slots.shape[0]
    if n_clusters + TILE <= capacity:
        return clusters
    return Clusters(
        with_free_slots(clusters.slots),
        lengthened(clusters.sizes, capacity),
        with_more_rows(clusters.params, capacity),
        matrix_of_tiles(2 * capacity),
    )


@jitted
def leave_cluster(clusters, k, n_leaving, n_clusters):
    """Take an observation out of slot k; return the number of occupied slots.

    If the slot becomes free, it is the first of the free ones.
    """
    slots, sizes = clusters.slots, clusters.sizes
    sizes[k] -= n_leaving
    if sizes[k] > 0.0:
        return n_clusters
    for p in range(n_clusters):
        if slots[p] == k:
            slots[p] = slots[n_clusters - 1]
            slots[n_clusters - 1] = k
    return n_clusters - 1


@jitted
def fill_auxiliary(prior, tile, clusters, n_clusters, is_alone, auxiliary, rng):
    """Draw the auxiliary clusters of an observation.

    Parameters
    ----------
    prior : NamedTuple
    tile : object
    clusters : Clusters
    n_clusters : int
    is_alone : bool
        Whether the observation had the first free slot for itself.  The first auxiliary cluster is
        then a copy of it.
    auxiliary : Auxiliary
        Overwritten.
    rng : numpy.random.Generator
    """
    for h in range(N_AUXILIARY):
        if is_alone and h == 0:
            own = clusters.slots[n_clusters]
            copy_row(clusters.params[own], auxiliary.params[h])
            copy_row(clusters.log_density[own], auxiliary.log_density[h])
        else:
            draw_parameters(prior, auxiliary.empty, rng, auxiliary.params[h])
            out = auxiliary.log_density[h]
            fill_log_density(prior, tile, auxiliary.params[h], out, auxiliary.scratch)


@jitted
def draw_by_log_mass(law, t, n_joining, clusters, n_clusters, mass, rng):
    """Draw the position of the cluster of observation t of a tile, or one after the clusters.

    Parameters
    ----------
    law : PartitionLaw
    t : int
    n_joining : float
        Observations of the process that it stands for.
    clusters : Clusters
    n_clusters : int
    mass : ndarray of float64, shape (M,)
        Log masses of the positions from n_clusters on; overwritten.
    rng : numpy.random.Generator

    Returns
    -------
    int
    """
    for p in range(n_clusters):
        k = clusters.slots[p]
        log_joining = log_joining_factor(law, clusters.sizes[k], n_joining)
        mass[p] = log_joining + clusters.log_density[k, t]
    highest = mass.max()
    for p in range(mass.shape[0]):
        mass[p] = math.exp(mass[p] - highest)
    return categorical_at(rng.random(), mass)


@jitted
def _draw_position(law, t, n_joining, clusters, n_clusters, auxiliary, rng):
    """Draw the position of a cluster; n_clusters + h for auxiliary cluster h."""
    mass = np.empty(n_clusters + N_AUXILIARY)
    log_share = log_founding_factor(law, n_clusters, n_joining) - math.log(N_AUXILIARY)
    for h in range(N_AUXILIARY):
        mass[n_clusters + h] = log_share + auxiliary.log_density[h, t]
    return draw_by_log_mass(law, t, n_joining, clusters, n_clusters, mass, rng)


@jitted
def redraw_label(prior, law, tile, t, k, n_moving, clusters, n_clusters, auxiliary, rng):
    """Redraw the cluster of observation t of a tile, which is in slot k.

    Parameters
    ----------
    prior : NamedTuple
    law : PartitionLaw
    tile : object
    t, k : int
    n_moving : float
        Observations of the process that it stands for.
    clusters : Clusters
        Updated.
    n_clusters : int
    auxiliary : Auxiliary
        Workspace.
    rng : numpy.random.Generator

    Returns
    -------
    k : int
        Its new slot.
    n_clusters : int
    """
    n_before = n_clusters
    n_clusters = leave_cluster(clusters, k, n_moving, n_clusters)
    is_alone = n_clusters < n_before
    fill_auxiliary(prior, tile, clusters, n_clusters, is_alone, auxiliary, rng)
    p = _draw_position(law, t, n_moving, clusters, n_clusters, auxiliary, rng)
    if p >= n_clusters:
        h, p = p - n_clusters, n_clusters
        copy_row(auxiliary.params[h], clusters.params[clusters.slots[p]])
        copy_row(auxiliary.log_density[h], clusters.log_density[clusters.slots[p]])
        n_clusters += 1
    clusters.sizes[clusters.slots[p]] += n_moving
    return clusters.slots[p], n_clusters


@jitted
def number_clusters(prior, data, labels, clusters, n_clusters):
    """Give the occupied slots the numbers 0 .. K - 1; return the statistics of the clusters."""
    renumbered = np.full(clusters.slots.shape[0], -1)
    for p in range(n_clusters):
        renumbered[clusters.slots[p]] = p
    for i in range(labels.shape[0]):
        labels[i] = renumbered[labels[i]]
    stats = gather_stats(prior, data, labels, n_clusters)
    keep_parameters(prior, clusters.params, renumbered, stats)
    return stats


@jitted
def auxiliary_sweep(target, labels, stats, rng):
    """Draw the parameters of the clusters, then redraw every label in turn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
        Of a family that is not conjugate: with the parameters, which are not drawn.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    prior, data, law = target
    n_obs, n_clusters = labels.shape[0], stats.shape[0]
    clusters = begin_clusters(prior, labels, stats, rng)
    auxiliary = Auxiliary(
        np.zeros((N_AUXILIARY, params_size(prior))),
        matrix_of_tiles(N_AUXILIARY),
        np.zeros(stats_size(prior)),
        new_scratch(4),
    )
    rows, tile = new_rows(), begin_tile(prior, data)
    for first in range(0, n_obs, TILE):
        clusters = with_room(clusters, n_clusters)
        fill_range(rows, first, n_obs)
        load_tile(prior, data, rows, tile)
        for p in range(n_clusters):
            k = clusters.slots[p]
            out = clusters.log_density[k]
            fill_log_density(prior, tile, clusters.params[k], out, auxiliary.scratch)
        for t in range(min(TILE, n_obs - first)):
            i = first + t
            n_moving = multiplicity(prior, data, i)
            labels[i], n_clusters = redraw_label(
                prior, law, tile, t, labels[i], n_moving, clusters, n_clusters, auxiliary, rng
            )
    return number_clusters(prior, data, labels, clusters, n_clusters)


@jitted
def iterate_neal8(target, labels, stats, generator, schedule, acceptance_counts):
    """Run sweeps, see `KernelForm`."""
    rng = open_generator(generator)
    atoms = no_atoms(target.prior)
    for _ in range(schedule.n_iterations):
        stats = auxiliary_sweep(target, labels, stats, rng)
        stats = move_free_parameters(target.prior, target, labels, stats, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats
