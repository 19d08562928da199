"""The density of observations under a mixture with a remainder, labels summed out."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dpsplit.components.base import (
    cache_size,
    fill_cache,
    log_predictive,
    stats_size,
)
from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.components.non_conjugate import NonConjugate
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
def log_prior_predictive(prior, data):
    """Log density of every observation in a cluster of its own, (N,)."""
    cache = np.empty(cache_size(prior))
    fill_cache(prior, np.zeros(stats_size(prior)), cache)
    out = np.empty(data.shape[0])
    for i in range(out.shape[0]):
        out[i] = log_predictive(prior, data, i, cache)
    return out


def log_density_alone(
    component: Component, prior: Any, data: Any, rows: Any, values: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Return what `log_prior_predictive` does, also for families that cannot integrate.

    Parameters
    ----------
    component : Component
    prior, data
        As kernels see them.
    rows : ndarray of float64 or float32, shape (N, D), or SparseRows
        The same observations.
    values : mapping
        Hyperparameters.

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    if isinstance(component, NonConjugate):
        return component.log_prior_predictive(rows, values)
    return log_prior_predictive(prior, data)


@kernel
def fill_log_mixture(prior, data, log_alone, log_weights, params, log_rest, out):
    """Write log(sum_k w_k f(x_i | theta_k) + w_rest m(x_i)) for every observation.

    Parameters
    ----------
    data : ndarray, shape (N, D)
        Or what else kernels of the family read.
    log_alone : ndarray of float64, shape (N,)
        Log densities of the observations in clusters of their own, log m(x_i).
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    log_rest : float
        May be -inf.
    out : ndarray of float64, shape (N,)
    """
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


@kernel
def fill_log_masses(prior, data, log_alone, log_weights, params, log_rest, out):
    """Write log w_k f(x_i | theta_k), and in the last row log w_rest m(x_i): the terms of eq. (15).

    Parameters
    ----------
    data, log_alone, log_weights, params, log_rest
        As in `fill_log_mixture`.
    out : ndarray of float64, shape (K + 1, N)
    """
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(4)
    weighted = add_log_weights(params, log_weights)
    table = find_table(prior, weighted)
    log_mass = new_masses(table, n_clusters, 1)
    for first in range(0, n_obs, TILE):
        fill_masses(prior, data, first, weighted, table, rows, tile, log_mass, scratch)
        for t in range(min(TILE, n_obs - first)):
            for k in range(n_clusters):
                out[k, first + t] = log_mass[0, k, t]
            out[n_clusters, first + t] = log_rest + log_alone[first + t]
