"""Sweep of families whose log densities under all atoms are read off one table of parameters.

Statistics of such families may be much larger than the data.  They are added up after all labels
are drawn, each cluster by one thread, so that no thread needs statistics of its own.
"""

import numpy as np

from pymc_dpsplit.components.base import add_row, stats_size
from pymc_dpsplit.components.optional import fill_by_table
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.sweep.all_atoms import new_masses
from pymc_dpsplit.moves.sweep.group_factors import add_group_factors, find_groups, new_groups
from pymc_dpsplit.moves.sweep.tile_labels import (
    choose_again,
    fill_own,
    fill_slices,
    first_in_reach,
)

# Observations evaluated against one block of the table before the next block is loaded.
_CHUNK = 2048


@jitted
def _take_reachable(log_mass, reach, slices, lowest, groups, active, taken):
    """Copy the log masses of the atoms in reach of a tile to `taken`; return their number.

    The indices of these atoms are written into `active`.
    """
    slice_bounds, order, floor = reach.slice_bounds, reach.order, reach.floor
    factors = reach.factors
    first = first_in_reach(slice_bounds, order, lowest)
    n_active = order.shape[0] - first
    for a in range(n_active):
        k = order[first + a]
        for t in range(TILE):
            is_reached = slice_bounds[k] >= floor or slices[t] < slice_bounds[k]
            taken[a, t] = log_mass[k, t] if is_reached else -np.inf
        add_group_factors(factors, k, groups, row_of(taken, a))
        active[a] = k
    return n_active


@jitted
def assign_by_table(prior, data, labels, start, stop, table, reach, slice_key, label_key, sizes):
    """Redraw the labels start .. stop - 1 and count the new labels in `sizes`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms.
    start, stop : int
    table : object
        Result of `find_table`.
    reach : Reach
    slice_key, label_key : uint64
    sizes : ndarray of float64, shape (A, 1)
        Added to.
    """
    rows, chosen = new_rows(), new_rows()
    n_atoms = reach.slice_bounds.shape[0]
    own, active, position = new_rows(), np.empty(n_atoms, np.int64), np.empty(n_atoms, np.int64)
    taken = new_scratch(n_atoms).reshape(n_atoms, TILE)
    scratch, slices, groups = new_scratch(4), new_scratch(1), new_groups()
    log_mass = new_masses(table, n_atoms, _CHUNK // TILE)
    for chunk in range(start, stop, _CHUNK):
        chunk_stop = min(stop, chunk + _CHUNK)
        fill_by_table(prior, data, chunk, chunk_stop, table, log_mass)
        for first in range(chunk, chunk_stop, TILE):
            mass = log_mass[(first - chunk) // TILE]
            fill_range(rows, first, chunk_stop)
            lowest = fill_slices(rows, labels, reach.slice_bounds, slice_key, slices)
            find_groups(reach.factors, rows, groups)
            n_active = _take_reachable(mass, reach, slices, lowest, groups, active, taken)
            fill_own(rows, labels, active, n_active, position, own)
            choose_again(taken, n_active, rows, label_key, own, chosen, scratch)
            for t in range(min(TILE, chunk_stop - first)):
                k = active[chosen[t]]
                labels[first + t] = k
                sizes[k, 0] += 1.0


@jitted
def new_stats(prior, n_clusters):
    """Zeroed statistics, shape (K, S)."""
    return np.zeros((n_clusters, stats_size(prior)))


@jitted
def gather_shares(prior, data, labels, n_shares, stats, counter):
    """Add up the statistics of the clusters that this thread takes from `counter`.

    Cluster k belongs to share k mod `n_shares`; its observations are added in order.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    n_shares : int
    stats : ndarray of float64, shape (K, S)
        Added to.
    counter : ndarray of int64, shape (1,)
    """
    share = take_next(counter)
    while share < n_shares:
        for i in range(labels.shape[0]):
            k = labels[i]
            if k % n_shares == share:
                add_row(prior, data, i, row_of(stats, k))
        share = take_next(counter)
