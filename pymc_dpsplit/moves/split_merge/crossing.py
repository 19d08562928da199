"""Crossing, for tuning only: a partition is put together from the clusters of two.

Chains that climb from different starts often end in partitions of which each has found clusters
that the other has not.  Observations that share a cluster in both form a cell.  The best pair of
cells, one after another, is merged until no merge gains, and the partition is kept if it is better.
This climbs the joint density and is NOT invariant: draws made with it are discarded
(docs/method.md, section 6).
"""

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rows import copy_row
from pymc_dpsplit.kernels.streams import new_stream, next_uniform
from pymc_dpsplit.moves.partition import gather_stats, log_joint
from pymc_dpsplit.moves.partition_law import log_opening_mass
from pymc_dpsplit.moves.split_merge.regrouping import (
    MOST_CLUSTERS,
    all_gains,
    join_sides,
    random_factors,
)
from pymc_dpsplit.moves.split_merge.selection import log_marginals

# All pairs of so many cells at most are compared.
MOST_CELLS = 2 * MOST_CLUSTERS
# Sequences of merges that are tried, all but the first with gains discounted at random.
_SEQUENCES = 8


@jitted
def _number_cells(labels, n_clusters, others, n_others, cells):
    """Number the pairs of clusters that hold an observation, in the order of these.

    Parameters
    ----------
    labels, others : ndarray of int32, shape (N,)
    n_clusters, n_others : int
    cells : ndarray of int32, shape (N,)
        Overwritten.

    Returns
    -------
    int
        Number of cells.
    """
    numbers, n_cells = np.full((n_clusters, n_others), -1, np.int32), 0
    for i in range(labels.shape[0]):
        if numbers[labels[i], others[i]] < 0:
            numbers[labels[i], others[i]] = n_cells
            n_cells += 1
        cells[i] = numbers[labels[i], others[i]]
    return n_cells


@jitted
def _groups_of(cells, joined):
    """Number the groups of cells that have joined each other.

    Parameters
    ----------
    cells : ndarray of float64, shape (n, S)
        Statistics, in the row of its first cell those of a whole group.
    joined : ndarray of int64, shape (n,)
        First cell of the group of each.

    Returns
    -------
    numbers : ndarray of int32, shape (n,)
        Group of each cell.
    stats : ndarray of float64, shape (K, S)
    """
    numbers, stats = np.empty(joined.shape[0], np.int32), np.empty(cells.shape)
    n_groups = 0
    for c in range(joined.shape[0]):
        if joined[c] == c:
            copy_row(cells[c], stats[n_groups])
            numbers[c] = n_groups
            n_groups += 1
        else:
            numbers[c] = numbers[joined[c]]
    return numbers, stats[:n_groups].copy()


@jitted
def cross(target, labels, stats, others, stats_of_others, generator):
    """Change a partition to the best made of it and another; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Changed in place, unless nothing is better.
    stats : ndarray of float64, shape (K, S)
    others : ndarray of int32, shape (N,)
        The other partition.
    stats_of_others : ndarray of float64, shape (K', S)
        With more than 256 clusters in either, or 512 cells, the better of the two is taken.
    generator : result of `address_of`, or numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K'', S)
    """
    stream = new_stream(draw_key(open_generator(generator)))
    n_clusters, n_others = stats.shape[0], stats_of_others.shape[0]
    cells, n_cells = np.empty(labels.shape[0], np.int32), MOST_CELLS + 1
    if max(n_clusters, n_others) <= MOST_CLUSTERS:
        n_cells = _number_cells(labels, n_clusters, others, n_others, cells)
    best, of_others = log_joint(target, stats), log_joint(target, stats_of_others)
    if of_others > best:
        best, stats = of_others, stats_of_others.copy()
        labels[:] = others
    if n_cells > MOST_CELLS:
        return stats
    of_cells = gather_stats(target.prior, target.data, cells, n_cells)
    # Of a cluster that is there, so that it is positive where the number of clusters is bounded.
    log_opening = log_opening_mass(target.law, stats.shape[0] - 1)
    log_m = log_marginals(target.prior, of_cells)
    gains = all_gains(target, log_opening, of_cells, log_m)
    for sequence in range(_SEQUENCES):
        discount = 0.0 if sequence == 0 else next_uniform(stream)
        factors, merged = random_factors(n_cells, discount, stream), of_cells.copy()
        joined = join_sides(target, log_opening, merged, log_m.copy(), gains.copy(), factors)
        numbers, crossed = _groups_of(merged, joined)
        reached = log_joint(target, crossed)
        if reached > best:
            best, stats = reached, crossed
            for i in range(labels.shape[0]):
                labels[i] = numbers[cells[i]]
    return stats
