"""Observations whose labels a cheaper computation leaves undecided, drawn with all atoms."""

from pymc_dpsplit.components.base import load_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_members
from pymc_dpsplit.moves.sweep.group_factors import find_groups
from pymc_dpsplit.moves.sweep.tile_labels import choose_again, fill_active, fill_own, fill_slices


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
    room : TileRoom
        Of float64.
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
