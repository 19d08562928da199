"""The sampler of Chang & Fisher (2013), repaired: persistent sub-clusters that propose exact moves.

The sweep over the labels is that of the default kernel, which founds clusters too.  Sub-clusters
are kept from draw to draw as in the paper, but are those of no cluster, see `sub_cluster_chain`,
and a split or merge that they propose has its reverse, see `sub_cluster_proposals`.
"""

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.n_attempts import whole
from pymc_dpsplit.moves.partition_law import breaks_sticks
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from pymc_dpsplit.samplers.sub_cluster_chain import kept_sub_clusters, redraw_sub_clusters
from pymc_dpsplit.samplers.sub_cluster_proposals import sub_cluster_attempt


@jitted
def iterate_repaired(
    target, labels, stats, generator, schedule, acceptance_counts, of_rows, of_clusters
):
    """Run iterations, see `KernelForm`; what is kept are the sub-clusters.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    generator : result of `address_of`, or numpy.random.Generator
    schedule : Schedule
    acceptance_counts : ndarray of int64, shape (4,)
    of_rows : ndarray of int8, shape (N,) or (0,)
    of_clusters : ndarray of float64, shape (K, 2) or (0, 0)

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    of_rows : ndarray of int8, shape (N,)
    of_clusters : ndarray of float64, shape (K', 2)
    """
    rng = open_generator(generator)
    prior, data, _ = target
    sub_labels, to_keep = kept_sub_clusters(prior, data, of_rows, of_clusters, rng)
    atoms = no_atoms(prior)
    for _ in range(schedule.n_iterations):
        if breaks_sticks(target.law, labels.shape[0]):
            stats = slice_sweep(target, labels, stats, rng)
        else:
            stats = collapsed_sweep(target, labels, stats, rng)
        redraw_sub_clusters(prior, data, sub_labels, rng)
        for _ in range(whole(schedule.attempts, rng)):
            stats = sub_cluster_attempt(target, labels, stats, sub_labels, rng, acceptance_counts)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    kept = np.empty((stats.shape[0], 2))
    for k in range(stats.shape[0]):
        copy_row(to_keep, kept[k])
    return stats, sub_labels, kept
