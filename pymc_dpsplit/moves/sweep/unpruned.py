"""Labels of a strip redrawn with the masses of all atoms in reach, tile by tile."""

import numpy as np

from pymc_dpsplit.components.base import add_groups, add_labelled, load_tile
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch
from pymc_dpsplit.moves.sweep.group_factors import find_groups, new_groups
from pymc_dpsplit.moves.sweep.tile_labels import (
    choose_again,
    fill_active,
    fill_own,
    fill_slices,
    group_by_label,
)
from pymc_dpsplit.moves.sweep.visits import BLOCK, fill_tile, fill_visits, new_visits

# Observations sorted by label at a time, so that the statistics of a cluster are loaded once.
CHUNK = 1024


@jitted
def add_by_chunks(prior, data, labels, start, stop, members, bounds, stats):
    """Add the observations start .. stop - 1 to the statistics of their labels.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    start, stop : int
    members : ndarray of int64, shape (CHUNK,)
        Scratch.
    bounds : ndarray of int64, shape (A + 1,)
        Scratch.
    stats : ndarray of float64, shape (A, S)
        Added to.
    """
    for first in range(start, stop, CHUNK):
        last = min(stop, first + CHUNK)
        if not add_labelled(prior, data, labels, first, last, stats):
            group_by_label(labels, np.arange(first, last), bounds, members)
            add_groups(prior, data, members, bounds, stats)


@jitted
def assign_unpruned(prior, data, labels, start, stop, params, reach, slice_key, label_key, stats):
    """Redraw the labels start .. stop - 1 and add the observations to `stats`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms.
    start, stop : int
    params : ndarray of float64, shape (A, P)
    reach : Reach
    slice_key, label_key : uint64
    stats : ndarray of float64, shape (A, S)
        Added to.
    """
    n_atoms = reach.slice_bounds.shape[0]
    rows, chosen, active = new_rows(), new_rows(), np.empty(n_atoms, np.int64)
    members, bounds = np.empty(CHUNK, np.int64), np.empty(n_atoms + 1, np.int64)
    tile, log_mass = begin_tile(prior, data), new_scratch(n_atoms).reshape(n_atoms, TILE)
    scratch, slices = new_scratch(4), new_scratch(1)
    own, groups, position = new_rows(), new_groups(), np.empty(n_atoms, np.int64)
    by_slice, visits = reach.by_slice, new_visits(reach.by_slice)
    order = visits.members
    size = BLOCK if by_slice else CHUNK
    for block in range(start, stop, size):
        block_stop = min(stop, block + size)
        if by_slice:
            order = fill_visits(labels, block, block_stop, reach, slice_key, visits)
        for first in range(block, block_stop, TILE):
            fill_tile(rows, first, block, block_stop, by_slice, order)
            load_tile(prior, data, rows, tile)
            lowest = fill_slices(rows, labels, reach.slice_bounds, slice_key, slices)
            find_groups(reach.factors, rows, groups)
            n_active = fill_active(
                prior, tile, params, reach, slices, lowest, groups, active, log_mass, scratch
            )
            fill_own(rows, labels, active, n_active, position, own)
            choose_again(log_mass, n_active, rows, label_key, own, chosen, scratch)
            for t in range(min(TILE, block_stop - first)):
                labels[rows[t]] = active[chosen[t]]
        add_by_chunks(prior, data, labels, block, block_stop, members, bounds, stats)
