"""Sweep that skips atoms of negligible probability and draws the same labels, bit for bit.

Observations are sorted by their present label, so that those of one tile are alike.  An atom is
dropped for a tile if upper bounds show that its probability is less than SMALL times that of
the present cluster for every observation.  The uniform of the draw is compared with the cumulative
masses of the other atoms.  An observation whose uniform is so close to one of them that the
dropped mass could change its label is redrawn with all atoms; docs/method.md, eq. (2.4)-(2.5).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    add_groups,
    fill_excess,
    fill_log_density,
    find_bounds,
    load_tile,
)
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined
from pymc_dpsplit.kernels.rows import first_column_sum
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_scratch
from pymc_dpsplit.kernels.views import part_of, row_of
from pymc_dpsplit.moves.sweep.group_factors import add_group_factors, find_groups
from pymc_dpsplit.moves.sweep.tile_labels import (
    choose_certainly,
    fill_mass,
    fill_own,
    fill_slices,
    first_in_reach,
    group_by_label,
)
from pymc_dpsplit.moves.sweep.tile_room import new_tile_room
from pymc_dpsplit.moves.sweep.undecided import decide

# An atom is dropped below this mass, relative to that of the present cluster.
SMALL = 2.0**-20
# Observations sorted at a time.
_CHUNK = 8192
# Work per observation besides the densities of the atoms kept, in units of one density, and the
# share of the unpruned work above which pruning does not pay; measured, see
# docs/decisions/0016-pruning.md.
_OVERHEAD = 3.0
_WORTH = 0.6


class Pruning(NamedTuple):
    """Rule by which one sweep drops atoms.

    Attributes
    ----------
    bounds : ndarray of float64, shape (K, any)
        Result of `find_bounds`; empty if pruning does not pay.
    log_small : float
        Logarithm of the relative mass below which an atom is dropped.
    slack : float
        How much each dropped atom can change a cumulative mass, relative to the total.
    """

    bounds: np.ndarray
    log_small: float
    slack: float


@jitted
def plan_pruning(prior, stats, params, n_strips):
    """Compute bounds for the atoms of a sweep and decide from them whether pruning pays.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics before the sweep.
    params : ndarray of float64, shape (A, P)
        Atoms of the sweep, the K clusters first.
    n_strips : int

    Returns
    -------
    Pruning or None
        None if the family has no bounds.
    """
    return _plan(find_bounds(prior, params, stats.shape[0]), stats, n_strips)


@jitted
def _plan(found, stats, n_strips):
    if found is None:
        return None
    bounds, forecast = found
    # Half of the tolerance is left for rounding of the bounds.
    log_small = math.log(0.5 * SMALL)
    n_obs = first_column_sum(stats)
    # The last tile of a cluster is half empty on average.
    n_padding = 0.5 * TILE * max(n_strips, n_obs / _CHUNK)
    work = 0.0
    for z in range(forecast.shape[0]):
        n_kept = _OVERHEAD
        for k in range(forecast.shape[1]):
            n_kept += 1.0 if forecast[z, k] > log_small else 0.0
        work += (stats[z, 0] + n_padding) * n_kept
    if work > _WORTH * n_obs * stats.shape[0]:
        bounds = np.empty((0, 0))
    return Pruning(bounds, log_small, SMALL)


class Room(NamedTuple):
    """Scratch arrays of a strip besides those of `TileRoom`.

    Attributes
    ----------
    reference : ndarray of float64, shape (TILE,)
        Log masses of the present cluster.
    excess : ndarray of float64
        See `fill_excess`.
    undecided, members, bounds : ndarrays of int64
        Observations that are left, and others by label, see `group_by_label`.
    """

    reference: np.ndarray
    excess: np.ndarray
    undecided: np.ndarray
    members: np.ndarray
    bounds: np.ndarray


@jitted
def _new_room(n_atoms, n_members):
    return Room(
        new_scratch(1),
        np.empty(n_atoms + 3),
        np.empty(n_members, np.int64),
        np.empty(n_members, np.int64),
        np.empty(n_atoms + 1, np.int64),
    )


@jitted_inlined
def _fill_kept(prior, own, params, reach, lowest, pruning, tiles, room):
    """Write the log masses of the atoms kept for a tile; return how many are kept and dropped."""
    log_small, slice_bounds, order = pruning.log_small, reach.slice_bounds, reach.order
    factors, groups, slices, scratch = reach.factors, tiles.groups, tiles.slices, tiles.scratch
    active, tile, log_mass = tiles.active, tiles.tile, tiles.log_mass
    reference, excess = room.reference, room.excess
    n_near = slice_bounds.shape[0]
    while slice_bounds[n_near - 1] <= lowest:
        n_near -= 1
    fill_log_density(prior, tile, row_of(params, own), reference, scratch)
    add_group_factors(factors, own, groups, reference)
    near = part_of(excess, 0, (n_near + 3) // 4 * 4)
    fill_excess(prior, tile, row_of(pruning.bounds, own), reference, near)
    n_kept, n_dropped = 0, 0
    for a in range(first_in_reach(slice_bounds, order, lowest), order.shape[0]):
        k = order[a]
        if k != own and excess[k] < log_small:
            n_dropped += 1
        else:
            mass = row_of(log_mass, n_kept)
            if k == own:
                for t in range(TILE):
                    mass[t] = reference[t]
            else:
                fill_mass(
                    prior,
                    tile,
                    row_of(params, k),
                    slice_bounds[k],
                    reach.floor,
                    slices,
                    mass,
                    scratch,
                )
                add_group_factors(factors, k, groups, mass)
            active[n_kept] = k
            n_kept += 1
    return n_kept, n_dropped


@jitted
def _assign_group(
    prior,
    data,
    labels,
    own,
    group,
    params,
    reach,
    pruning,
    slice_key,
    label_key,
    tiles,
    room,
    n_undecided,
):
    """Redraw the labels of one cluster's observations; return the numbers decided and undecided.

    Decided observations move to the front of `group`, undecided ones to `room.undecided`.
    """
    n_decided = 0
    for first in range(0, group.shape[0], TILE):
        fill_members(tiles.rows, group, first)
        load_tile(prior, data, tiles.rows, tiles.tile)
        lowest = fill_slices(tiles.rows, labels, reach.slice_bounds, slice_key, tiles.slices)
        find_groups(reach.factors, tiles.rows, tiles.groups)
        n_kept, n_dropped = _fill_kept(prior, own, params, reach, lowest, pruning, tiles, room)
        # One more than the number dropped, for rounding of the sums.
        slack = (n_dropped + 1) * pruning.slack
        fill_own(tiles.rows, labels, tiles.active, n_kept, tiles.position, tiles.own)
        choose_certainly(
            tiles.log_mass,
            n_kept,
            slack,
            0.0,
            tiles.rows,
            label_key,
            tiles.own,
            tiles.chosen,
            tiles.sums,
            tiles.scratch,
        )
        n_decided, n_undecided = _keep_decided(
            labels,
            tiles.rows,
            min(TILE, group.shape[0] - first),
            tiles.chosen,
            tiles.active,
            group,
            n_decided,
            room.undecided,
            n_undecided,
        )
    return n_decided, n_undecided


@jitted_inlined
def _keep_decided(labels, rows, n_rows, chosen, active, decided, n_decided, undecided, n_undecided):
    for t in range(n_rows):
        if chosen[t] >= 0:
            labels[rows[t]] = active[chosen[t]]
            decided[n_decided] = rows[t]
            n_decided += 1
        else:
            undecided[n_undecided] = rows[t]
            n_undecided += 1
    return n_decided, n_undecided


@jitted
def _add(prior, data, labels, rows, room, stats):
    """Add the observations `rows` to the statistics while they are in the cache."""
    group_by_label(labels, rows, room.bounds, room.members)
    add_groups(prior, data, room.members, room.bounds, stats)


@jitted
def assign_pruned(
    prior, data, labels, start, stop, params, reach, pruning, slice_key, label_key, stats
):
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
    pruning : Pruning
    slice_key, label_key : uint64
    stats : ndarray of float64, shape (A, S)
        Added to.

    Returns
    -------
    int
        Number of observations redrawn with all atoms.
    """
    n_atoms, size = reach.slice_bounds.shape[0], min(_CHUNK, stop - start)
    tiles, room = new_tile_room(prior, data, n_atoms), _new_room(n_atoms, size)
    present, ends = np.empty(size, np.int64), np.empty(n_atoms + 1, np.int64)
    n_redone = 0
    for chunk in range(start, stop, _CHUNK):
        group_by_label(labels, np.arange(chunk, min(stop, chunk + _CHUNK)), ends, present)
        n_undecided = 0
        for own in range(pruning.bounds.shape[0]):
            group = present[ends[own] : ends[own + 1]]
            if group.shape[0] > 0:
                n_decided, n_undecided = _assign_group(
                    prior,
                    data,
                    labels,
                    own,
                    group,
                    params,
                    reach,
                    pruning,
                    slice_key,
                    label_key,
                    tiles,
                    room,
                    n_undecided,
                )
                _add(prior, data, labels, group[:n_decided], room, stats)
        undecided = room.undecided[:n_undecided]
        decide(prior, data, labels, undecided, params, reach, slice_key, label_key, tiles)
        _add(prior, data, labels, undecided, room, stats)
        n_redone += n_undecided
    return n_redone
