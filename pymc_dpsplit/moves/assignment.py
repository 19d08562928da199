"""The floored-slice sweep over all labels: exact, without rejection, parallel over points.

Given the measure G = sum_k pi_k delta(theta_k), observation i has a slice variable
u_i ~ U(0, g(pi_{z_i})), g(t) = min(t, c), and its new label has probability proportional to
pi_k / g(pi_k) f(x_i; theta_k) over the atoms with g(pi_k) > u_i, eq. (8)-(9).  Atoms of mass
below every u_i cannot be chosen, so finitely many sticks suffice and nothing is truncated;
c = 1 / N does not depend on the state.  An atom of mass c or more is never excluded: the sweep is
the full Gibbs sweep together with births and deaths of small clusters.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_log_density,
    load_tile,
    stats_size,
    tile_size,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_key, hash_uniform
from pymc_dpsplit.kernels.special import exp_inplace
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch, new_tile
from pymc_dpsplit.moves.measure import break_remainder, draw_measure

_MOST_STRIPS = 16
_LEAST_STRIP = 4096


@kernel
def slice_caps(log_weights, floor):
    """Upper end g(pi_k) = min(pi_k, c) of the slices of each atom."""
    caps = np.empty(log_weights.shape[0])
    for k in range(caps.shape[0]):
        caps[k] = min(math.exp(log_weights[k]), floor)
    return caps


@kernel
def lowest_slice(labels, caps, slice_key):
    """Smallest slice variable of all observations."""
    lowest = 1.0
    for i in range(labels.shape[0]):
        u = hash_uniform(slice_key, i) * caps[labels[i]]
        lowest = u if u < lowest else lowest
    return lowest


@kernel
def prepare_sweep(prior, stats, labels, alpha, rng):
    """Draw everything of the sweep that is not per observation.

    Returns
    -------
    log_weights, params : ndarrays, shapes (A,), (A, P)
        The A atoms in reach of some slice, the occupied ones first.
    caps : ndarray of float64, shape (A,)
    slice_key, label_key : uint64
    """
    floor = 1.0 / labels.shape[0]
    log_weights, log_rest, params = draw_measure(prior, stats, alpha, rng)
    slice_key, label_key = draw_key(rng), draw_key(rng)
    lowest = lowest_slice(labels, slice_caps(log_weights, floor), slice_key)
    log_weights, params = break_remainder(
        prior, log_weights, log_rest, params, alpha, math.log(lowest), rng
    )
    return log_weights, params, slice_caps(log_weights, floor), slice_key, label_key


@kernel
def strip_count(n_obs):
    """Number of strips: a function of N alone, so that sums do not depend on the threads."""
    return max(1, min(_MOST_STRIPS, n_obs // _LEAST_STRIP))


@kernel
def strip_bounds(n_obs, strip):
    """First observation of a strip, and of the next; multiples of TILE except the end."""
    n_strips = strip_count(n_obs)
    tiles = (n_obs + TILE - 1) // TILE
    start = min(n_obs, strip * tiles // n_strips * TILE)
    stop = min(n_obs, (strip + 1) * tiles // n_strips * TILE)
    return start, stop


@kernel
def choose_in_tile(log_mass, n_active, rows, label_key, chosen, scratch):
    """Draw an active atom for each observation of a tile by inverting the cumulative mass.

    Parameters
    ----------
    log_mass : ndarray of float64, shape (>= n_active, TILE)
        Unnormalised log probabilities, not all -inf in a column; overwritten.
    chosen : ndarray of int64, shape (TILE,)
        Written: a row of `log_mass` for each observation.
    scratch : ndarray of float64, shape (4 * TILE,)
    """
    highest, running = scratch[:TILE], scratch[TILE : 2 * TILE]
    spare = scratch[2 * TILE : 3 * TILE]
    for t in range(TILE):
        highest[t] = log_mass[0, t]
        running[t] = 0.0
        chosen[t] = 0
    for a in range(1, n_active):
        for t in range(TILE):
            value = log_mass[a, t]
            highest[t] = value if value > highest[t] else highest[t]
    for a in range(n_active):
        mass = log_mass[a]
        for t in range(TILE):
            mass[t] -= highest[t]
        exp_inplace(mass, spare)
        for t in range(TILE):
            running[t] += mass[t]
            mass[t] = running[t]
    for t in range(TILE):
        spare[t] = hash_uniform(label_key, rows[t]) * running[t]
    for a in range(n_active - 1):
        for t in range(TILE):
            chosen[t] += 1 if log_mass[a, t] <= spare[t] else 0


@kernel
def assign_strip(
    prior, data, labels, start, stop, log_weights, params, caps, slice_key, label_key, stats
):
    """Redraw the labels start .. stop - 1 and add their observations to `stats` (A, S).

    Labels are changed in place; the new ones are indices of atoms.
    """
    n_atoms = caps.shape[0]
    floor = 1.0 / labels.shape[0]
    rows, chosen = new_rows(), new_rows()
    active = np.empty(n_atoms, np.int64)
    tile = new_tile(tile_size(prior))
    log_mass = np.empty((n_atoms, TILE))
    scratch = new_scratch(4)
    slices = new_scratch(1)
    for first in range(start, stop, TILE):
        fill_range(rows, first, stop)
        load_tile(prior, data, rows, tile)
        lowest = 1.0
        for t in range(TILE):
            u = hash_uniform(slice_key, rows[t]) * caps[labels[rows[t]]]
            slices[t] = u
            lowest = u if u < lowest else lowest
        n_active = 0
        for k in range(n_atoms):
            if caps[k] > lowest:
                mass = log_mass[n_active]
                fill_log_density(prior, tile, params[k], mass, scratch)
                if caps[k] < floor:
                    for t in range(TILE):
                        mass[t] = mass[t] if slices[t] < caps[k] else -np.inf
                else:
                    log_factor = log_weights[k] - math.log(floor)
                    for t in range(TILE):
                        mass[t] += log_factor
                active[n_active] = k
                n_active += 1
        choose_in_tile(log_mass, n_active, rows, label_key, chosen, scratch)
        for t in range(min(TILE, stop - first)):
            k = active[chosen[t]]
            labels[first + t] = k
            add_row(prior, data, first + t, stats[k])


@kernel
def finish_sweep(labels, strip_stats):
    """Add up the strips in order, drop atoms without observations and renumber the labels.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
        Indices of atoms; overwritten by clusters 0 .. K - 1.
    strip_stats : ndarray of float64, shape (strips, A, S)

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    totals = strip_stats[0].copy()
    for s in range(1, strip_stats.shape[0]):
        totals += strip_stats[s]
    renumbered = np.empty(totals.shape[0], np.int32)
    n_clusters = 0
    moved = False
    for k in range(totals.shape[0]):
        if totals[k, 0] > 0.0:
            renumbered[k] = n_clusters
            moved = moved or n_clusters != k
            totals[n_clusters] = totals[k]
            n_clusters += 1
    if moved:
        for i in range(labels.shape[0]):
            labels[i] = renumbered[labels[i]]
    return totals[:n_clusters].copy()


@kernel
def new_strip_stats(prior, n_obs, n_atoms):
    """Zeroed statistics for every strip and atom."""
    return np.zeros((strip_count(n_obs), n_atoms, stats_size(prior)))


@kernel
def slice_sweep(prior, data, labels, stats, alpha, rng):
    """One whole sweep on one thread; returns the new statistics."""
    n_obs = labels.shape[0]
    log_weights, params, caps, slice_key, label_key = prepare_sweep(
        prior, stats, labels, alpha, rng
    )
    strip_stats = new_strip_stats(prior, n_obs, caps.shape[0])
    for s in range(strip_stats.shape[0]):
        start, stop = strip_bounds(n_obs, s)
        assign_strip(
            prior, data, labels, start, stop,
            log_weights, params, caps, slice_key, label_key, strip_stats[s],
        )  # fmt: skip
    return finish_sweep(labels, strip_stats)
