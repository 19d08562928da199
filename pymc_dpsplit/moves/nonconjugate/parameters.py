"""Updates of cluster parameters that are part of the state, given the members of the cluster.

The update of theta_k leaves p(theta | x_S), proportional to h(theta) prod_i f(x_i; theta),
invariant, eq. (9.2).  It is slice sampling along each coordinate of an unconstrained scale, by
stepping out and shrinkage (Neal 2003, figures 3 and 5).  There is no step size to tune: the initial
width of a slice does not depend on theta, and a bad one costs time only.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import (
    LOG_POSTERIOR,
    THETA,
    log_base_of,
    sum_log_density,
)
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.views import part_of
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.sweep.tile_labels import group_by_label

_MOST_STEPS = 32
# Maximum number of members from which starting parameters are chosen.
_SOME = 200


@jitted
def gather_columns(prior, data, members, block):
    """Write the rows `members`, and their covariates, into `block`, column by column.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    block : ndarray of float64, shape (F * n,)
        Overwritten; F features and covariates.
    """
    n, n_features = members.shape[0], data.shape[1]
    for j in range(n_features):
        for i in range(n):
            block[j * n + i] = data[members[i], j]
    for j in range(prior.covariates.shape[1]):
        for i in range(n):
            block[(n_features + j) * n + i] = prior.covariates[members[i], j]


@jitted
def log_posterior(prior, block, n_rows, theta, out):
    """Log of h(theta) prod_i f(x_i; theta), eq. (9.2).

    Parameters
    ----------
    prior : NamedTuple
    block : ndarray of float64, shape (F * n_rows,)
        Columns of the members, see `gather_columns`.
    n_rows : int
    theta : ndarray of float64, shape (P,)
    out : ndarray of float64, shape (n_rows,)
        Scratch.

    Returns
    -------
    float
    """
    log_base = log_base_of(prior, theta)
    if log_base == -np.inf:
        return log_base
    return log_base + sum_log_density(prior, block, n_rows, theta, out)


@jitted
def _at(prior, block, n_rows, theta, j, value, out):
    theta[j] = value
    return log_posterior(prior, block, n_rows, theta, out)


@jitted
def _move_coordinate(prior, block, n_rows, theta, j, present, width, rng, out):
    """Slice-sample coordinate j of `theta` in place; return the new log posterior."""
    start = theta[j]
    level = present - rng.standard_exponential()
    left = start - width * rng.random()
    right = left + width
    steps = int(_MOST_STEPS * rng.random())
    for _ in range(steps):
        if _at(prior, block, n_rows, theta, j, left, out) <= level:
            break
        left -= width
    for _ in range(_MOST_STEPS - 1 - steps):
        if _at(prior, block, n_rows, theta, j, right, out) <= level:
            break
        right += width
    while True:
        drawn = left + (right - left) * rng.random()
        value = _at(prior, block, n_rows, theta, j, drawn, out)
        # The interval shrinks towards the present value, which always lies in the slice.
        if value > level or drawn == start:
            return value
        if drawn < start:
            left = drawn
        else:
            right = drawn


@jitted
def move_parameters(prior, block, n_rows, theta, rng, out):
    """Slice-sample each coordinate of `theta`; return the log posterior at the end.

    Parameters
    ----------
    prior : NamedTuple
    block : ndarray of float64, shape (F * n_rows,)
        Columns of the members, see `gather_columns`.
    n_rows : int
    theta : ndarray of float64, shape (P,)
        Changed.
    rng : numpy.random.Generator
    out : ndarray of float64, shape (n_rows,)
        Scratch.

    Returns
    -------
    float
    """
    value = log_posterior(prior, block, n_rows, theta, out)
    for j in range(theta.shape[0]):
        width = prior.widths[j] / math.sqrt(n_rows)
        value = _move_coordinate(prior, block, n_rows, theta, j, value, width, rng, out)
    return value


@jitted
def update_parameters(target, labels, stats, rng):
    """Slice-sample the parameters of every cluster given its members.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
        Parameters and log posteriors are changed in place.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K, S)
        The same array.
    """
    prior, data = target.prior, target.data
    n_obs, n_clusters = labels.shape[0], stats.shape[0]
    bounds, members = np.empty(n_clusters + 1, np.int64), np.empty(n_obs, np.int64)
    group_by_label(labels, np.arange(n_obs), bounds, members)
    largest = np.int64(stats[:, 0].max())
    room, out = np.empty(tile_size(prior) * largest), np.empty(largest)
    for k in cluster_order(labels, stats):
        n = bounds[k + 1] - bounds[k]
        block = part_of(room, 0, tile_size(prior) * n)
        gather_columns(prior, data, members[bounds[k] : bounds[k + 1]], block)
        theta = stats[k, THETA:]
        stats[k, LOG_POSTERIOR] = move_parameters(prior, block, n, theta, rng, out)
    return stats


@jitted
def gather_parameters(prior, data, labels, params):
    """Compute statistics of clusters from their members and parameters.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    params : ndarray of float64, shape (K, P)
        Of each cluster, none of which is empty.

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    n_obs, n_clusters = labels.shape[0], params.shape[0]
    stats = np.empty((n_clusters, THETA + prior.widths.shape[0]))
    bounds, members = np.empty(n_clusters + 1, np.int64), np.empty(n_obs, np.int64)
    group_by_label(labels, np.arange(n_obs), bounds, members)
    room, out = np.empty(tile_size(prior) * n_obs), np.empty(n_obs)
    for k in range(n_clusters):
        n = bounds[k + 1] - bounds[k]
        block = part_of(room, 0, tile_size(prior) * n)
        gather_columns(prior, data, members[bounds[k] : bounds[k + 1]], block)
        stats[k, 0] = n
        stats[k, THETA:] = params[k, 1:]
        stats[k, LOG_POSTERIOR] = log_posterior(prior, block, n, stats[k, THETA:], out)
    return stats


