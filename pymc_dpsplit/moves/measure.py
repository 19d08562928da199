"""The random measure given the partition: weights, remainder and cluster parameters."""

import math

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, params_size, stats_size
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_log_gamma


@kernel
def draw_measure(prior, stats, alpha, rng):
    """Draw the occupied part of the measure, eq. (5): an exact Gibbs step.

    Weights and remainder are Dirichlet(n_1, .., n_K, alpha); parameters come from their
    posteriors, cluster by cluster.

    Returns
    -------
    log_weights : ndarray of float64, shape (K,)
    log_rest : float
        Logarithm of the remainder; finite however small alpha is.
    params : ndarray of float64, shape (K, P)
    """
    n_clusters = stats.shape[0]
    log_weights = np.empty(n_clusters)
    params = np.empty((n_clusters, params_size(prior)))
    for k in range(n_clusters):
        log_weights[k] = draw_log_gamma(rng, stats[k, 0])
        draw_parameters(prior, stats[k], rng, params[k])
    log_rest = draw_log_gamma(rng, alpha)
    highest = max(log_weights.max(), log_rest)
    total = math.exp(log_rest - highest)
    for k in range(n_clusters):
        total += math.exp(log_weights[k] - highest)
    log_total = highest + math.log(total)
    for k in range(n_clusters):
        log_weights[k] -= log_total
    return log_weights, log_rest - log_total, params


@kernel
def break_remainder(prior, log_weights, log_rest, params, alpha, log_floor, rng):
    """Break the remainder by sticks until less than exp(log_floor) is left, eq. (6).

    Each stick is Beta(1, alpha) of what remains, with parameters from the base measure.

    Returns
    -------
    log_weights : ndarray of float64, shape (K + M,)
    params : ndarray of float64, shape (K + M, P)
    """
    n_atoms = log_weights.shape[0]
    empty = np.zeros(stats_size(prior))
    while log_rest >= log_floor:
        if n_atoms == log_weights.shape[0]:
            log_weights = np.concatenate((log_weights, np.empty(n_atoms + 8)))
            params = np.concatenate((params, np.empty((n_atoms + 8, params.shape[1]))))
        # 1 - v is U^(1 / alpha) for v ~ Beta(1, alpha).
        log_left = -rng.standard_exponential() / alpha
        log_weights[n_atoms] = log_rest + math.log(-math.expm1(log_left))
        draw_parameters(prior, empty, rng, params[n_atoms])
        log_rest += log_left
        n_atoms += 1
    return log_weights[:n_atoms], params[:n_atoms]
