"""Parameters that are part of the state: moved given the members of their clusters.

Where nothing can be integrated out, the parameters theta_k of a cluster are moved by an update
that leaves p(theta | x_S), proportional to h(theta) prod_i f(x_i; theta), invariant, eq. (76):
slice sampling along each coordinate of an unconstrained scale, by stepping out and shrinkage
(Neal 2003, figures 3 and 5).  It has no step size to get wrong; the first guess at the width of a
slice does not depend on theta, and only costs time where it is bad.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.generic import (
    LOG_POSTERIOR,
    THETA,
    log_base_of,
    sum_log_density,
)
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.views import part_of
from pymc_dpsplit.moves.tile_labels import group_by_label

_MOST_STEPS = 32
# Members that a first guess looks at.
_SOME = 200


@kernel
def gather_columns(prior, data, members, block):
    """Write the rows `members` (n,) into `block` (F * n,), column by column."""
    n, n_features = members.shape[0], data.shape[1]
    for j in range(n_features):
        for i in range(n):
            block[j * n + i] = data[members[i], j]
    for j in range(prior.covariates.shape[1]):
        for i in range(n):
            block[(n_features + j) * n + i] = prior.covariates[members[i], j]


@kernel
def log_posterior(prior, block, n_rows, theta, out):
    """Log of h(theta) prod_i f(x_i; theta), eq. (76); `out` (n_rows,) is scratch."""
    log_base = log_base_of(prior, theta)
    if log_base == -np.inf:
        return log_base
    return log_base + sum_log_density(prior, block, n_rows, theta, out)


@kernel
def _at(prior, block, n_rows, theta, j, value, out):
    theta[j] = value
    return log_posterior(prior, block, n_rows, theta, out)


@kernel
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
        # The slice shrinks to where it began, which always lies in it.
        if value > level or drawn == start:
            return value
        if drawn < start:
            left = drawn
        else:
            right = drawn


@kernel
def move_parameters(prior, block, n_rows, theta, rng, out):
    """Move each coordinate of `theta` (P,) in place; return the log posterior at the end."""
    value = log_posterior(prior, block, n_rows, theta, out)
    for j in range(theta.shape[0]):
        width = prior.widths[j] / math.sqrt(n_rows)
        value = _move_coordinate(prior, block, n_rows, theta, j, value, width, rng, out)
    return value


@kernel
def update_parameters(prior, data, labels, stats, rng):
    """Move the parameters of every cluster given its members; changes `stats` in place."""
    n_obs, n_clusters = labels.shape[0], stats.shape[0]
    bounds, members = np.empty(n_clusters + 1, np.int64), np.empty(n_obs, np.int64)
    group_by_label(labels, np.arange(n_obs), bounds, members)
    largest = np.int64(stats[:, 0].max())
    room, out = np.empty(tile_size(prior) * largest), np.empty(largest)
    for k in range(n_clusters):
        n = bounds[k + 1] - bounds[k]
        block = part_of(room, 0, tile_size(prior) * n)
        gather_columns(prior, data, members[bounds[k] : bounds[k + 1]], block)
        theta = stats[k, THETA:]
        stats[k, LOG_POSTERIOR] = move_parameters(prior, block, n, theta, rng, out)
    return stats


@kernel
def best_pilot(prior, block, n_rows, theta, out):
    """Write the draw from the base measure that suits some rows best into `theta` (P,)."""
    best = -np.inf
    theta[:] = prior.pilots[0]
    for m in range(prior.pilots.shape[0]):
        value = log_posterior(prior, block, n_rows, prior.pilots[m], out)
        if value > best:
            best = value
            theta[:] = prior.pilots[m]
    return best


@kernel
def fit_pilots(prior, data, labels, n_clusters):
    """Statistics (K, S) of clusters that are given only their members.

    Each has the parameters, among those drawn once from the base measure, that suit up to
    `_SOME` of its members best.
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
