"""The log density of all rows as a function of a few atoms, and a normal law of its shape.

Labels are summed out.  What the other atoms add to the density of each observation is computed
once; then each value of the few costs a pass over the rows with these atoms alone.  The
curvature is the sum of outer products of the derivatives of each observation.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import fill_log_density, load_tile, params_size, tile_size
from pymc_dpsplit.components.coordinates import (
    add_log_base,
    fill_scores,
    n_coordinates,
    set_parameters,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.linalg import cholesky_inplace
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.outer import padded, sum_outer
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch, new_tile
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.assignment import strip_bounds, strip_count
from pymc_dpsplit.moves.tile_labels import fill_mass, fill_slices

# Log mass of nothing: finite, for a column of masses must not be -inf throughout.
_NOTHING = -1e300
# Observations of which the few have less than this count for no derivative: it shapes proposals.
_LEAST_SHARE = 1e-3
# A squared pivot below this share of its diagonal element is rounding.
_ROUNDING = 1e-12


class Few(NamedTuple):
    """A few atoms.

    Attributes
    ----------
    atoms : ndarray of int64, shape (m,)
    points : ndarray of float64, shape (m, P)
        Coordinates.
    log_weights : ndarray of float64, shape (m,)
        Log weights, times N.
    params : ndarray of float64, shape (m, P')
        Parameters, weighed.
    """

    atoms: np.ndarray
    points: np.ndarray
    log_weights: np.ndarray
    params: np.ndarray


class Expansion(NamedTuple):
    """Log density, up to a constant; root L of the curvature LL'; mode of the normal law, less x.

    Of the last two the rows belong to the P coordinates of the first atom, the log of its
    weight against that of the last, and so on; the last has no weight.
    """

    log_density: float
    root: np.ndarray
    to_mode: np.ndarray


@kernel
def new_few(prior, atoms, points, log_weights):
    """`Few` with the parameters that belong to the coordinates."""
    params = np.empty((atoms.shape[0], params_size(prior)))
    for j in range(atoms.shape[0]):
        set_parameters(prior, points[j], params[j])
        params[j, 0] += log_weights[j]
    return Few(atoms, points, log_weights, params)


@kernel
def fill_rest(prior, data, labels, params, caps, atoms, slice_key, rest, counter):
    """Write what all atoms in reach but `atoms` add to the density of observations, as logarithm.

    Parameters
    ----------
    rest : ndarray of float64, shape (N,)
        Written in the strips that this thread takes from `counter`.
    """
    others = np.empty(caps.shape[0] - atoms.shape[0], np.int64)
    n_others = 0
    for k in range(caps.shape[0]):
        if not np.any(atoms == k):
            others[n_others] = k
            n_others += 1
    rows, tile = new_rows(), new_tile(tile_size(prior))
    log_mass = new_scratch(n_others + 1).reshape(n_others + 1, TILE)
    scratch, slices, highest, total = new_scratch(4), new_scratch(1), new_scratch(1), new_scratch(1)
    floor = 1.0 / labels.shape[0]
    s = take_next(counter)
    while s < strip_count(labels.shape[0]):
        start, stop = strip_bounds(labels.shape[0], s)
        for first in range(start, stop, TILE):
            fill_range(rows, first, stop)
            load_tile(prior, data, rows, tile)
            lowest = fill_slices(rows, labels, caps, slice_key, slices)
            log_mass[0] = _NOTHING
            n_active = 1
            for k in others:
                if caps[k] > lowest:
                    mass = row_of(log_mass, n_active)
                    fill_mass(prior, tile, row_of(params, k), caps[k], floor, slices, mass, scratch)
                    n_active += 1
            accumulate(log_mass, n_active, highest, total)
            for t in range(min(TILE, stop - first)):
                rest[first + t] = highest[t] + math.log(total[t])
        s = take_next(counter)


@kernel
def _add_derivatives(prior, data, rows, n_rows, shares, weights, params, room, sums):
    """Add the derivatives of observations rows[:n_rows], and their outer products, to `sums`.

    `shares` (m + 1, TILE) holds what each of the few has of each observation, and their total.
    """
    tile, scores, packed, square = room
    n_few, size, width = params.shape[0], n_coordinates(prior), sums.shape[1]
    for t in range(n_rows, TILE):
        rows[t] = rows[n_rows - 1]
    load_tile(prior, data, rows, tile)
    for j in range(n_few):
        fill_scores(prior, tile, row_of(params, j), scores)
        at = j * (size + 1)
        for p in range(size):
            for t in range(TILE):
                packed[t * width + at + p] = shares[j, t] * scores[p * TILE + t]
        for t in range(TILE if j < n_few - 1 else 0):
            packed[t * width + at + size] = shares[j, t] - weights[j] * shares[n_few, t]
    sum_outer(packed, n_rows, width, square)
    for p in range(width):
        for q in range(p + 1):
            sums[1 + p, q] += square[p * width + q]
    for t in range(n_rows):
        for p in range(width):
            sums[0, p] += packed[t * width + p]


@kernel
def _new_room(prior, width):
    """What `_add_derivatives` works in: tile, scores, rows of derivatives, outer products."""
    tile, scores = new_tile(tile_size(prior)), new_scratch(n_coordinates(prior))
    return tile, scores, new_tile(width), np.zeros(width * width)


@kernel
def _expand_strip(prior, data, rest, start, stop, few, weights, sums):
    """Sum over the rows start .. stop - 1; the last row of `sums` gets the log density."""
    params = few.params
    n_few = params.shape[0]
    room = _new_room(prior, sums.shape[1])
    rows, some, tile = new_rows(), new_rows(), new_tile(tile_size(prior))
    mass = new_scratch(n_few + 1).reshape(n_few + 1, TILE)
    shares = new_scratch(n_few + 1).reshape(n_few + 1, TILE)
    scratch, highest, total = new_scratch(4), new_scratch(1), new_scratch(1)
    n_some, log_density = 0, 0.0
    for first in range(start, stop, TILE):
        fill_range(rows, first, stop)
        load_tile(prior, data, rows, tile)
        for t in range(TILE):
            mass[0, t] = rest[rows[t]]
        for j in range(n_few):
            fill_log_density(prior, tile, row_of(params, j), row_of(mass, j + 1), scratch)
        accumulate(mass, n_few + 1, highest, total)
        # Each total is between 1 and m + 1: one logarithm serves the tile.
        product = 1.0
        for t in range(min(TILE, stop - first)):
            log_density += highest[t]
            product *= total[t]
            inside = total[t] - mass[0, t]
            if inside > _LEAST_SHARE * total[t]:
                some[n_some] = first + t
                shares[n_few, n_some] = inside / total[t]
                for j in range(n_few):
                    shares[j, n_some] = (mass[j + 1, t] - mass[j, t]) / total[t]
                n_some += 1
                if n_some == TILE:
                    _add_derivatives(prior, data, some, TILE, shares, weights, params, room, sums)
                    n_some = 0
        log_density += math.log(product)
    if n_some > 0:
        _add_derivatives(prior, data, some, n_some, shares, weights, params, room, sums)
    sums[-1, 0] += log_density


@kernel
def _relative(log_weights):
    """Weights that sum to 1."""
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


@kernel
def new_sums(prior, n_obs, n_few):
    """Zeroed sums of `expand_strips`, (strips, width + 2, width)."""
    width = padded(n_few * (n_coordinates(prior) + 1))
    return np.zeros((strip_count(n_obs), width + 2, width))


@kernel
def expand_strips(prior, data, rest, few, sums, counter):
    """Add up log density, derivatives and outer products over strips taken from `counter`.

    Parameters
    ----------
    rest : ndarray of float64, shape (N,)
        What `fill_rest` wrote.
    few : Few
    sums : ndarray of float64, shape (strips, width + 2, width)
        What `new_sums` returned; added to.
    """
    weights = _relative(few.log_weights)
    s = take_next(counter)
    while s < sums.shape[0]:
        start, stop = strip_bounds(rest.shape[0], s)
        _expand_strip(prior, data, rest, start, stop, few, weights, sums[s])
        s = take_next(counter)


@kernel
def _add_base(prior, points, gradient, curvature):
    """Add the base measure of each of the few; return its log density."""
    size = points.shape[1]
    log_base = 0.0
    for j in range(points.shape[0]):
        at = j * (size + 1)
        slope, bend = gradient[at : at + size], curvature[at : at + size]
        log_base += add_log_base(prior, points[j], slope, bend)
    return log_base


@kernel
def solve_transposed(root, x):
    """Overwrite x by the solution of root' x."""
    for p in range(x.shape[0] - 1, -1, -1):
        for q in range(p + 1, x.shape[0]):
            x[p] -= root[q, p] * x[q]
        x[p] /= root[p, p]


@kernel
def finish_expansion(prior, few, sums):
    """Add up the strips in order, and the base measure; return the `Expansion`."""
    total = sums[0].copy()
    for s in range(1, sums.shape[0]):
        total += sums[s]
    size = few.atoms.shape[0] * (few.points.shape[1] + 1) - 1
    gradient = total[0]
    # One for the log weights, which have no density of their own.
    curvature = np.ones(total.shape[1])
    log_base = _add_base(prior, few.points, gradient, curvature)
    root, floor = np.empty((size, size)), np.empty(size)
    for p in range(size):
        for q in range(p + 1):
            root[p, q] = total[1 + p, q]
        root[p, p] += curvature[p]
        floor[p] = _ROUNDING * root[p, p]
    cholesky_inplace(root, floor)
    to_mode = gradient[:size].copy()
    for p in range(size):
        for q in range(p):
            to_mode[p] -= root[p, q] * to_mode[q]
        to_mode[p] /= root[p, p]
    solve_transposed(root, to_mode)
    return Expansion(total[-1, 0] + log_base, root, to_mode)
