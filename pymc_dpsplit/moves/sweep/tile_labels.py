"""Labels of one tile of the sweep: slice variables, masses of the atoms in reach, and the draw.

The mass of an atom for an observation is its unnormalised probability in eq. (2.3).
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.base import fill_log_density
from pymc_dpsplit.kernels.jit import jitted_copied, jitted_inlined
from pymc_dpsplit.kernels.mass import accumulate, count_below, count_between
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of, row_of
from pymc_dpsplit.moves.sweep.group_factors import add_group_factors


class Reach(NamedTuple):
    """Ends of the slices of the atoms, and the orders in which atoms and observations are taken.

    Attributes
    ----------
    slice_bounds : ndarray of float64, shape (A,)
        Upper end g(pi_k) of the slices of each atom.
    order : ndarray of int64, shape (A,)
        Atoms by ascending weight, in which masses are accumulated.  Atom numbers would not do: they
        depend on the labels, see eq. (2.8).
    floor : float
        The floor c of the slices; an atom that heavy is in reach of every observation.
    by_slice : bool
        Whether observations with similar slices share a tile, see `moves.sweep.visits`.
    factors : GroupFactors or None
        Factors of the masses that depend on the group of an observation; None without groups.
    """

    slice_bounds: np.ndarray
    order: np.ndarray
    floor: float
    by_slice: bool
    factors: Any


# Probability of a draw independent of the present label.  Without it, observations that two
# clusters explain equally well would switch between them at every sweep, in step.
_ANEW = 0.2


@jitted_copied
def fill_slices(rows, labels, slice_bounds, slice_key, slices):
    """Write the slice variables of a tile and return the smallest.

    Parameters
    ----------
    rows : ndarray of int64, shape (TILE,)
    labels : ndarray of int32, shape (N,)
    slice_bounds : ndarray of float64, shape (A,)
    slice_key : uint64
    slices : ndarray of float64, shape (TILE,)
        Overwritten.

    Returns
    -------
    float
    """
    for t in range(TILE):
        slices[t] = hash_uniform(slice_key, rows[t])
    for t in range(TILE):
        slices[t] *= slice_bounds[np.uint64(labels[np.uint64(rows[t])])]
    return smallest(slices)


@jitted_copied
def smallest(values):
    """Smallest element of a tile; four partial minima, as a single chain of comparisons is slow.

    Parameters
    ----------
    values : ndarray of float64, shape (TILE,)

    Returns
    -------
    float
    """
    m0, m1, m2, m3 = values[0], values[1], values[2], values[3]
    for t in range(4, TILE, 4):
        v0, v1, v2, v3 = values[t], values[t + 1], values[t + 2], values[t + 3]
        m0 = v0 if v0 < m0 else m0
        m1 = v1 if v1 < m1 else m1
        m2 = v2 if v2 < m2 else m2
        m3 = v3 if v3 < m3 else m3
    return min(min(m0, m1), min(m2, m3))


@jitted_copied
def fill_mass(prior, tile, atom, cap, floor, slices, mass, scratch):
    """Write the log masses of one atom for a tile, -inf where the atom is out of reach.

    Parameters
    ----------
    prior : NamedTuple
    tile : object
        Observations of the tile, see `load_tile`.
    atom : ndarray of float64, shape (P,)
    cap : float
        Upper end of the atom's slices.
    floor : float
        The floor c; an atom with this cap is always in reach.
    slices, mass : ndarrays of float64, shape (TILE,)
    scratch : ndarray of float64, shape (4 * TILE,)
    """
    fill_log_density(prior, tile, atom, mass, scratch)
    if cap < floor:
        for t in range(TILE):
            mass[t] = mass[t] if slices[t] < cap else -np.inf


@jitted_copied
def first_in_reach(slice_bounds, order, lowest):
    """Position in `order` from which on atoms have slices that end above `lowest`.

    Parameters
    ----------
    slice_bounds : ndarray of float64, shape (A,)
    order : ndarray of int64, shape (A,)
        Atoms by ascending weight.
    lowest : float

    Returns
    -------
    int
    """
    first, stop = 0, order.shape[0]
    while first < stop:
        middle = (first + stop) // 2
        if slice_bounds[order[middle]] > lowest:
            stop = middle
        else:
            first = middle + 1
    return first


@jitted_copied
def fill_active(prior, tile, params, reach, slices, lowest, groups, active, log_mass, scratch):
    """Write the log masses of the atoms in reach of a tile and return their number.

    Parameters
    ----------
    prior : NamedTuple
    tile : object
        Observations of the tile, see `load_tile`.
    params : ndarray of float64, shape (A, P)
    reach : Reach
    slices : ndarray of float64, shape (TILE,)
    lowest : float
        The smallest of `slices`.
    groups : ndarray of int64, shape (TILE + TILE // RUN,)
        Result of `find_groups`.
    active : ndarray of int64, shape (A,)
        Overwritten by the indices of the atoms.
    log_mass : ndarray of float64, shape (A, TILE)
        One row is written per atom in reach.
    scratch : ndarray of float64, shape (4 * TILE,)

    Returns
    -------
    int
    """
    # Not within the loop: references to arrays of a NamedTuple are counted, see `kernels.jit`.
    slice_bounds, order, floor = reach.slice_bounds, reach.order, reach.floor
    factors = reach.factors
    first = first_in_reach(slice_bounds, order, lowest)
    n_active = order.shape[0] - first
    for a in range(n_active):
        k, mass = order[first + a], row_of(log_mass, a)
        fill_mass(prior, tile, row_of(params, k), slice_bounds[k], floor, slices, mass, scratch)
        add_group_factors(factors, k, groups, mass)
        active[a] = k
    return n_active


@jitted_copied
def choose_in_tile(log_mass, n_active, rows, label_key, chosen, scratch):
    """Draw an active atom for each observation of a tile by inverting the cumulative mass.

    Parameters
    ----------
    log_mass : ndarray of float64, shape (>= n_active, TILE)
        Unnormalised log probabilities, not all -inf in a column; overwritten.
    n_active : int
    rows : ndarray of int64, shape (TILE,)
    label_key : uint64
    chosen : ndarray of int64, shape (TILE,)
        Overwritten by a row of `log_mass` for each observation.
    scratch : ndarray of float64, shape (>= 2 * TILE,)
    """
    highest, target = part_of(scratch, 0, TILE), part_of(scratch, TILE, TILE)
    accumulate(log_mass, n_active, highest, target)
    for t in range(TILE):
        target[t] *= hash_uniform(label_key, rows[t])
    count_below(log_mass, n_active - 1, target, chosen)


@jitted_copied
def fill_own(rows, labels, active, n_active, position, own):
    """Write the row of `log_mass` that belongs to each observation's present label.

    Parameters
    ----------
    rows : ndarray of int64, shape (TILE,)
    labels : ndarray of int32, shape (N,)
    active : ndarray of int64, shape (>= n_active,)
        Atoms in reach, see `fill_active`.
    n_active : int
    position : ndarray of int64, shape (A,)
        Scratch for the inverse of `active`.
    own : ndarray of int64, shape (TILE,)
        Overwritten.
    """
    for a in range(n_active):
        position[active[a]] = a
    for t in range(TILE):
        own[t] = position[np.uint64(labels[np.uint64(rows[t])])]


@jitted_copied
def fill_targets(cumulative, own, rows, label_key, target, uniforms, ends):
    """Replace each total mass by the point of the cumulative mass that selects the new label.

    The point is uniform, or half the total away from a point of the present label, eq. (2.8).
    The loops are separate so that all but the one that looks up masses are vector code.

    Parameters
    ----------
    cumulative : ndarray of float64, shape (>= n_active, TILE)
        Cumulative masses.
    own : ndarray of int64, shape (TILE,)
        See `fill_own`.
    rows : ndarray of int64, shape (TILE,)
    label_key : uint64
    target : ndarray of float64, shape (TILE,)
        Total masses; overwritten.
    uniforms : ndarray of float64, shape (TILE,)
        Scratch.
    ends : ndarray of float64, shape (2 * TILE,)
        Scratch for the cumulative masses before and after the present label.
    """
    low, high = part_of(ends, 0, TILE), part_of(ends, TILE, TILE)
    for t in range(TILE):
        uniforms[t] = hash_uniform(label_key, rows[t])
    for t in range(TILE):
        high[t] = cumulative[np.uint64(own[t]), t]
        low[t] = cumulative[np.uint64(max(own[t] - 1, 0)), t]
    for t in range(TILE):
        low[t] = low[t] if own[t] > 0 else 0.0
    for t in range(TILE):
        u, half = uniforms[t], 0.5 * target[t]
        within = low[t] + (u - _ANEW) / (1.0 - _ANEW) * (high[t] - low[t])
        across = within + half if within < half else within - half
        target[t] = target[t] * (u / _ANEW) if u < _ANEW else across


@jitted_copied
def choose_again(log_mass, n_active, rows, label_key, own, chosen, scratch):
    """Draw an active atom for each observation by over-relaxation, eq. (2.8).

    Parameters
    ----------
    log_mass : ndarray of float64, shape (>= n_active, TILE)
        Unnormalised log probabilities; overwritten.
    n_active : int
    rows : ndarray of int64, shape (TILE,)
    label_key : uint64
    own : ndarray of int64, shape (TILE,)
        See `fill_own`.
    chosen : ndarray of int64, shape (TILE,)
        Overwritten by a row of `log_mass` for each observation.
    scratch : ndarray of float64, shape (>= 4 * TILE,)
    """
    highest, target = part_of(scratch, 0, TILE), part_of(scratch, TILE, TILE)
    accumulate(log_mass, n_active, highest, target)
    ends = part_of(scratch, 2 * TILE, 2 * TILE)
    # The largest masses are not needed again, so that their room may hold the uniforms.
    fill_targets(log_mass, own, rows, label_key, target, highest, ends)
    count_below(log_mass, n_active - 1, target, chosen)


@jitted_inlined
def choose_certainly(log_mass, n_rows, at_zero, slope, rows, label_key, own, chosen, sums, scratch):
    """Like `choose_again`, but mark with -1 the draws that errors of the masses could change.

    Parameters
    ----------
    log_mass : ndarray of float64 or float32, shape (>= n_rows, TILE)
        Unnormalised log probabilities; overwritten.
    n_rows : int
    at_zero, slope : float
        Where the largest log mass is m, the point of eq. (2.8) must differ from 0, from each
        cumulative mass and from their total by more than ``at_zero - slope * m`` of the total.
    rows : ndarray of int64, shape (TILE,)
    label_key : uint64
    own : ndarray of int64, shape (TILE,)
        See `fill_own`.
    chosen : ndarray of int64, or int32 for float32, shape (TILE,)
        Overwritten by a row of `log_mass` for each observation, or -1.
    sums : ndarray of the type of the masses, shape (>= 4 * TILE,)
        Scratch.
    scratch : ndarray of float64, shape (>= 4 * TILE,)
    """
    highest, total = part_of(sums, 0, TILE), part_of(sums, TILE, TILE)
    lower, upper = part_of(sums, 2 * TILE, TILE), part_of(sums, 3 * TILE, TILE)
    target, uniforms = part_of(scratch, 0, TILE), part_of(scratch, TILE, TILE)
    ends = part_of(scratch, 2 * TILE, 2 * TILE)
    accumulate(log_mass, n_rows, highest, total)
    for t in range(TILE):
        target[t] = total[t]
    fill_targets(log_mass, own, rows, label_key, target, uniforms, ends)
    at_zero, slope = sums.dtype.type(at_zero), sums.dtype.type(slope)
    for t in range(TILE):
        slack = (at_zero - slope * highest[t]) * total[t]
        lower[t], upper[t] = target[t] - slack, target[t] + slack
    count_between(log_mass, n_rows, lower, upper, chosen)
    for t in range(TILE):
        # Near 0 and the total an error could wrap the point around.
        is_inside = lower[t] > 0.0 and upper[t] < total[t]
        chosen[t] = chosen[t] if is_inside else -1


@jitted_copied
def group_by_label(labels, rows, bounds, members):
    """Sort the observations `rows` by label: group k is members[bounds[k] : bounds[k + 1]].

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    rows : ndarray of int64, shape (n,)
    bounds : ndarray of int64, shape (A + 1,)
        Overwritten.
    members : ndarray of int64, shape (>= n,)
        Overwritten.
    """
    n_groups = bounds.shape[0] - 1
    bounds[:] = 0
    for j in range(rows.shape[0]):
        bounds[labels[rows[j]]] += 1
    end = 0
    for k in range(n_groups):
        end += bounds[k]
        bounds[k] = end
    bounds[n_groups] = end
    # Groups are filled from the back, so that each bound ends where its group begins.
    for j in range(rows.shape[0] - 1, -1, -1):
        k = labels[rows[j]]
        bounds[k] -= 1
        members[bounds[k]] = rows[j]
