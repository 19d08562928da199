"""Labels given a stored draw of the measure; docs/method.md, section 5."""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    fill_log_density,
    load_tile,
    tile_size,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch, new_tile
from pymc_dpsplit.moves.density import add_log_weights, fill_log_mixture_from, log_prior_predictive
from pymc_dpsplit.moves.measure import break_remainder
from pymc_dpsplit.moves.tile_labels import choose_in_tile

# Share of the mixture density, at the observation where it is largest, that unbroken sticks may
# still hold: too little to change a label drawn with 52-bit uniforms more than once in 10^12.
_LOG_LEFT_OUT = math.log(1e-12)

__all__ = ["log_prior_predictive", "redraw_labels"]


@kernel
def redraw_labels(prior, data, log_alone, log_weights, log_rest, params, alpha, rng, labels):
    """Draw labels given the occupied part of the measure, breaking the remainder as needed.

    Parameters
    ----------
    log_alone : ndarray of float64, shape (N,)
        What `log_prior_predictive` returned.
    log_weights, log_rest, params
        The occupied part of the measure.
    labels : ndarray of int, shape (N,)
        Overwritten: rows of `params`, and numbers from K on for clusters not recorded.
    """
    n_obs = labels.shape[0]
    log_density = np.empty(n_obs)
    fill_log_mixture_from(prior, data, log_alone, log_weights, params, -np.inf, log_density)
    worst = -np.inf
    for i in range(n_obs):
        worst = max(worst, log_alone[i] - log_density[i])
    log_weights, params = break_remainder(
        prior, log_weights, log_rest, params, alpha, _LOG_LEFT_OUT - worst, rng
    )
    n_atoms = log_weights.shape[0]
    weighted = add_log_weights(params, log_weights)
    rows, chosen = new_rows(), new_rows()
    tile = new_tile(tile_size(prior))
    scratch = new_scratch(4)
    log_mass = new_scratch(n_atoms).reshape(n_atoms, TILE)
    key = draw_key(rng)
    for first in range(0, n_obs, TILE):
        fill_range(rows, first, n_obs)
        load_tile(prior, data, rows, tile)
        for k in range(n_atoms):
            fill_log_density(prior, tile, weighted[k], log_mass[k], scratch)
        choose_in_tile(log_mass, n_atoms, rows, key, chosen, scratch)
        for t in range(min(TILE, n_obs - first)):
            labels[first + t] = chosen[t]
