"""The density of observations under a mixture with a remainder, labels summed out."""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    cache_size,
    fill_cache,
    fill_log_density,
    load_tile,
    log_predictive,
    stats_size,
    tile_size,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch, new_tile


@kernel
def add_log_weights(params, log_weights):
    """Copy `params` (K, P) with a logarithm added to each density: its constant comes first."""
    weighted = params.copy()
    for k in range(log_weights.shape[0]):
        weighted[k, 0] += log_weights[k]
    return weighted


@kernel
def fill_log_mixture(prior, data, log_weights, params, log_rest, out):
    """Write log( sum_k w_k f(x_i | theta_k) + w_rest m(x_i) ) for each observation, eq. (15).

    m is the prior predictive density, that is f averaged over the base measure.  Works in
    tiles: the memory used grows with K, not with N.

    Parameters
    ----------
    data : ndarray of float64, shape (N, D)
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    log_rest : float
        May be -inf.
    out : ndarray of float64, shape (N,)
    """
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    cache = np.empty(cache_size(prior))
    fill_cache(prior, np.zeros(stats_size(prior)), cache)
    rows = new_rows()
    tile = new_tile(tile_size(prior))
    log_mass = new_scratch(n_clusters + 1).reshape(n_clusters + 1, TILE)
    scratch = new_scratch(4)
    highest, total = new_scratch(1), new_scratch(1)
    weighted = add_log_weights(params, log_weights)
    for first in range(0, n_obs, TILE):
        fill_range(rows, first, n_obs)
        load_tile(prior, data, rows, tile)
        for k in range(n_clusters):
            fill_log_density(prior, tile, weighted[k], log_mass[k], scratch)
        for t in range(TILE):
            log_mass[n_clusters, t] = log_rest + log_predictive(prior, data, rows[t], cache)
        accumulate(log_mass, n_clusters + 1, highest, total)
        for t in range(min(TILE, n_obs - first)):
            out[first + t] = highest[t] + math.log(total[t])


@kernel
def fill_log_masses(prior, data, log_weights, params, log_rest, out):
    """Write log w_k f(x_i | theta_k), and in the last row log w_rest m(x_i): the terms of eq. (15).

    Parameters
    ----------
    data, log_weights, params, log_rest
        As in `fill_log_mixture`.
    out : ndarray of float64, shape (K + 1, N)
    """
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    cache = np.empty(cache_size(prior))
    fill_cache(prior, np.zeros(stats_size(prior)), cache)
    rows = new_rows()
    tile = new_tile(tile_size(prior))
    log_mass, scratch = new_scratch(1), new_scratch(4)
    weighted = add_log_weights(params, log_weights)
    for first in range(0, n_obs, TILE):
        fill_range(rows, first, n_obs)
        load_tile(prior, data, rows, tile)
        for k in range(n_clusters):
            fill_log_density(prior, tile, weighted[k], log_mass, scratch)
            for t in range(min(TILE, n_obs - first)):
                out[k, first + t] = log_mass[t]
        for t in range(min(TILE, n_obs - first)):
            out[n_clusters, first + t] = log_rest + log_predictive(prior, data, first + t, cache)
