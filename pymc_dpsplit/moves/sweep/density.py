"""Density of observations under a mixture with a remainder, labels summed out."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dpsplit.components.base import (
    fill_log_predictive_of_rows,
    fill_predictive,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.multiplicity import multiplicity, note_log_weight
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.components.optional import begin_tile, find_table
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.mass import accumulate
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch
from pymc_dpsplit.moves.sweep.all_atoms import fill_masses, new_masses


@jitted
def add_log_weights(prior, params, log_weights):
    """Copy `params`, shape (K, P), with a log weight added to each log normaliser, element 0."""
    return add_log_factors(prior, params, log_weights, log_weights)


@jitted
def add_log_factors(prior, params, log_factors, log_weights):
    """Like `add_log_weights`, but add other factors, and note the weights for those that follow.

    Only an observation that stands for several of the process has factors that follow, see
    `components.multiplicity`.
    """
    weighted = params.copy()
    for k in range(log_weights.shape[0]):
        weighted[k, 0] += log_factors[k]
        note_log_weight(prior, weighted[k], log_weights[k])
    return weighted


@jitted
def log_prior_predictive_of_rows(prior, data, rows):
    """Log prior predictive densities of the observations `rows`, shape (M,)."""
    cache = np.zeros(predictive_size(prior))
    fill_predictive(prior, np.zeros(stats_size(prior)), cache)
    out = np.empty(rows.shape[0])
    fill_log_predictive_of_rows(prior, data, rows, cache, out)
    return out


@jitted
def log_prior_predictive(prior, data):
    """Log prior predictive density of every observation.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    return log_prior_predictive_of_rows(prior, data, np.arange(data.shape[0]))


def log_density_alone(
    component: ComponentFamily, prior: Any, data: Any, rows: Any, values: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Log prior predictive density of every observation, for all families.

    Families that are not conjugate supply their own approximation.

    Parameters
    ----------
    component : ComponentFamily
    prior : NamedTuple
    data : object
        Prior and observations in the form that kernels read.
    rows : ndarray of float64 or float32, shape (N, D), or SparseRows
        The same observations in user form.
    values : mapping
        Hyperparameters.

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    if isinstance(component, NonconjugateFamily):
        return component.log_prior_predictive(rows, values)
    return log_prior_predictive(prior, data)


@jitted
def fill_log_mixture(prior, data, log_alone, log_weights, params, log_rest, out):
    """Write log(sum_k w_k f(x_i | theta_k) + w_rest m(x_i)) for every observation.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray, shape (N, D)
        Or another form that kernels of the family read.
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities log m(x_i); of an observation that stands for several of the
        process with the log probability that these are together in the remainder, eq. (7.55).
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    log_rest : float
        Log weight of the remainder; may be -inf.
    out : ndarray of float64, shape (N,)
        Overwritten.
    """
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(4)
    highest, total = new_scratch(1), new_scratch(1)
    weighted = add_log_weights(prior, params, log_weights)
    table = find_table(prior, weighted)
    log_mass = new_masses(table, n_clusters, 1)
    for first in range(0, n_obs, TILE):
        fill_masses(prior, data, first, weighted, table, rows, tile, log_mass, scratch)
        for t in range(TILE):
            n_factors = multiplicity(prior, data, rows[t])
            log_mass[0, n_clusters, t] = n_factors * log_rest + log_alone[rows[t]]
        accumulate(log_mass[0], n_clusters + 1, highest, total)
        for t in range(min(TILE, n_obs - first)):
            out[first + t] = highest[t] + math.log(total[t])


@jitted
def fill_log_masses(prior, data, log_alone, log_weights, params, log_rest, out):
    """Write the terms of eq. (5.1): log w_k f(x_i | theta_k), and last log w_rest m(x_i).

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    log_alone : ndarray of float64, shape (N,)
        Log prior predictive densities log m(x_i); of an observation that stands for several of the
        process with the log probability that these are together in the remainder, eq. (7.55).
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
    log_rest : float
        Log weight of the remainder; may be -inf.
    out : ndarray of float64, shape (K + 1, N)
        Overwritten.
    """
    n_obs, n_clusters = data.shape[0], log_weights.shape[0]
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(4)
    weighted = add_log_weights(prior, params, log_weights)
    table = find_table(prior, weighted)
    log_mass = new_masses(table, n_clusters, 1)
    for first in range(0, n_obs, TILE):
        fill_masses(prior, data, first, weighted, table, rows, tile, log_mass, scratch)
        for t in range(min(TILE, n_obs - first)):
            for k in range(n_clusters):
                out[k, first + t] = log_mass[0, k, t]
            n_factors = multiplicity(prior, data, first + t)
            out[n_clusters, first + t] = n_factors * log_rest + log_alone[first + t]
