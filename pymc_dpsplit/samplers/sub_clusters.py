"""Sub-clusters: every cluster with its members divided in two, as they are kept from draw to draw.

Chang & Fisher (2013), section 5.1.  Each observation has a sub-cluster label ("left" or "right",
here side 0 or 1) beside that of its cluster, and each sub-cluster has a weight and parameters,
which are drawn in every iteration.  The sides are auxiliary variables of the chain.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    draw_parameters,
    fill_log_density,
    load_tile,
    params_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma, hash_uniform
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.sweep.tile_labels import group_by_label

# Columns of what is known of the sub-clusters of a cluster: their stage, and the log likelihood of
# the members under them in the last iteration.
STAGE, LOG_LIKELIHOOD = 0, 1
# Stages: without sides, burning in, and open to a proposal to split.
NEW, BURNING_IN, BURNED_IN = 0.0, 1.0, 2.0


@jitted
def new_progress(n_clusters):
    """Progress of clusters whose sub-clusters have yet to begin, shape (K, 2)."""
    progress = np.empty((n_clusters, 2))
    for k in range(n_clusters):
        forget_sub_clusters(progress, k)
    return progress


@jitted
def forget_sub_clusters(progress, k):
    """Let the sub-clusters of cluster k begin anew."""
    progress[k, STAGE], progress[k, LOG_LIKELIHOOD] = NEW, -np.inf


@jitted
def begin_sub_clusters(labels, side, progress, rng):
    """Put the members of clusters whose sub-clusters are new on either side with probability 1/2.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    side : ndarray of int8, shape (N,)
    progress : ndarray of float64, shape (K, 2)
        Both changed.
    rng : numpy.random.Generator
    """
    key = draw_key(rng)
    for i in range(labels.shape[0]):
        if progress[labels[i], STAGE] == NEW:
            side[i] = 0 if hash_uniform(key, i) < 0.5 else 1
    for k in range(progress.shape[0]):
        if progress[k, STAGE] == NEW:
            progress[k, STAGE] = BURNING_IN


@jitted
def gather_sub_stats(prior, data, labels, side, n_clusters):
    """Compute the sufficient statistics of the sub-clusters.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    side : ndarray of int8, shape (N,)
    n_clusters : int

    Returns
    -------
    ndarray of float64, shape (2 * K, S)
        Rows 2 k and 2 k + 1 are those of cluster k.
    """
    sub_labels = np.empty(labels.shape[0], np.int32)
    for i in range(labels.shape[0]):
        sub_labels[i] = 2 * labels[i] + side[i]
    return gather_stats(prior, data, sub_labels, 2 * n_clusters)


@jitted
def draw_sub_measure(prior, strength, sub_stats, rng):
    """Draw the weights and the parameters of the sub-clusters, eq. 13 and 14 of the paper.

    The weights of a cluster's two are Dirichlet(N_l + alpha / 2, N_r + alpha / 2).

    Parameters
    ----------
    prior : NamedTuple
    strength : float
        The concentration alpha.
    sub_stats : ndarray of float64, shape (2 * K, S)
        An empty sub-cluster has statistics zero; its parameters are drawn from the base measure.
    rng : numpy.random.Generator

    Returns
    -------
    log_weights : ndarray of float64, shape (2 * K,)
        Of the two sub-clusters of a cluster the weights sum to one.
    params : ndarray of float64, shape (2 * K, P)
    """
    n_sub = sub_stats.shape[0]
    log_weights, params = np.empty(n_sub), np.empty((n_sub, params_size(prior)))
    for c in range(n_sub):
        log_weights[c] = draw_log_gamma(rng, sub_stats[c, 0] + 0.5 * strength)
        draw_parameters(prior, sub_stats[c], rng, params[c])
    for c in range(0, n_sub, 2):
        log_total = np.logaddexp(log_weights[c], log_weights[c + 1])
        log_weights[c] -= log_total
        log_weights[c + 1] -= log_total
    return log_weights, params


@jitted
def draw_sides(prior, data, labels, log_weights, params, key, side, log_likelihood):
    """Draw the side of every observation within its cluster, eq. 15 of the paper.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    log_weights : ndarray of float64, shape (2 * K,)
    params : ndarray of float64, shape (2 * K, P)
        Results of `draw_sub_measure`.
    key : uint64
    side : ndarray of int8, shape (N,)
        Overwritten.
    log_likelihood : ndarray of float64, shape (K,)
        Overwritten with the log likelihood L of the members under the parameters of the sides
        drawn, section 5.4; 0 for a cluster without members.
    """
    n_clusters = log_likelihood.shape[0]
    members, bounds = np.empty(labels.shape[0], np.int64), np.empty(n_clusters + 1, np.int64)
    group_by_label(labels, np.arange(labels.shape[0]), bounds, members)
    rows, tile, scratch = new_rows(), begin_tile(prior, data), new_scratch(4)
    left, right = new_scratch(1), new_scratch(1)
    for k in range(n_clusters):
        log_likelihood[k] = 0.0
        log_odds = log_weights[2 * k] - log_weights[2 * k + 1]
        own = members[bounds[k] : bounds[k + 1]]
        for first in range(0, own.shape[0], TILE):
            fill_members(rows, own, first)
            load_tile(prior, data, rows, tile)
            fill_log_density(prior, tile, params[2 * k], left, scratch)
            fill_log_density(prior, tile, params[2 * k + 1], right, scratch)
            for t in range(min(TILE, own.shape[0] - first)):
                i = rows[t]
                u = hash_uniform(key, i)
                odds = multiplicity(prior, data, i) * log_odds + left[t] - right[t]
                side[i] = 0 if odds > math.log(u / (1.0 - u)) else 1
                log_likelihood[k] += left[t] if side[i] == 0 else right[t]


@jitted
def note_burn_in(progress, log_likelihood):
    """Declare the sub-clusters burned in whose likelihood has begun to oscillate, section 5.4.

    It has once it is less than in the iteration before.

    Parameters
    ----------
    progress : ndarray of float64, shape (K, 2)
        Updated.
    log_likelihood : ndarray of float64, shape (K,)
    """
    for k in range(progress.shape[0]):
        if log_likelihood[k] < progress[k, LOG_LIKELIHOOD]:
            progress[k, STAGE] = BURNED_IN
        progress[k, LOG_LIKELIHOOD] = log_likelihood[k]
