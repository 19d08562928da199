"""The marginal sampler: Gibbs sampling with instantiated parameters, algorithm 2 of Neal (2000).

Weights are integrated out and the parameters of the clusters instantiated.  An observation joins a
cluster with n other members with probability proportional to n times its density there, or founds
one with probability proportional to alpha times its prior predictive density; the parameters of
the new cluster are drawn given that observation.  So parameters need to be integrated out of the
density of one observation only.
"""

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    draw_parameters,
    fill_log_density,
    load_tile,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.moves.collapsed.scan import log_densities_alone
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.partition_law import log_founding_factor
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.samplers.neal8 import (
    begin_clusters,
    draw_by_log_mass,
    leave_cluster,
    number_clusters,
    with_room,
)


@jitted
def found_cluster(prior, data, tile, i, clusters, k, scratch, rng):
    """Draw the parameters of a cluster of one observation, into a free slot.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    tile : object
        The observations of the present tile, whose densities are computed.
    i, k : int
        Observation and slot.
    clusters : Clusters
        Changed.
    scratch : ndarray of float64, shape (4 * TILE,)
    rng : numpy.random.Generator
    """
    one = np.zeros(stats_size(prior))
    add_row(prior, data, i, one)
    draw_parameters(prior, one, rng, clusters.params[k])
    fill_log_density(prior, tile, clusters.params[k], clusters.log_density[k], scratch)


@jitted
def draw_position(law, t, n_joining, log_alone, clusters, n_clusters, rng):
    """Draw the position of the cluster of observation t of a tile, n_clusters for a new one.

    Parameters
    ----------
    law : PartitionLaw
    t : int
    n_joining : float
        Observations of the process that it stands for.
    log_alone : float
        Its log prior predictive density.
    clusters : Clusters
    n_clusters : int
    rng : numpy.random.Generator

    Returns
    -------
    int
    """
    mass = np.empty(n_clusters + 1)
    mass[n_clusters] = log_founding_factor(law, n_clusters, n_joining) + log_alone
    return draw_by_log_mass(law, t, n_joining, clusters, n_clusters, mass, rng)


@jitted
def marginal_sweep(target, labels, stats, log_alone, rng):
    """Draw the parameters of the clusters, then redraw every label in turn.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities of the observations.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    prior, data, law = target
    n_obs, n_clusters = labels.shape[0], stats.shape[0]
    clusters = begin_clusters(prior, labels, stats, rng)
    rows, tile, scratch = new_rows(), begin_tile(prior, data), new_scratch(4)
    for first in range(0, n_obs, TILE):
        clusters = with_room(clusters, n_clusters)
        fill_range(rows, first, n_obs)
        load_tile(prior, data, rows, tile)
        for p in range(n_clusters):
            k = clusters.slots[p]
            fill_log_density(prior, tile, clusters.params[k], clusters.log_density[k], scratch)
        for t in range(min(TILE, n_obs - first)):
            i = first + t
            n_moving = multiplicity(prior, data, i)
            n_clusters = leave_cluster(clusters, labels[i], n_moving, n_clusters)
            p = draw_position(law, t, n_moving, log_alone[i], clusters, n_clusters, rng)
            labels[i] = clusters.slots[p]
            if p == n_clusters:
                found_cluster(prior, data, tile, i, clusters, labels[i], scratch, rng)
                n_clusters += 1
            clusters.sizes[labels[i]] += n_moving
    return number_clusters(prior, data, labels, clusters, n_clusters)


@jitted
def iterate_neal2(target, labels, stats, generator, schedule, acceptance_counts):
    """Run sweeps, see `KernelForm`."""
    rng = open_generator(generator)
    atoms = no_atoms(target.prior)
    log_alone = log_densities_alone(target.prior, target.data, np.arange(labels.shape[0]))
    for _ in range(schedule.n_iterations):
        stats = marginal_sweep(target, labels, stats, log_alone, rng)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats
