"""The floored-slice sweep over all labels: exact, without rejection, parallel over points.

Given the measure G = sum_k pi_k delta(theta_k), observation i has a slice variable
u_i ~ U(0, g(pi_{z_i})), g(t) = min(t, c), and its new label has probability proportional to
pi_k / g(pi_k) f(x_i; theta_k) over the atoms with g(pi_k) > u_i, eq. (8)-(9).  Atoms of mass
below every u_i cannot be chosen, so finitely many sticks suffice and nothing is truncated;
c = 1 / N does not depend on the state.  An atom of mass c or more is never excluded: the sweep is
the full Gibbs sweep together with births and deaths of small clusters.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import add_groups, load_tile, stats_size
from pymc_dpsplit.components.generic import keep_parameters
from pymc_dpsplit.components.optional import begin_tile, find_table
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_key, hash_uniform
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.moves.by_table import assign_by_table, gather_shares, new_stats
from pymc_dpsplit.moves.density import add_log_weights
from pymc_dpsplit.moves.measure import (
    break_remainder,
    no_atoms,
    occupied_atoms,
    redraw_measure,
)
from pymc_dpsplit.moves.pruning import assign_pruned, plan_pruning
from pymc_dpsplit.moves.tile_labels import (
    Reach,
    choose_again,
    fill_active,
    fill_own,
    fill_slices,
    group_by_label,
    smallest,
)

_MOST_STRIPS = 16
_LEAST_STRIP = 4096
# Observations that are sorted by label at a time, so that each group meets its statistics once.
_CHUNK = 1024


@kernel
def slice_caps(log_weights, floor):
    """Upper end g(pi_k) = min(pi_k, c) of the slices of each atom."""
    caps = np.empty(log_weights.shape[0])
    for k in range(caps.shape[0]):
        caps[k] = min(math.exp(log_weights[k]), floor)
    return caps


@kernel
def weigh(log_weights, params, floor):
    """Copy `params` with log(pi_k / g(pi_k)) added to the log density of each atom."""
    log_floor = math.log(floor)
    excess = np.empty(log_weights.shape[0])
    for k in range(excess.shape[0]):
        excess[k] = max(log_weights[k] - log_floor, 0.0)
    return add_log_weights(params, excess)


@kernel
def strip_count(n_obs):
    """Number of strips: a function of N alone, so that sums do not depend on the threads."""
    return max(1, min(_MOST_STRIPS, n_obs // _LEAST_STRIP))


@kernel
def strip_bounds(n_obs, strip):
    """First observation of a strip, and of the next; multiples of TILE except the end."""
    n_strips = strip_count(n_obs)
    tiles = (n_obs + TILE - 1) // TILE
    start = min(n_obs, strip * tiles // n_strips * TILE)
    stop = min(n_obs, (strip + 1) * tiles // n_strips * TILE)
    return start, stop


@kernel
def new_counter():
    """Counter from which threads take their strips, see `take_next`."""
    return np.zeros(1, np.int64)


@kernel
def _lowest_in_strip(labels, start, stop, caps, slice_key):
    lowest, lowest_cap = 1.0, caps.min()
    rows, slices = new_rows(), new_scratch(1)
    for first in range(start, stop, TILE):
        fill_range(rows, first, stop)
        for t in range(TILE):
            slices[t] = hash_uniform(slice_key, rows[t])
        # Few tiles can hold the lowest: only those look up the labels.
        if smallest(slices) * lowest_cap < lowest:
            for t in range(TILE):
                slices[t] *= caps[labels[rows[t]]]
            lowest = min(lowest, smallest(slices))
    return lowest


@kernel
def lowest_slice(labels, caps, slice_key, counter):
    """Smallest slice variable of the strips that this thread takes from `counter`, or 1."""
    lowest = 1.0
    s = take_next(counter)
    while s < strip_count(labels.shape[0]):
        start, stop = strip_bounds(labels.shape[0], s)
        lowest = min(lowest, _lowest_in_strip(labels, start, stop, caps, slice_key))
        s = take_next(counter)
    return lowest


@kernel
def begin_sweep(prior, stats, n_obs, alpha, rng, atoms):
    """Draw the occupied part of the measure, and the keys of the sweep.

    Returns
    -------
    log_weights, log_rest, params
        See `redraw_measure`.
    caps : ndarray of float64, shape (K,)
    slice_key, label_key : uint64
    """
    log_weights, log_rest, params = redraw_measure(prior, stats, alpha, rng, atoms)
    caps = slice_caps(log_weights, 1.0 / n_obs)
    return log_weights, log_rest, params, caps, draw_key(rng), draw_key(rng)


@kernel
def complete_atoms(prior, log_weights, log_rest, params, n_obs, alpha, lowest, rng):
    """Break the remainder down to the lowest slice: the occupied atoms, and others in reach.

    Returns
    -------
    log_weights : ndarray of float64, shape (A,)
    params : ndarray of float64, shape (A, P)
        Weighed, see `weigh`.
    reach : Reach
    """
    floor = 1.0 / n_obs
    log_weights, params = break_remainder(
        prior, log_weights, log_rest, params, alpha, math.log(lowest), rng
    )
    reach = Reach(slice_caps(log_weights, floor), np.argsort(log_weights))
    return log_weights, weigh(log_weights, params, floor), reach


@kernel
def _assign_strip(prior, data, labels, start, stop, params, reach, slice_key, label_key, stats):
    n_atoms = reach.caps.shape[0]
    floor = 1.0 / labels.shape[0]
    rows, chosen, active = new_rows(), new_rows(), np.empty(n_atoms, np.int64)
    members, bounds = np.empty(_CHUNK, np.int64), np.empty(n_atoms + 1, np.int64)
    tile, log_mass = begin_tile(prior, data), new_scratch(n_atoms).reshape(n_atoms, TILE)
    scratch, slices = new_scratch(4), new_scratch(1)
    own, position = new_rows(), np.empty(n_atoms, np.int64)
    for chunk in range(start, stop, _CHUNK):
        chunk_stop = min(stop, chunk + _CHUNK)
        for first in range(chunk, chunk_stop, TILE):
            fill_range(rows, first, stop)
            load_tile(prior, data, rows, tile)
            lowest = fill_slices(rows, labels, reach.caps, slice_key, slices)
            n_active = fill_active(
                prior, tile, params, reach, floor, slices, lowest, active, log_mass, scratch
            )
            fill_own(rows, labels, active, n_active, position, own)
            choose_again(log_mass, n_active, rows, label_key, own, chosen, scratch)
            for t in range(min(TILE, stop - first)):
                labels[first + t] = active[chosen[t]]
        group_by_label(labels, np.arange(chunk, chunk_stop), bounds, members)
        add_groups(prior, data, members, bounds, stats)


@kernel
def _assign_either(
    prior, data, labels, start, stop, params, reach, pruning, slice_key, label_key, stats
):
    """Redraw the labels of a strip with all atoms, or without those that cannot matter."""
    if pruning is None or pruning.bounds.shape[0] == 0:
        _assign_strip(prior, data, labels, start, stop, params, reach, slice_key, label_key, stats)
    else:
        assign_pruned(
            prior, data, labels, start, stop, params, reach, pruning, slice_key, label_key, stats
        )


@kernel
def assign_strips(
    prior, data, labels, params, reach, pruning, slice_key, label_key, strip_stats, counter
):
    """Redraw the labels of the strips that this thread takes from `counter`.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms.
    params : ndarray of float64, shape (A, P)
    reach : Reach
        What `complete_atoms` returned.
    pruning : Pruning or None
        What `plan_pruning` returned; None is to evaluate all atoms.
    strip_stats : ndarray of float64, shape (strips, A, S)
        Overwritten by the statistics of the observations of each strip.
    """
    s = take_next(counter)
    while s < strip_stats.shape[0]:
        start, stop = strip_bounds(labels.shape[0], s)
        # Here, for threads share it: where statistics are large it takes a while.
        strip_stats[s] = 0.0
        _assign_either(
            prior,
            data,
            labels,
            start,
            stop,
            params,
            reach,
            pruning,
            slice_key,
            label_key,
            strip_stats[s],
        )
        s = take_next(counter)


@kernel
def total_strips(strip_stats):
    """Add up the strips in order and drop atoms without observations.

    Parameters
    ----------
    strip_stats : ndarray of float64, shape (strips, A, S)

    Returns
    -------
    totals : ndarray of float64, shape (K, S)
    renumbered : ndarray of int32, shape (A,)
        Cluster of each atom, -1 for those without observations.
    """
    n_strips, n_atoms, size = strip_stats.shape
    totals = np.zeros((n_atoms, size))
    renumbered = np.full(n_atoms, -1, np.int32)
    n_clusters = 0
    for k in range(n_atoms):
        for s in range(n_strips):
            # Strips come from the caches of other cores: those without observations stay there.
            if strip_stats[s, k, 0] > 0.0:
                for j in range(size):
                    totals[n_clusters, j] += strip_stats[s, k, j]
        if totals[n_clusters, 0] > 0.0:
            renumbered[k] = n_clusters
            n_clusters += 1
    return totals[:n_clusters].copy(), renumbered


@kernel
def is_renumbered(renumbered, n_clusters):
    """Whether an atom has another number as a cluster: not if the last of them has its own."""
    return renumbered[n_clusters - 1] != n_clusters - 1


@kernel
def renumber(labels, renumbered, counter):
    """Turn indices of atoms into clusters, in the strips that this thread takes."""
    s = take_next(counter)
    while s < strip_count(labels.shape[0]):
        start, stop = strip_bounds(labels.shape[0], s)
        for i in range(start, stop):
            labels[i] = renumbered[labels[i]]
        s = take_next(counter)


@kernel
def new_strip_stats(prior, n_obs, n_atoms):
    """Room for the statistics of every strip and atom."""
    return np.empty((strip_count(n_obs), n_atoms, stats_size(prior)))


@kernel
def assign_strips_by_table(
    prior, data, labels, table, reach, slice_key, label_key, strip_sizes, counter
):
    """Do what `assign_strips` does by a table, but count labels only, in (strips, A, 1)."""
    s = take_next(counter)
    while s < strip_sizes.shape[0]:
        start, stop = strip_bounds(labels.shape[0], s)
        sizes = strip_sizes[s]
        assign_by_table(prior, data, labels, start, stop, table, reach, slice_key, label_key, sizes)
        s = take_next(counter)


@kernel
def new_strip_sizes(n_obs, n_atoms):
    """Zeroed numbers of observations for every strip and atom."""
    return np.zeros((strip_count(n_obs), n_atoms, 1))


@kernel
def _assign_all(prior, data, labels, stats, params, reach, table, slice_key, label_key):
    """Redraw all labels on one thread; return the new statistics, and which atom is which."""
    n_obs, n_atoms = labels.shape[0], reach.caps.shape[0]
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


@kernel
def next_sweep(prior, data, labels, stats, alpha, rng, atoms):
    """One whole sweep on one thread, whose measure follows the `atoms` of the sweep before.

    Returns
    -------
    stats : ndarray of float64, shape (K, S)
    atoms : Atoms
        For the next sweep.
    """
    n_obs = labels.shape[0]
    log_weights, log_rest, params, caps, slice_key, label_key = begin_sweep(
        prior, stats, n_obs, alpha, rng, atoms
    )
    lowest = lowest_slice(labels, caps, slice_key, new_counter())
    log_weights, params, reach = complete_atoms(
        prior, log_weights, log_rest, params, n_obs, alpha, lowest, rng
    )
    table = find_table(prior, params)
    stats, renumbered = _assign_all(
        prior, data, labels, stats, params, reach, table, slice_key, label_key
    )
    return stats, occupied_atoms(prior, log_weights, params, renumbered, stats)


@kernel
def slice_sweep(prior, data, labels, stats, alpha, rng):
    """One whole sweep on one thread, its measure drawn anew; returns the new statistics."""
    return next_sweep(prior, data, labels, stats, alpha, rng, no_atoms(prior))[0]
