"""The random measure given the partition: weights, remainder and cluster parameters."""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    draw_parameters,
    overrelax_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.optional import can_overrelax
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.overrelaxation import overrelax_log_gamma
from pymc_dpsplit.kernels.random import draw_log_gamma


class Atoms(NamedTuple):
    """Occupied atoms of a sweep, from which the next draws its own by over-relaxation.

    Attributes
    ----------
    stats : ndarray of float64, shape (K, S)
        Statistics of the clusters after the sweep.
    log_weights : ndarray of float64, shape (K,)
    params : ndarray of float64, shape (K, P)
        Constants of the log densities left out.
    """

    stats: np.ndarray
    log_weights: np.ndarray
    params: np.ndarray


@kernel
def no_atoms(prior):
    """Return what a sweep begins from that draws all of the measure anew."""
    return Atoms(np.empty((0, stats_size(prior))), np.empty(0), np.empty((0, params_size(prior))))


@kernel
def occupied_atoms(prior, log_weights, params, renumbered, stats):
    """Return the atoms (A, ..) of a sweep that have observations, of which it left `stats`.

    None of them for families that draw parameters anew in any case.
    """
    if not can_overrelax(prior):
        return no_atoms(prior)
    atoms = Atoms(stats, np.empty(stats.shape[0]), np.empty((stats.shape[0], params.shape[1])))
    for k in range(renumbered.shape[0]):
        if renumbered[k] >= 0:
            atoms.log_weights[renumbered[k]] = log_weights[k]
            atoms.params[renumbered[k]] = params[k]
    return atoms


@kernel
def _is_unchanged(stats, atoms, k):
    """Whether cluster k has the statistics it had: then its atom is a draw given these."""
    return k < atoms.stats.shape[0] and np.all(stats[k] == atoms.stats[k])


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
    return redraw_measure(prior, stats, alpha, rng, no_atoms(prior))


@kernel
def redraw_measure(prior, stats, alpha, rng, atoms):
    """Do what `draw_measure` does, by over-relaxation of the atoms whose clusters are unchanged.

    Weights are gamma variables over their sum, which is independent of them: a new sum gives
    the variables back, eq. (153).

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
    log_sum = draw_log_gamma(rng, stats[:, 0].sum() + alpha) if atoms.stats.shape[0] > 0 else 0.0
    for k in range(n_clusters):
        if _is_unchanged(stats, atoms, k):
            log_weight = atoms.log_weights[k] + log_sum
            log_weights[k] = overrelax_log_gamma(rng, stats[k, 0], log_weight)
            params[k] = atoms.params[k]
            overrelax_parameters(prior, stats[k], rng, params[k])
        else:
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
