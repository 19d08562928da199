"""Observations whose labels a cheaper computation leaves undecided, drawn with all atoms."""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.base import load_tile
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.moves.sweep.group_factors import find_groups, new_groups
from pymc_dpsplit.moves.sweep.tile_labels import choose_again, fill_active, fill_own, fill_slices


class RoomToDecide(NamedTuple):
    """Scratch arrays of `decide`; shapes as in `moves.sweep.tile_labels`."""

    rows: np.ndarray
    chosen: np.ndarray
    active: np.ndarray
    position: np.ndarray
    own: np.ndarray
    groups: np.ndarray
    tile: Any
    log_mass: np.ndarray
    slices: np.ndarray
    scratch: np.ndarray


@jitted
def new_room_to_decide(prior, data, n_atoms):
    """Allocate `RoomToDecide`."""
    return RoomToDecide(
        new_rows(),
        new_rows(),
        np.empty(n_atoms, np.int64),
        np.empty(n_atoms, np.int64),
        new_rows(),
        new_groups(),
        begin_tile(prior, data),
        new_scratch(n_atoms).reshape(n_atoms, TILE),
        new_scratch(1),
        new_scratch(4),
    )


@jitted
def decide(prior, data, labels, undecided, params, reach, slice_key, label_key, room):
    """Redraw the labels of the observations `undecided` with all atoms.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
        Overwritten by indices of atoms; before, those of `undecided` are clusters.
    undecided : ndarray of int64, shape (n,)
    params : ndarray of float64, shape (A, P)
    reach : Reach
    slice_key, label_key : uint64
    room : RoomToDecide
    """
    rows, chosen, active = room.rows, room.chosen, room.active
    for first in range(0, undecided.shape[0], TILE):
        fill_members(rows, undecided, first)
        load_tile(prior, data, rows, room.tile)
        lowest = fill_slices(rows, labels, reach.slice_bounds, slice_key, room.slices)
        find_groups(reach.factors, rows, room.groups)
        n_active = fill_active(
            prior,
            room.tile,
            params,
            reach,
            room.slices,
            lowest,
            room.groups,
            active,
            room.log_mass,
            room.scratch,
        )
        fill_own(rows, labels, active, n_active, room.position, room.own)
        choose_again(room.log_mass, n_active, rows, label_key, room.own, chosen, room.scratch)
        for t in range(min(TILE, undecided.shape[0] - first)):
            labels[rows[t]] = active[chosen[t]]
