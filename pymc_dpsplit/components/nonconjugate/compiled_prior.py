"""Kernel operations of non-conjugate components, which call compiled functions by address.

Such a family has neither sufficient statistics nor a marginal likelihood: the parameters of its
clusters are part of the state of the chain, on an unconstrained scale.

Layout, with P parameters theta.  stats: n, log joint density of theta and the members (eq. (9.2)),
theta (P).  params: 0, theta (P).  tile: the columns of the data, then those of the covariates.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.dispatch import optional_operation
from pymc_dpsplit.kernels.addresses import call_density, call_log_prior, call_refill
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of


class CompiledPrior(NamedTuple):
    """Addresses of the density and the base measure, and the data that these functions read.

    Attributes
    ----------
    shift : ndarray of float64, shape (D,)
        Not used: rows are read unshifted.
    density, log_prior, refill : int
        Addresses, see `kernels.addresses`; valid in one process only.
    shared : ndarray of float64, shape (S,)
        Constants and hyperparameters that all clusters share.
    covariates : ndarray of float64, shape (N, C)
        Covariates of each row; C may be 0.
    widths : ndarray of float64, shape (P,)
        Initial guess of the posterior width of each parameter in a singleton cluster.
    pilots : ndarray of float64, shape (M, P)
        Fixed draws from the base measure, used as starting points of fits.
    pool : ndarray of float64, shape (B, P)
        Draws from the base measure for future empty clusters.
    taken : ndarray of int64, shape (1,)
        Number of draws of the pool that have been used.
    """

    shift: np.ndarray
    density: int
    log_prior: int
    refill: int
    shared: np.ndarray
    covariates: np.ndarray
    widths: np.ndarray
    pilots: np.ndarray
    pool: np.ndarray
    taken: np.ndarray


# Indices in the statistics.
LOG_POSTERIOR, THETA = 1, 2


@jitted
def empty_pool(prior):
    """Discard the pool, so that later draws depend on the generator of the chain alone."""
    prior.taken[0] = prior.pool.shape[0]


@jitted
def log_base_of(prior, theta):
    """Return the log density of the base measure at `theta` (P,), with -inf for NaN."""
    out = np.empty(1)
    call_log_prior(prior.log_prior, theta, prior.shared, out)
    return -np.inf if np.isnan(out[0]) else out[0]


@jitted
def sum_log_density(prior, block, n_rows, theta, out):
    """Return the sum of the log densities of rows under `theta`, with -inf for NaN and +inf.

    Parameters
    ----------
    prior : CompiledPrior
    block : ndarray of float64
        Concatenated columns of `n_rows` elements each.
    n_rows : int
    theta : ndarray of float64, shape (P,)
    out : ndarray of float64, shape (>= n_rows,)
        Overwritten with the log density of each row.

    Returns
    -------
    float
    """
    call_density(prior.density, block, n_rows, theta, prior.shared, out)
    total = 0.0
    for i in range(n_rows):
        total += out[i]
    # A NaN sum compares false, so it becomes -inf.
    return total if total < np.inf else -np.inf


@optional_operation
def keep_parameters(prior, params, renumbered, stats):
    """Copy the parameters of the atoms of a sweep to the new statistics of their clusters.

    The default does nothing, for conjugate families, whose parameters are drawn again.

    Parameters
    ----------
    prior : NamedTuple
    params : ndarray of float64, shape (A, P)
    renumbered : ndarray of int64, shape (A,)
        Cluster of each atom, -1 for atoms without observations.
    stats : ndarray of float64, shape (K, S)
        Updated.
    """


@base.implements(keep_parameters, CompiledPrior)
def _keep_parameters(prior, params, renumbered, stats):
    for k in range(params.shape[0]):
        if renumbered[k] >= 0:
            stats[renumbered[k], THETA:] = params[k, 1:]


@base.implements(base.stats_size, CompiledPrior)
def _stats_size(prior):
    return THETA + prior.widths.shape[0]


@base.implements(base.params_size, CompiledPrior)
def _params_size(prior):
    return 1 + prior.widths.shape[0]


@base.implements(base.tile_size, CompiledPrior)
def _tile_size(prior):
    return prior.shift.shape[0] + prior.covariates.shape[1]


@base.implements(base.load_tile, CompiledPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for j in range(n_features):
        for t in range(TILE):
            tile[j * TILE + t] = data[rows[t], j]
    for j in range(prior.covariates.shape[1]):
        for t in range(TILE):
            tile[(n_features + j) * TILE + t] = prior.covariates[rows[t], j]


@base.implements(base.fill_log_density, CompiledPrior)
def _fill_log_density(prior, tile, params, out, scratch):
    theta = part_of(params, 1, prior.widths.shape[0])
    call_density(prior.density, tile, TILE, theta, prior.shared, out)
    for t in range(TILE):
        # NaN, for instance after an overflow of parameters, and +inf become -inf.
        out[t] = out[t] + params[0] if out[t] < np.inf else -np.inf


@base.implements(base.add_row, CompiledPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0


@base.implements(base.add_groups, CompiledPrior)
def _add_groups(prior, data, members, bounds, stats):
    for k in range(stats.shape[0]):
        stats[k, 0] += bounds[k + 1] - bounds[k]


@base.implements(base.log_marginal, CompiledPrior)
def _log_marginal(prior, stats):
    """Return the log joint density of the parameters and the members, eq. (9.2)."""
    return stats[LOG_POSTERIOR]


@base.implements(base.draw_parameters, CompiledPrior)
def _draw_parameters(prior, stats, rng, params):
    """Return the parameters of an occupied cluster, or the next draw of the pool for a new one."""
    params[0] = 0.0
    if stats[0] > 0.0:
        params[1:] = stats[THETA:]
        return
    if prior.taken[0] >= prior.pool.shape[0]:
        call_refill(prior.refill, draw_key(rng), prior.pool, prior.shared)
        prior.taken[0] = 0
    params[1:] = prior.pool[prior.taken[0]]
    prior.taken[0] += 1
