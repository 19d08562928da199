"""A few overlapping atoms move together, labels summed out; docs/method.md, section 9.

Where clusters overlap, labels given parameters and parameters given labels move slowly: each
cluster is held in place by the rows that the others left it.  This move draws weights and
parameters of a few atoms from a normal law of the shape of their density, labels summed out: its
mean is one Newton step away, its covariance the inverse of the curvature (after Martin et al.
2012).  It is accepted by the ratio of the densities, those of the proposal included, so the law
need not be right.  It fits between the sticks and the labels of a sweep, whose slices it leaves
as they are.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import fill_log_density, load_tile, tile_size
from pymc_dpsplit.components.coordinates import fill_coordinates, n_coordinates, set_parameters
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.linalg import log_diagonal_sum
from pymc_dpsplit.kernels.tiles import new_rows, new_scratch, new_tile
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.assignment import assign_labels, draw_atoms, new_counter
from pymc_dpsplit.moves.expansion import (
    expand_strips,
    fill_rest,
    finish_expansion,
    new_few,
    new_sums,
    solve_transposed,
)

# More atoms at a time are accepted more rarely; more coordinates cost more than a sweep saves.
_MOST_ATOMS, _MOST_COORDINATES = 4, 64
# Log odds of an atom at an observation against the likeliest one, to be taken with it.
_REACH = math.log(1e-3)


@kernel
def most_atoms(prior):
    """How many atoms are moved together at most; below 2 the move does nothing."""
    return _most(n_coordinates(prior))


@kernel
def _most(size):
    if size is None:
        return 0
    return min(_MOST_ATOMS, _MOST_COORDINATES // (size + 1))


@kernel
def _log_masses(prior, data, i, params):
    """Log masses (A,) of atoms at observation i."""
    rows, tile = new_rows(), new_tile(tile_size(prior))
    rows[:] = i
    load_tile(prior, data, rows, tile)
    value, scratch = new_scratch(1), new_scratch(4)
    out = np.empty(params.shape[0])
    for k in range(out.shape[0]):
        fill_log_density(prior, tile, row_of(params, k), value, scratch)
        out[k] = value[0]
    return out


@kernel
def _likeliest(log_mass, heavy, most):
    """Those of the atoms `heavy` that come first at an observation, by number."""
    order = heavy[np.argsort(-log_mass[heavy])]
    n = 0
    while n < min(most, order.shape[0]) and log_mass[order[n]] >= log_mass[order[0]] + _REACH:
        n += 1
    return np.sort(order[:n])


@kernel
def _log_least(least, size):
    """Log of the least weight of atoms that are moved, times N: out of the reach of slices."""
    return math.log(max(1.0, least * (size + 1)))


@kernel
def choose_few(prior, data, i, params, least):
    """The atoms that come first at observation i, of those heavy enough.

    Parameters
    ----------
    i : int
    params : ndarray of float64, shape (A, P')
        What `complete_atoms` returned.
    least : float
        Rows per coordinate that an atom must have weight for.

    Returns
    -------
    Few
    heavy : ndarray of int64, shape (h,)
        All atoms that are.
    """
    n_atoms, size = params.shape[0], n_coordinates(prior)
    points, log_weights = np.empty((n_atoms, size)), np.empty(n_atoms)
    plain = np.empty(params.shape[1])
    for k in range(n_atoms):
        fill_coordinates(prior, params[k], points[k])
        set_parameters(prior, points[k], plain)
        log_weights[k] = params[k, 0] - plain[0]
    heavy = np.flatnonzero(log_weights > _log_least(least, size))
    if heavy.shape[0] > 1:
        log_mass = _log_masses(prior, data, i, params)
        few = _likeliest(log_mass, heavy, _most(size))
    else:
        few = heavy
    return new_few(prior, few, points[few], log_weights[few]), heavy


@kernel
def propose(prior, few, expansion, noise):
    """Draw other points and weights: `noise` (m (P + 1) - 1,) is standard normal."""
    points, log_weights = few.points.copy(), few.log_weights - few.log_weights[-1]
    n_few, size = points.shape
    change = noise.copy()
    solve_transposed(expansion.root, change)
    change += expansion.to_mode
    for j in range(n_few):
        at = j * (size + 1)
        points[j] += change[at : at + size]
        if j < n_few - 1:
            log_weights[j] += change[at + size]
    # The sum of the weights stays.
    log_weights += _log_sum(few.log_weights) - _log_sum(log_weights)
    return new_few(prior, few.atoms, points, log_weights)


@kernel
def _log_sum(log_weights):
    highest = log_weights.max()
    return highest + math.log(np.exp(log_weights - highest).sum())


@kernel
def log_odds(there, back, few, other, noise):
    """Log of the ratio of eq. (52): `there` is expanded at `few`, `back` at `other`."""
    n_few, size = few.points.shape
    forth, return_ = 0.0, 0.0
    gap = np.empty(noise.shape[0])
    for j in range(n_few):
        at = j * (size + 1)
        gap[at : at + size] = few.points[j] - other.points[j]
        if j < n_few - 1:
            left, right = few.log_weights, other.log_weights
            gap[at + size] = (left[j] - left[-1]) - (right[j] - right[-1])
    gap -= back.to_mode
    for p in range(gap.shape[0]):
        y = 0.0
        for q in range(p, gap.shape[0]):
            y += back.root[q, p] * gap[q]
        return_ += y * y
        forth += noise[p] * noise[p]
    log_ratio = log_diagonal_sum(back.root) - log_diagonal_sum(there.root)
    return back.log_density - there.log_density + log_ratio + 0.5 * (forth - return_)


@kernel
def replace(params, few):
    """Copy `params` with those of the few."""
    changed = params.copy()
    for j in range(few.atoms.shape[0]):
        changed[few.atoms[j]] = few.params[j]
    return changed


@kernel
def is_possible(prior, data, i, changed, heavy, few, least):
    """Whether the few would be chosen after the change: what is not chosen cannot be undone."""
    if not few.log_weights.min() > _log_least(least, few.points.shape[1]):
        return False
    log_mass = _log_masses(prior, data, i, changed)
    chosen = _likeliest(log_mass, heavy, _most(few.points.shape[1]))
    return chosen.shape[0] == few.atoms.shape[0] and np.all(chosen == few.atoms)


@kernel
def draw_anchor(labels, rng):
    """An observation, and the logarithm of a uniform to decide by."""
    return np.int64(rng.random() * labels.shape[0]), -rng.standard_exponential()


@kernel
def draw_noise(few, rng):
    """Standard normal numbers, one for each coordinate and log ratio of weights."""
    noise = np.empty(few.points.size + few.points.shape[0] - 1)
    for p in range(noise.shape[0]):
        noise[p] = rng.standard_normal()
    return noise


@kernel
def _expand(prior, data, rest, few):
    sums = new_sums(prior, rest.shape[0], few.atoms.shape[0])
    expand_strips(prior, data, rest, few, sums, new_counter())
    return finish_expansion(prior, few, sums)


@kernel
def move_few(prior, data, labels, params, caps, slice_key, least, rng):
    """One attempt on one thread; returns the parameters, weighed, of all atoms.

    Parameters
    ----------
    params, caps : ndarrays of float64, shapes (A, P'), (A,)
        What `complete_atoms` returned.
    slice_key : uint64
    least : float
        Rows per coordinate that an atom must have weight for.
    """
    return _move(n_coordinates(prior), prior, data, labels, params, caps, slice_key, least, rng)


@kernel
def _move(size, prior, data, labels, params, caps, slice_key, least, rng):
    if size is None:
        return params
    i, log_u = draw_anchor(labels, rng)
    few, heavy = choose_few(prior, data, i, params, least)
    if few.atoms.shape[0] < 2:
        return params
    noise = draw_noise(few, rng)
    rest = np.empty(labels.shape[0])
    fill_rest(prior, data, labels, params, caps, few.atoms, slice_key, rest, new_counter())
    there = _expand(prior, data, rest, few)
    other = propose(prior, few, there, noise)
    changed = replace(params, other)
    if not is_possible(prior, data, i, changed, heavy, other, least):
        return params
    back = _expand(prior, data, rest, other)
    return changed if log_u < log_odds(there, back, few, other, noise) else params


@kernel
def newton_sweep(prior, data, labels, stats, alpha, rng, least):
    """The slice sweep with `move_few` before the labels are drawn; returns the new statistics."""
    params, caps, slice_key, label_key = draw_atoms(prior, labels, stats, alpha, rng)
    params = move_few(prior, data, labels, params, caps, slice_key, least, rng)
    return assign_labels(prior, data, labels, stats, params, caps, slice_key, label_key)
