"""Sweep that computes masses in float32 and draws the labels of float64, bit for bit.

Vectors of float32 hold twice as many numbers.  The rounding errors are bounded for each
observation, eq. (2.10).  Where the point that selects a label is nearer to the end of an interval
than this bound allows, the label is drawn from masses of float64.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import add_groups, add_labelled, load_tile, tile_size
from pymc_dpsplit.kernels.jit import jitted, jitted_copied, jitted_inlined
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.norms import largest_norm
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch, new_single_scratch
from pymc_dpsplit.kernels.views import part_of
from pymc_dpsplit.moves.sweep.group_factors import new_groups
from pymc_dpsplit.moves.sweep.tile_labels import (
    choose_certainly,
    fill_active,
    fill_own,
    fill_slices,
    group_by_label,
)
from pymc_dpsplit.moves.sweep.undecided import decide, new_room_to_decide
from pymc_dpsplit.moves.sweep.visits import BLOCK, fill_tile, fill_visits, new_visits

# Observations sorted by label at a time, so that the statistics of a cluster are loaded once.
_CHUNK = 1024
# Relative error of a number rounded to float32.
_UNIT = 2.0**-24
# Largest bound relative to the total mass: beyond, too many labels would be drawn twice.
_MOST_SLACK = 2.0**-5
# Largest numbers in tiles and parameters; the smallest of float32 times these is below its unit.
_MOST = 1e30


class Room(NamedTuple):
    """Scratch arrays of the tiles; shapes as in `moves.sweep.tile_labels`.

    Those of float32 are `tile`, `log_mass`, `sums`, the largest masses, totals, slacks and ends of
    a tile, and `work`.
    """

    rows: np.ndarray
    chosen: np.ndarray
    active: np.ndarray
    position: np.ndarray
    own: np.ndarray
    groups: np.ndarray
    tile: np.ndarray
    log_mass: np.ndarray
    sums: np.ndarray
    work: np.ndarray
    slices: np.ndarray
    scratch: np.ndarray


@jitted
def _new_room(prior, n_atoms):
    return Room(
        new_rows(),
        np.empty(TILE, np.int32),
        np.empty(n_atoms, np.int64),
        np.empty(n_atoms, np.int64),
        new_rows(),
        new_groups(),
        new_single_scratch(tile_size(prior)),
        new_single_scratch(n_atoms).reshape(n_atoms, TILE),
        new_single_scratch(5),
        new_single_scratch(4),
        new_scratch(1),
        new_scratch(4),
    )


@jitted
def atoms_in_single(params):
    """Round parameters to float32, their constants less the largest, which leaves more digits.

    Parameters
    ----------
    params : ndarray of float64, shape (A, P)

    Returns
    -------
    atoms : ndarray of float32, shape (A, P)
    largest : float
        Absolute value of the largest parameter but for the constants.
    """
    atoms, highest, largest = np.empty(params.shape, np.float32), -np.inf, 0.0
    for k in range(params.shape[0]):
        highest = max(highest, params[k, 0])
    for k in range(params.shape[0]):
        atoms[k, 0] = params[k, 0] - highest
        for j in range(1, params.shape[1]):
            atoms[k, j] = params[k, j]
            largest = max(largest, abs(params[k, j]))
    return atoms, largest


@jitted_copied
def slack_of(rounding, norm, n_features, n_atoms):
    """Bound the errors of cumulative masses relative to the total, eq. (2.10).

    Parameters
    ----------
    rounding : tuple of two floats
        Result of `rounding_in_single`.
    norm : float
        Largest norm of the observations.
    n_features, n_atoms : int

    Returns
    -------
    at_zero, slope : float
        The bound for an observation whose largest log mass is m is ``at_zero - slope * m``.
    """
    per_norm, constant = rounding
    error = _UNIT * (per_norm * norm + constant)
    log_atoms = math.log(n_atoms)
    slope = 0.25 * error + _UNIT * (n_features + 4.0)
    at_zero = 2.0 * error + 0.5 * error * error + _UNIT * (n_atoms + 3.0 * log_atoms + 4.0)
    return 4.0 * (at_zero + slope * log_atoms), 4.0 * slope


@jitted_inlined
def _choose_in_single(
    cumulative, n_active, at_zero, slope, rows, label_key, own, chosen, sums, scratch
):
    """Draw an active atom for each observation from log masses of float32, or -1 if they cannot."""
    highest, total = part_of(sums, 0, TILE), part_of(sums, TILE, TILE)
    slack, ends = part_of(sums, 2 * TILE, TILE), part_of(sums, 3 * TILE, 2 * TILE)
    accumulate(cumulative, n_active, highest, total)
    for t in range(TILE):
        slack[t] = (np.float32(at_zero) - np.float32(slope) * highest[t]) * total[t]
    choose_certainly(
        cumulative, n_active, total, slack, rows, label_key, own, chosen, ends, scratch
    )


@jitted
def _assign_block(
    prior,
    data,
    labels,
    block,
    stop,
    atoms,
    rounding,
    reach,
    slice_key,
    label_key,
    order,
    room,
    undecided,
):
    """Redraw the labels block .. stop - 1 where float32 suffices; return how many it leaves."""
    n_undecided, n_features, n_atoms = 0, tile_size(prior), atoms.shape[0]
    # Not within the loop: references to arrays of a NamedTuple are counted, see `kernels.jit`.
    rows, chosen, active = room.rows, room.chosen, room.active
    own, groups, position = room.own, room.groups, room.position
    tile, log_mass, sums, work = room.tile, room.log_mass, room.sums, room.work
    slices, scratch, slice_bounds, by_slice = (
        room.slices,
        room.scratch,
        reach.slice_bounds,
        reach.by_slice,
    )
    for first in range(block, stop, TILE):
        fill_tile(rows, first, block, stop, by_slice, order)
        load_tile(prior, data, rows, tile)
        norm = largest_norm(tile, n_features)
        at_zero, slope = slack_of(rounding, norm, n_features, n_atoms)
        if at_zero < _MOST_SLACK and norm < _MOST:
            lowest = fill_slices(rows, labels, slice_bounds, slice_key, slices)
            n_active = fill_active(
                prior, tile, atoms, reach, slices, lowest, groups, active, log_mass, work
            )
            fill_own(rows, labels, active, n_active, position, own)
            _choose_in_single(
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
    prior, data, labels, start, stop, params, rounding, reach, slice_key, label_key, stats
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
    rounding : tuple of two floats
        Result of `rounding_in_single`.
    reach : Reach
        Without factors of groups.
    slice_key, label_key : uint64
    stats : ndarray of float64, shape (A, S)
        Added to.

    Returns
    -------
    int
        Number of observations that were drawn from masses of float64.
    """
    n_atoms, n_redone = params.shape[0], 0
    (atoms, largest), room = atoms_in_single(params), _new_room(prior, n_atoms)
    if not largest < _MOST:
        rounding = np.inf, np.inf
    in_double, visits = new_room_to_decide(prior, data, n_atoms), new_visits(reach.by_slice)
    size = BLOCK if reach.by_slice else _CHUNK
    order, undecided = visits.members, np.empty(size, np.int64)
    members, bounds = np.empty(_CHUNK, np.int64), np.empty(n_atoms + 1, np.int64)
    for block in range(start, stop, size):
        block_stop = min(stop, block + size)
        if reach.by_slice:
            order = fill_visits(labels, block, block_stop, reach, slice_key, visits)
        n_left = _assign_block(
            prior,
            data,
            labels,
            block,
            block_stop,
            atoms,
            rounding,
            reach,
            slice_key,
            label_key,
            order,
            room,
            undecided,
        )
        left = undecided[:n_left]
        decide(prior, data, labels, left, params, reach, slice_key, label_key, in_double)
        n_redone += n_left
        for chunk in range(block, block_stop, _CHUNK):
            chunk_stop = min(block_stop, chunk + _CHUNK)
            if not add_labelled(prior, data, labels, chunk, chunk_stop, stats):
                group_by_label(labels, np.arange(chunk, chunk_stop), bounds, members)
                add_groups(prior, data, members, bounds, stats)
    return n_redone
