"""Sweep that computes masses in float32 and draws the labels of float64, bit for bit.

Vectors of float32 hold twice as many numbers.  The rounding errors are bounded for each
observation, eq. (2.9).  Where the point that selects a label is nearer to the end of an interval
than this bound allows, the label is drawn from masses of float64.
"""

import numpy as np

from pymc_dpsplit.components.base import load_tile, tile_size
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.sweep.rounding import slack_of
from pymc_dpsplit.moves.sweep.tile_labels import (
    choose_certainly,
    fill_active,
    fill_own,
    fill_slices,
)
from pymc_dpsplit.moves.sweep.tile_room import new_single_tile_room, new_tile_room
from pymc_dpsplit.moves.sweep.undecided import decide
from pymc_dpsplit.moves.sweep.unpruned import CHUNK, add_by_chunks
from pymc_dpsplit.moves.sweep.visits import BLOCK, fill_tile, fill_visits, new_visits


@jitted
def _assign_block(
    prior, data, labels, block, stop, rounded, reach, slice_key, label_key, order, room, undecided
):
    """Redraw the labels block .. stop - 1 where float32 suffices; return how many it leaves."""
    n_undecided, n_features, n_atoms = 0, tile_size(prior), rounded.params.shape[0]
    # Not within the loop: references to arrays of a NamedTuple are counted, see `kernels.jit`.
    atoms, per_norm, constant = rounded.params, rounded.per_norm, rounded.constant
    slice_bounds, by_slice = reach.slice_bounds, reach.by_slice
    rows, chosen, active, position = room.rows, room.chosen, room.active, room.position
    own, groups, tile, log_mass = room.own, room.groups, room.tile, room.log_mass
    sums, slices, scratch = room.sums, room.slices, room.scratch
    for first in range(block, stop, TILE):
        fill_tile(rows, first, block, stop, by_slice, order)
        load_tile(prior, data, rows, tile)
        at_zero, slope = slack_of(per_norm, constant, tile, n_features, n_atoms)
        if at_zero < np.inf:
            lowest = fill_slices(rows, labels, slice_bounds, slice_key, slices)
            n_active = fill_active(
                prior, tile, atoms, reach, slices, lowest, groups, active, log_mass, sums
            )
            fill_own(rows, labels, active, n_active, position, own)
            choose_certainly(
                log_mass, n_active, at_zero, slope, rows, label_key, own, chosen, sums, scratch
            )
        else:
            chosen[:] = -1
        for t in range(min(TILE, stop - first)):
            # Unsigned indices are not checked for being negative.
            if chosen[t] >= 0:
                labels[np.uint64(rows[t])] = active[np.uint32(chosen[t])]
            else:
                undecided[n_undecided] = rows[t]
                n_undecided += 1
    return n_undecided


@jitted
def assign_in_single(
    prior, data, labels, start, stop, params, rounded, reach, slice_key, label_key, stats
):
    """Redraw the labels start .. stop - 1 and add the observations to `stats`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64 or float32, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms.
    start, stop : int
    params : ndarray of float64, shape (A, P)
    rounded : RoundedAtoms
        Result of `round_atoms`.
    reach : Reach
    slice_key, label_key : uint64
    stats : ndarray of float64, shape (A, S)
        Added to.

    Returns
    -------
    int
        Number of observations that were drawn from masses of float64.
    """
    n_atoms, n_redone, keys = params.shape[0], 0, (slice_key, label_key)
    room, in_double = new_single_tile_room(prior, n_atoms), new_tile_room(prior, data, n_atoms)
    visits, size = new_visits(reach.by_slice), BLOCK if reach.by_slice else CHUNK
    order, undecided = visits.members, np.empty(size, np.int64)
    members, bounds = np.empty(CHUNK, np.int64), np.empty(n_atoms + 1, np.int64)
    for block in range(start, stop, size):
        block_stop = min(stop, block + size)
        if reach.by_slice:
            order = fill_visits(labels, block, block_stop, reach, slice_key, visits)
        n_left = _assign_block(
            prior, data, labels, block, block_stop, rounded, reach, *keys, order, room, undecided
        )
        left = undecided[:n_left]
        decide(prior, data, labels, left, params, reach, slice_key, label_key, in_double)
        n_redone += n_left
        add_by_chunks(prior, data, labels, block, block_stop, members, bounds, stats)
    return n_redone
