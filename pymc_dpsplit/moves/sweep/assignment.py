"""Floored-slice sweep over all labels: exact, rejection-free, parallel over observations.

Given the random measure G = sum_k pi_k delta(theta_k), observation i has a slice variable
u_i ~ U(0, g(pi_{z_i})), where g(t) = min(t, c).  Its new label is k with probability proportional
to pi_k / g(pi_k) f(x_i; theta_k) over the atoms with g(pi_k) > u_i, eq. (2.2)-(2.3).  An atom of
weight below every u_i cannot be chosen, so finitely many sticks suffice and nothing is truncated.
The floor c is a function of N and the law of the partition alone, see `slice_floor`.  Atoms of
weight c or more are never excluded, so the sweep is the full Gibbs sweep plus births and deaths of
small clusters.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import stats_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import keep_parameters
from pymc_dpsplit.components.optional import find_table
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key, hash_uniform
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.sorting import ascending
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import (
    break_remainder,
    no_atoms,
    occupied_atoms,
    redraw_measure,
)
from pymc_dpsplit.moves.partition_law import slice_floor
from pymc_dpsplit.moves.sweep.by_table import assign_by_table, gather_shares, new_stats
from pymc_dpsplit.moves.sweep.density import add_log_factors
from pymc_dpsplit.moves.sweep.pruning import assign_pruned, plan_pruning
from pymc_dpsplit.moves.sweep.rounding import round_atoms
from pymc_dpsplit.moves.sweep.single_precision import assign_in_single
from pymc_dpsplit.moves.sweep.tile_labels import Reach, smallest
from pymc_dpsplit.moves.sweep.unpruned import assign_unpruned
from pymc_dpsplit.moves.sweep.visits import saves_by_slice

_MOST_STRIPS = 16
_LEAST_STRIP = 4096


@jitted
def slice_bounds_of(log_weights, floor):
    """Upper end g(pi_k) = min(pi_k, c) of the slices of each atom, shape (K,)."""
    slice_bounds = np.empty(log_weights.shape[0])
    for k in range(slice_bounds.shape[0]):
        slice_bounds[k] = min(math.exp(log_weights[k]), floor)
    return slice_bounds


@jitted
def weigh(prior, log_weights, params, floor):
    """Copy `params` with log(pi_k / g(pi_k)) added to the log density of each atom.

    The slice takes one factor of the weight; those that an observation may have besides are noted,
    eq. (7.53).

    Parameters
    ----------
    prior : NamedTuple
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    floor : float
        The floor c of the slices.

    Returns
    -------
    ndarray of float64, shape (K, P)
    """
    log_floor = math.log(floor)
    excess = np.empty(log_weights.shape[0])
    for k in range(excess.shape[0]):
        excess[k] = max(log_weights[k] - log_floor, 0.0)
    return add_log_factors(prior, params, excess, log_weights)


@jitted
def strip_count(n_obs):
    """Number of strips: a function of N alone, so that sums do not depend on the threads."""
    return max(1, min(_MOST_STRIPS, n_obs // _LEAST_STRIP))


@jitted
def strip_bounds(n_obs, strip):
    """First observation of a strip and of the next one; multiples of TILE except at the end."""
    n_strips = strip_count(n_obs)
    tiles = (n_obs + TILE - 1) // TILE
    start = min(n_obs, strip * tiles // n_strips * TILE)
    stop = min(n_obs, (strip + 1) * tiles // n_strips * TILE)
    return start, stop


@jitted
def new_counter():
    """Counter from which threads take strips, see `take_next`."""
    return np.zeros(1, np.int64)


@jitted
def _lowest_in_strip(labels, start, stop, slice_bounds, slice_key):
    lowest, lowest_cap = 1.0, slice_bounds.min()
    rows, slices = new_rows(), new_scratch(1)
    for first in range(start, stop, TILE):
        fill_range(rows, first, stop)
        for t in range(TILE):
            slices[t] = hash_uniform(slice_key, rows[t])
        # Labels are looked up only in tiles that may hold the minimum, which are few.
        if smallest(slices) * lowest_cap < lowest:
            for t in range(TILE):
                slices[t] *= slice_bounds[labels[rows[t]]]
            lowest = min(lowest, smallest(slices))
    return lowest


@jitted
def lowest_slice(labels, slice_bounds, slice_key, counter):
    """Smallest slice variable of the strips that this thread takes from `counter`, or 1.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    slice_bounds : ndarray of float64, shape (K,)
    slice_key : uint64
    counter : ndarray of int64, shape (1,)

    Returns
    -------
    float
    """
    lowest = 1.0
    s = take_next(counter)
    while s < strip_count(labels.shape[0]):
        start, stop = strip_bounds(labels.shape[0], s)
        lowest = min(lowest, _lowest_in_strip(labels, start, stop, slice_bounds, slice_key))
        s = take_next(counter)
    return lowest


@jitted
def begin_sweep(target, labels, stats, rng, atoms):
    """Draw the occupied part of the measure and the keys of the sweep.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    atoms : Atoms
        Occupied atoms of the previous sweep, from which this one is over-relaxed.

    Returns
    -------
    log_weights, log_rest, params
        See `redraw_measure`.
    slice_bounds : ndarray of float64, shape (K,)
    slice_key, label_key : uint64
    """
    order = cluster_order(labels, stats)
    log_weights, log_rest, params = redraw_measure(target, stats, rng, atoms, order)
    slice_bounds = slice_bounds_of(log_weights, slice_floor(target.law, labels.shape[0]))
    return log_weights, log_rest, params, slice_bounds, draw_key(rng), draw_key(rng)


@jitted
def complete_atoms(target, rng, log_weights, log_rest, params, lowest):
    """Break the remainder into sticks until less than the lowest slice variable is left.

    Parameters
    ----------
    target : Target
    rng : numpy.random.Generator
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
    params : ndarray of float64, shape (K, P)
    lowest : float
        Result of `lowest_slice`, the minimum over all threads.

    Returns
    -------
    log_weights : ndarray of float64, shape (A,)
        Log weights of the occupied atoms and of the new sticks, those in reach at least.
    params : ndarray of float64, shape (A, P)
        Parameters with log weights added, see `weigh`.
    reach : Reach
    """
    floor = slice_floor(target.law, target.data.shape[0])
    log_lowest = math.log(lowest)
    # Under a discount most sticks are lighter than every slice.
    log_least = log_lowest if target.law.discount > 0.0 else -math.inf
    log_weights, params, _ = break_remainder(
        target, rng, log_weights, log_rest, params, log_lowest, log_least
    )
    slice_bounds = slice_bounds_of(log_weights, floor)
    by_slice = saves_by_slice(slice_bounds, floor)
    reach = Reach(slice_bounds, ascending(log_weights), floor, by_slice, None)
    return log_weights, weigh(target.prior, log_weights, params, floor), reach


@jitted
def _assign_strip(
    prior, data, labels, start, stop, params, rounded, reach, pruning, slice_key, label_key, stats
):
    """Redraw the labels of a strip, with pruning if it pays, otherwise with all atoms.

    All atoms are evaluated in float32 if they have been rounded.
    """
    keys = slice_key, label_key
    if pruning is not None and pruning.bounds.shape[0] > 0:
        assign_pruned(prior, data, labels, start, stop, params, reach, pruning, *keys, stats)
    elif rounded is None:
        assign_unpruned(prior, data, labels, start, stop, params, reach, *keys, stats)
    else:
        assign_in_single(prior, data, labels, start, stop, params, rounded, reach, *keys, stats)


@jitted
def assign_strips(
    prior, data, labels, params, reach, pruning, slice_key, label_key, strip_stats, counter
):
    """Redraw the labels of the strips that this thread takes from `counter`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms.
    params : ndarray of float64, shape (A, P)
    reach : Reach
        Result of `complete_atoms`.
    pruning : Pruning or None
        Result of `plan_pruning`; None evaluates all atoms.
    slice_key, label_key : uint64
    strip_stats : ndarray of float64, shape (strips, A, S)
        Overwritten by the sufficient statistics of each strip.
    counter : ndarray of int64, shape (1,)
    """
    rounded = round_atoms(prior, params, reach.factors)
    s = take_next(counter)
    while s < strip_stats.shape[0]:
        start, stop = strip_bounds(labels.shape[0], s)
        # Zeroed here so that threads share the work, which is long if statistics are large.
        strip_stats[s] = 0.0
        _assign_strip(
            prior,
            data,
            labels,
            start,
            stop,
            params,
            rounded,
            reach,
            pruning,
            slice_key,
            label_key,
            strip_stats[s],
        )
        s = take_next(counter)


@jitted
def total_strips(strip_stats):
    """Add up the statistics of the strips in order and drop atoms without observations.

    Parameters
    ----------
    strip_stats : ndarray of float64, shape (strips, A, S)

    Returns
    -------
    totals : ndarray of float64, shape (K, S)
    renumbered : ndarray of int32, shape (A,)
        Cluster of each atom, -1 for atoms without observations.
    """
    n_strips, n_atoms, size = strip_stats.shape
    totals = np.zeros((n_atoms, size))
    renumbered = np.full(n_atoms, -1, np.int32)
    n_clusters = 0
    for k in range(n_atoms):
        for s in range(n_strips):
            # Empty strips are skipped: their statistics lie in the caches of other cores.
            if strip_stats[s, k, 0] > 0.0:
                for j in range(size):
                    totals[n_clusters, j] += strip_stats[s, k, j]
        if totals[n_clusters, 0] > 0.0:
            renumbered[k] = n_clusters
            n_clusters += 1
    return totals[:n_clusters].copy(), renumbered


@jitted
def is_renumbered(renumbered, n_clusters):
    """Whether any cluster differs in number from its atom; it suffices to look at the last one."""
    return renumbered[n_clusters - 1] != n_clusters - 1


@jitted
def renumber(labels, renumbered, counter):
    """Replace indices of atoms by clusters in the strips that this thread takes from `counter`.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    renumbered : ndarray of int32, shape (A,)
        Result of `total_strips`.
    counter : ndarray of int64, shape (1,)
    """
    s = take_next(counter)
    while s < strip_count(labels.shape[0]):
        start, stop = strip_bounds(labels.shape[0], s)
        for i in range(start, stop):
            labels[i] = renumbered[labels[i]]
        s = take_next(counter)


@jitted
def new_strip_stats(prior, n_obs, n_atoms):
    """Allocate the statistics of every strip and atom, shape (strips, A, S)."""
    return np.empty((strip_count(n_obs), n_atoms, stats_size(prior)))


@jitted
def assign_strips_by_table(
    prior, data, labels, table, reach, slice_key, label_key, strip_sizes, counter
):
    """Like `assign_strips` for families with a table, but count labels only.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms.
    table : object
        Result of `find_table`.
    reach : Reach
    slice_key, label_key : uint64
    strip_sizes : ndarray of float64, shape (strips, A, 1)
        The labels of each strip are counted here.
    counter : ndarray of int64, shape (1,)
    """
    s = take_next(counter)
    while s < strip_sizes.shape[0]:
        start, stop = strip_bounds(labels.shape[0], s)
        sizes = strip_sizes[s]
        assign_by_table(prior, data, labels, start, stop, table, reach, slice_key, label_key, sizes)
        s = take_next(counter)


@jitted
def new_strip_sizes(n_obs, n_atoms):
    """Zeroed numbers of observations of every strip and atom, shape (strips, A, 1)."""
    return np.zeros((strip_count(n_obs), n_atoms, 1))


@jitted
def _assign_all(target, labels, stats, params, reach, table, slice_key, label_key):
    """Redraw all labels on one thread; return the new statistics and the cluster of each atom."""
    prior, data = target.prior, target.data
    n_obs, n_atoms = labels.shape[0], reach.slice_bounds.shape[0]
    keys = slice_key, label_key
    if table is None:
        pruning = plan_pruning(prior, stats, params, strip_count(n_obs))
        strip_stats = new_strip_stats(prior, n_obs, n_atoms)
        assign_strips(
            prior, data, labels, params, reach, pruning, *keys, strip_stats, new_counter()
        )
        totals, renumbered = total_strips(strip_stats)
    else:
        sizes = new_strip_sizes(n_obs, n_atoms)
        assign_strips_by_table(prior, data, labels, table, reach, *keys, sizes, new_counter())
        totals, renumbered = total_strips(sizes)
    if is_renumbered(renumbered, totals.shape[0]):
        renumber(labels, renumbered, new_counter())
    if table is not None:
        totals = new_stats(prior, totals.shape[0])
        gather_shares(prior, data, labels, 1, totals, new_counter())
    keep_parameters(prior, params, renumbered, totals)
    return totals, renumbered


@jitted
def next_sweep(target, labels, stats, rng, atoms):
    """Run one sweep on one thread, over-relaxing the measure of the previous sweep.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
        Overwritten.
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    atoms : Atoms
        Occupied atoms of the previous sweep.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    atoms : Atoms
        Occupied atoms for the next sweep.
    """
    log_weights, log_rest, params, slice_bounds, slice_key, label_key = begin_sweep(
        target, labels, stats, rng, atoms
    )
    lowest = lowest_slice(labels, slice_bounds, slice_key, new_counter())
    log_weights, params, reach = complete_atoms(target, rng, log_weights, log_rest, params, lowest)
    table = find_table(target.prior, params)
    stats, renumbered = _assign_all(
        target, labels, stats, params, reach, table, slice_key, label_key
    )
    return stats, occupied_atoms(target.prior, log_weights, params, renumbered, stats)


@jitted
def slice_sweep(target, labels, stats, rng):
    """Run one sweep with a fresh draw of the measure; return the statistics, see `next_sweep`."""
    return next_sweep(target, labels, stats, rng, no_atoms(target.prior))[0]
