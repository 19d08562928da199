"""The labels of one tile of the sweep: slices, masses of the atoms in reach, and the draw."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import fill_log_density
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.mass import accumulate, count_below
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of, row_of


class Reach(NamedTuple):
    """Which slices reach the atoms of a sweep, and the order in which masses are laid end to end.

    Attributes
    ----------
    caps : ndarray of float64, shape (A,)
        Ends of their slices.
    order : ndarray of int64, shape (A,)
        The atoms by weight: not by number, which depends on the labels, see eq. (154).
    """

    caps: np.ndarray
    order: np.ndarray


# How often a label is drawn without regard to the present one.  Were it never, observations that
# are as likely here as there would go to and fro in step.
_ANEW = 0.2


@kernel
def fill_slices(rows, labels, caps, slice_key, slices):
    """Write the slice variables of a tile; return the smallest."""
    for t in range(TILE):
        slices[t] = hash_uniform(slice_key, rows[t])
    for t in range(TILE):
        slices[t] *= caps[labels[rows[t]]]
    return smallest(slices)


@kernel
def smallest(values):
    """Smallest element of a tile; four partial minima, as one chain of comparisons is slow."""
    m0, m1, m2, m3 = values[0], values[1], values[2], values[3]
    for t in range(4, TILE, 4):
        v0, v1, v2, v3 = values[t], values[t + 1], values[t + 2], values[t + 3]
        m0 = v0 if v0 < m0 else m0
        m1 = v1 if v1 < m1 else m1
        m2 = v2 if v2 < m2 else m2
        m3 = v3 if v3 < m3 else m3
    return min(min(m0, m1), min(m2, m3))


@kernel
def fill_mass(prior, tile, atom, cap, floor, slices, mass, scratch):
    """Write the log masses of one atom: -inf where the slice is out of its reach."""
    fill_log_density(prior, tile, atom, mass, scratch)
    if cap < floor:
        for t in range(TILE):
            mass[t] = mass[t] if slices[t] < cap else -np.inf


@kernel
def fill_active(prior, tile, params, reach, floor, slices, lowest, active, log_mass, scratch):
    """Write the log masses of the atoms in reach of a tile; return how many there are.

    Parameters
    ----------
    params : ndarray of float64, shape (A, P)
    reach : Reach
    floor : float
        The largest cap there is.
    slices : ndarray of float64, shape (TILE,)
    lowest : float
        The smallest of `slices`.
    active : ndarray of int64, shape (A,)
        Written: which atoms.
    log_mass : ndarray of float64, shape (A, TILE)
        Written, as many rows.
    scratch : ndarray of float64, shape (4 * TILE,)
    """
    n_active, caps = 0, reach.caps
    for k in reach.order:
        if caps[k] > lowest:
            mass = row_of(log_mass, n_active)
            fill_mass(prior, tile, row_of(params, k), caps[k], floor, slices, mass, scratch)
            active[n_active] = k
            n_active += 1
    return n_active


@kernel
def choose_in_tile(log_mass, n_active, rows, label_key, chosen, scratch):
    """Draw an active atom for each observation of a tile by inverting the cumulative mass.

    Parameters
    ----------
    log_mass : ndarray of float64, shape (>= n_active, TILE)
        Unnormalised log probabilities, not all -inf in a column; overwritten.
    chosen : ndarray of int64, shape (TILE,)
        Written: a row of `log_mass` for each observation.
    scratch : ndarray of float64, shape (>= 2 * TILE,)
    """
    highest, target = part_of(scratch, 0, TILE), part_of(scratch, TILE, TILE)
    accumulate(log_mass, n_active, highest, target)
    for t in range(TILE):
        target[t] *= hash_uniform(label_key, rows[t])
    count_below(log_mass, n_active - 1, target, chosen)


@kernel
def fill_own(rows, labels, active, n_active, position, own):
    """Write which row of the log masses of a tile is that of each observation's present label.

    Parameters
    ----------
    active : ndarray of int64, shape (>= n_active,)
        The atoms in reach, see `fill_active`.
    position : ndarray of int64, shape (A,)
        Room for the inverse of `active`.
    own : ndarray of int64, shape (TILE,)
        Written.
    """
    for a in range(n_active):
        position[active[a]] = a
    for t in range(TILE):
        own[t] = position[labels[rows[t]]]


@kernel
def fill_targets(cumulative, own, rows, label_key, target):
    """Replace the total mass of each observation by the point on which its new label falls.

    The point lies anywhere, or half of the mass away from a point of the present label, eq. (154).
    """
    for t in range(TILE):
        u = hash_uniform(label_key, rows[t])
        high = cumulative[own[t], t]
        low = cumulative[own[t] - 1, t] if own[t] > 0 else 0.0
        within = low + (u - _ANEW) / (1.0 - _ANEW) * (high - low)
        half = 0.5 * target[t]
        across = within + half if within < half else within - half
        target[t] = target[t] * (u / _ANEW) if u < _ANEW else across


@kernel
def choose_again(log_mass, n_active, rows, label_key, own, chosen, scratch):
    """Draw an active atom for each observation, rather another than the present one, eq. (154).

    Parameters
    ----------
    own : ndarray of int64, shape (TILE,)
        See `fill_own`.
    log_mass, chosen, scratch
        See `choose_in_tile`.
    """
    highest, target = part_of(scratch, 0, TILE), part_of(scratch, TILE, TILE)
    accumulate(log_mass, n_active, highest, target)
    fill_targets(log_mass, own, rows, label_key, target)
    count_below(log_mass, n_active - 1, target, chosen)


@kernel
def group_by_label(labels, rows, bounds, members):
    """Sort the observations `rows` by label: group k is members[bounds[k] : bounds[k + 1]].

    Parameters
    ----------
    rows : ndarray of int64, shape (n,)
    bounds : ndarray of int64, shape (A + 1,)
    members : ndarray of int64, shape (>= n,)
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
    # Filled from the back, each bound ends where its group begins.
    for j in range(rows.shape[0] - 1, -1, -1):
        k = labels[rows[j]]
        bounds[k] -= 1
        members[bounds[k]] = rows[j]
