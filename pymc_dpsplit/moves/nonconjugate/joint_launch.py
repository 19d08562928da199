"""Launch of a joint split or merge: modes for both sides and for the union.

The launch is a random function of the set and its anchors alone.  It must not depend on how the
set is divided at present, nor on the present parameters of its clusters (docs/method.md, launch
lemma).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import sum_log_density
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.views import part_of
from pymc_dpsplit.moves.nonconjugate.modes import climb
from pymc_dpsplit.moves.nonconjugate.parameters import best_pilot, gather_columns

_SUBSAMPLE = 300
_SCANS = 2
# Number of rows that select the draw of the base measure from which a fit starts.
_FOR_PILOTS = 32
UNION = 2  # row of the modes that belongs to the union; rows 0 and 1 belong to the sides


@jitted
def _spread_out(members, size, rng):
    """At most `size` of the members, evenly spaced from a random offset."""
    n_members = members.shape[0]
    if n_members <= size:
        return members
    some = np.empty(size, np.int64)
    offset = rng.random()
    for j in range(size):
        some[j] = members[np.int64((j + offset) * n_members / size)]
    return some


@jitted
def _nearest_anchor(prior, data, members, anchors, side):
    """Write the nearer anchor of each member into `side`, columns scaled to unit variance."""
    n, n_columns = members.shape[0], tile_size(prior)
    room = np.empty(n_columns * n)
    gather_columns(prior, data, members, room)
    ends = np.empty(n_columns * 2)
    gather_columns(prior, data, anchors, ends)
    nearer = np.zeros(n)
    for c in range(n_columns):
        column = room[c * n : (c + 1) * n]
        variance = column.var()
        if variance > 0.0:
            for i in range(n):
                first, second = column[i] - ends[2 * c], column[i] - ends[2 * c + 1]
                nearer[i] += (second * second - first * first) / variance
    for i in range(n):
        side[i] = 0 if nearer[i] > 0.0 else 1
        if members[i] == anchors[0] or members[i] == anchors[1]:
            side[i] = 0 if members[i] == anchors[0] else 1


@jitted
def fill_log_odds_of(prior, block, n_rows, log_shares, thetas, first, second):
    """Write the log densities of rows under two clusters, log shares added.

    Parameters
    ----------
    prior : NamedTuple
    block : ndarray of float64, shape (F * n_rows,)
        Columns of the rows, see `gather_columns`.
    n_rows : int
    log_shares : ndarray of float64, shape (2,)
    thetas : ndarray of float64, shape (2, P)
    first : ndarray of float64, shape (n_rows,)
        Overwritten.
    second : ndarray of float64, shape (n_rows,)
        Overwritten.
    """
    sum_log_density(prior, block, n_rows, thetas[0], first)
    sum_log_density(prior, block, n_rows, thetas[1], second)
    for i in range(n_rows):
        first[i] += log_shares[0]
        second[i] += log_shares[1]


@jitted
def _redivide(prior, data, members, anchors, log_shares, modes, rng, side):
    """Draw the side of every member given the modes; anchors are held."""
    n = members.shape[0]
    block = np.empty(tile_size(prior) * n)
    gather_columns(prior, data, members, block)
    first, second = np.empty(n), np.empty(n)
    fill_log_odds_of(prior, block, n, log_shares, modes, first, second)
    for i in range(n):
        u = rng.random()
        odds = first[i] - second[i]
        side[i] = 0 if odds > math.log((u + 1e-300) / (1.0 - u)) else 1
        if members[i] == anchors[0] or members[i] == anchors[1]:
            side[i] = 0 if members[i] == anchors[0] else 1


@jitted
def _climb_sides(prior, data, members, side, log_shares, modes, factors, n_steps):
    """Climb to the modes of both sides and set their log shares."""
    n = members.shape[0]
    room, out = np.empty(tile_size(prior) * n), np.empty(n)
    for c in range(2):
        chosen = members[side == c]
        log_shares[c] = math.log(chosen.shape[0] + 0.5)
        block = part_of(room, 0, tile_size(prior) * chosen.shape[0])
        gather_columns(prior, data, chosen, block)
        climb(prior, block, chosen.shape[0], modes[c], n_steps, factors[c], out)


@jitted
def _climb_union(prior, data, members, mode, n_steps, factor):
    n = members.shape[0]
    block, out = np.empty(tile_size(prior) * n), np.empty(n)
    gather_columns(prior, data, members, block)
    return climb(prior, block, n, mode, n_steps, factor, out)


@jitted
def joint_launch(prior, data, members, anchors, rng):
    """Fit two clusters, and one cluster, to `members`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
        Members held on sides 0 and 1.
    rng : numpy.random.Generator

    Returns
    -------
    log_shares : ndarray of float64, shape (2,)
    modes : ndarray of float64, shape (3, P)
        Modes of side 0, side 1 and the union.
    factors : ndarray of float64, shape (3, P, P)
        See `climb`.
    """
    size = prior.widths.shape[0]
    modes, factors = np.empty((3, size)), np.empty((3, size, size))
    log_shares = np.empty(2)
    some = _spread_out(members, _SUBSAMPLE, rng)
    few = _spread_out(some, _FOR_PILOTS, rng)
    block, out = np.empty(tile_size(prior) * few.shape[0]), np.empty(few.shape[0])
    gather_columns(prior, data, few, block)
    best_pilot(prior, block, few.shape[0], modes[UNION], out)
    _climb_union(prior, data, some, modes[UNION], 5, factors[UNION])
    modes[0] = modes[UNION]
    modes[1] = modes[UNION]
    side = np.empty(some.shape[0], np.int8)
    _nearest_anchor(prior, data, some, anchors, side)
    # A subsample without the anchors may leave a side empty; its posterior is then the prior.
    for _ in range(_SCANS):
        _climb_sides(prior, data, some, side, log_shares, modes, factors, 3)
        _redivide(prior, data, some, anchors, log_shares, modes, rng, side)
    if some.shape[0] < members.shape[0]:
        side = np.empty(members.shape[0], np.int8)
        _redivide(prior, data, members, anchors, log_shares, modes, rng, side)
        _climb_union(prior, data, members, modes[UNION], 2, factors[UNION])
    _climb_sides(prior, data, members, side, log_shares, modes, factors, 2)
    return log_shares, modes, factors