@jitted
def best_pilot(prior, block, n_rows, theta, out):
    """Write the draw from the base measure with the highest posterior given some rows.

    Parameters
    ----------
    prior : NamedTuple
    block : ndarray of float64, shape (F * n_rows,)
        Columns of the rows, see `gather_columns`.
    n_rows : int
    theta : ndarray of float64, shape (P,)
        Overwritten.
    out : ndarray of float64, shape (n_rows,)
        Scratch.

    Returns
    -------
    float
        Its log posterior.
    """
    best = -np.inf
    theta[:] = prior.pilots[0]
    for m in range(prior.pilots.shape[0]):
        value = log_posterior(prior, block, n_rows, prior.pilots[m], out)
        if value > best:
            best = value
            theta[:] = prior.pilots[m]
    return best


@jitted
def fit_pilots(prior, data, labels, n_clusters):
    """Compute statistics of clusters, with starting parameters, from their members.

    The parameters of a cluster are, among draws made once from the base measure, those with the
    highest posterior given up to `_SOME` of its members.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    labels : ndarray of int32, shape (N,)
    n_clusters : int

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    stats = np.zeros((n_clusters, THETA + prior.widths.shape[0]))
    bounds, members = np.empty(n_clusters + 1, np.int64), np.empty(labels.shape[0], np.int64)
    group_by_label(labels, np.arange(labels.shape[0]), bounds, members)
    room, out = np.empty(tile_size(prior) * _SOME), np.empty(_SOME)
    for k in range(n_clusters):
        n = bounds[k + 1] - bounds[k]
        some = min(n, _SOME)
        block = part_of(room, 0, tile_size(prior) * some)
        step = n // some
        gather_columns(prior, data, members[bounds[k] : bounds[k + 1] : step][:some], block)
        stats[k, 0] = n
        stats[k, LOG_POSTERIOR] = best_pilot(prior, block, some, stats[k, THETA:], out)
    return stats
