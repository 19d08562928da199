"""The density of observations under a mixture with a remainder, labels summed out."""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    cache_size,
    fill_cache,
    log_predictive,
    stats_size,
)
from pymc_dpsplit.components.optional import begin_tile, find_table
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch
from pymc_dpsplit.moves.all_atoms import fill_masses, new_masses


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
    log_alone = log_prior_predictive(prior, data)
    fill_log_mixture_from(prior, data, log_alone, log_weights, params, log_rest, out)


@kernel
def log_prior_predictive(prior, data):
    """Log density of every observation in a cluster of its own, (N,)."""
    cache = np.empty(cache_size(prior))
    fill_cache(prior, np.zeros(stats_size(prior)), cache)
    out = np.empty(data.shape[0])
    for i in range(out.shape[0]):
        out[i] = log_predictive(prior, data, i, cache)
    return out


@kernel
def fill_log_mixture_from(prior, data, log_alone, log_weights, params, log_rest, out):
    """Do what `fill_log_mixture` does, with log m(x_i) given as `log_alone` (N,)."""
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(4)
    highest, total = new_scratch(1), new_scratch(1)
    weighted = add_log_weights(params, log_weights)
    table = find_table(prior, weighted)
    log_mass = new_masses(table, n_clusters, 1)
    for first in range(0, n_obs, TILE):
        fill_masses(prior, data, first, weighted, table, rows, tile, log_mass, scratch)
        for t in range(TILE):
            log_mass[0, n_clusters, t] = log_rest + log_alone[rows[t]]
        accumulate(log_mass[0], n_clusters + 1, highest, total)
        for t in range(min(TILE, n_obs - first)):
            out[first + t] = highest[t] + math.log(total[t])
