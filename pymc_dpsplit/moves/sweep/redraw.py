"""Labels given the atoms of a measure, or a stored draw of it; docs/method.md, section 5."""

import math

import numpy as np

from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.optional import begin_tile, find_table
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch
from pymc_dpsplit.moves.measure import break_remainder
from pymc_dpsplit.moves.partition_law import opening_mass
from pymc_dpsplit.moves.sweep.all_atoms import fill_masses, new_masses
from pymc_dpsplit.moves.sweep.density import add_log_weights, fill_log_mixture
from pymc_dpsplit.moves.sweep.tile_labels import choose_in_tile

# Largest share of the mixture density, over observations, that the unbroken remainder may hold.
# It changes a label, drawn with a 52-bit uniform, at most once in 10^12.
LOG_LEFT_OUT = math.log(1e-12)
# Sticks of a Dirichlet process that a remainder is broken into, on average.
_MOST_STICKS = 1e7


@jitted
def choose_atoms(prior, data, labels, key, log_weights, params):
    """Draw the atom of every observation, with probability proportional to weight times density.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int, shape (N,)
        Overwritten by rows of `params`.
    key : uint64
        Key of the draw, see `kernels.random.hash_uniform`.
    log_weights : ndarray of float64, shape (A,)
    params : ndarray of float64, shape (A, P)
    """
    n_obs, n_atoms = labels.shape[0], log_weights.shape[0]
    weighted = add_log_weights(prior, params, log_weights)
    rows, chosen = new_rows(), new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(4)
    table = find_table(prior, weighted)
    log_mass = new_masses(table, n_atoms, 1)
    for first in range(0, n_obs, TILE):
        fill_masses(prior, data, first, weighted, table, rows, tile, log_mass, scratch)
        choose_in_tile(log_mass[0], n_atoms, rows, key, chosen, scratch)
        for t in range(min(TILE, n_obs - first)):
            labels[first + t] = chosen[t]


@jitted
def redraw_labels(target, labels, rng, log_alone, log_weights, log_rest, params):
    """Draw labels given the occupied part of the measure, breaking the remainder as needed.

    Parameters
    ----------
    target : Target
    labels : ndarray of int, shape (N,)
        Overwritten by rows of the returned `params`; K and above are clusters not recorded.
    rng : numpy.random.Generator
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities, see `log_density_alone`.
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder.
    params : ndarray of float64, shape (K, P)

    Returns
    -------
    log_weights : ndarray of float64, shape (K + M,)
    params : ndarray of float64, shape (K + M, P)
        Atoms that the labels refer to, with M sticks broken.

    Raises
    ------
    ValueError
        If an observation fits no known atom, so that millions of others would be needed.
    """
    prior, data = target.prior, target.data
    n_obs = labels.shape[0]
    log_density = np.empty(n_obs)
    fill_log_mixture(prior, data, log_alone, log_weights, params, -np.inf, log_density)
    log_floor = log_negligible(prior, data, log_alone, log_density)
    if opening_mass(target.law, log_weights.shape[0]) == 0.0:
        # A full finite mixture, whose remainder callers may have replaced by a tiny number.
        log_rest = -np.inf
    fits = (log_rest - log_floor) * target.law.strength < _MOST_STICKS
    if target.law.discount == 0.0 and log_rest > -np.inf and not fits:
        raise ValueError("an observation has hardly any density under the known clusters")
    log_weights, params, _ = break_remainder(target, rng, log_weights, log_rest, params, log_floor)
    choose_atoms(prior, data, labels, draw_key(rng), log_weights, params)
    return log_weights, params


@jitted
def log_negligible(prior, data, log_alone, log_density):
    """Log weight of a remainder to which observations hardly ever belong.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities.
    log_density : ndarray of float64, shape (N,)
        Log density of each observation under the known atoms.

    Returns
    -------
    float
    """
    # The unbroken remainder holds at most its weight to the power of the multiplicity.
    log_floor = np.inf
    for i in range(log_density.shape[0]):
        log_most = LOG_LEFT_OUT - (log_alone[i] - log_density[i])
        log_floor = min(log_floor, log_most / multiplicity(prior, data, i))
    return log_floor
