"""Kernel operations of components whose density and base measure are known by address.

Such a family has no sufficient statistics and no marginal likelihood: the parameters of its
clusters are part of the state of the chain.  They are kept on an unconstrained scale.

Layout, P parameters theta.  stats: n, log density of theta and of the members (eq. 76), theta (P).
params: 0, theta (P).  tile: the columns of the data, then those of the covariates.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from pymc_dpsplit.components import base
from pymc_dpsplit.kernels.addresses import call_density, call_log_prior, call_refill
from pymc_dpsplit.kernels.jit import FASTMATH, kernel
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of


class GenericPrior(NamedTuple):
    """Density and base measure by address, and what they are evaluated with.

    Attributes
    ----------
    shift : ndarray of float64, shape (D,)
        Not used: rows are read as they are.
    density, log_prior, refill : int
        Addresses, see `kernels.addresses`; they hold in one process.
    shared : ndarray of float64, shape (S,)
        What all clusters have in common: numbers and hyperparameters.
    covariates : ndarray of float64, shape (N, C)
        Of each row; C may be 0.
    widths : ndarray of float64, shape (P,)
        First guess at the extent of each parameter in a cluster of one member.
    pilots : ndarray of float64, shape (M, P)
        Draws from the base measure, always the same, from which fits start.
    pool : ndarray of float64, shape (B, P)
        Draws from the base measure for the clusters to come.
    taken : ndarray of int64, shape (1,)
        How many of them are used up.
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


# Positions in the statistics.
LOG_POSTERIOR, THETA = 1, 2


@kernel
def empty_pool(prior):
    """Use up the pool: what follows then depends on the generator of the chain alone."""
    prior.taken[0] = prior.pool.shape[0]


@kernel
def log_base_of(prior, theta):
    """Log density of the base measure at `theta` (P,), -inf where it is not a number."""
    out = np.empty(1)
    call_log_prior(prior.log_prior, theta, prior.shared, out)
    return -np.inf if np.isnan(out[0]) else out[0]


@kernel
def sum_log_density(prior, block, n_rows, theta, out):
    """Sum of the log densities of `n_rows` rows under `theta`; never NaN, never +inf.

    Parameters
    ----------
    block : ndarray of float64
        Columns of `n_rows` numbers each, one after the other.
    n_rows : int
    theta : ndarray of float64, shape (P,)
    out : ndarray of float64, shape (>= n_rows,)
        Written: the log density of each row.
    """
    call_density(prior.density, block, n_rows, theta, prior.shared, out)
    total = 0.0
    for i in range(n_rows):
        total += out[i]
    # Not a number is not less than anything.
    return total if total < np.inf else -np.inf


def keep_parameters(prior, params, renumbered, stats):
    """Keep the parameters (A, P) that clusters had in a sweep in their new statistics (K, S).

    `renumbered` (A,) is the cluster of each atom, -1 for those without observations.  Families
    that draw parameters anew keep nothing.
    """
    raise NotImplementedError("kernel operations run inside compiled kernels only")


@overload(keep_parameters, jit_options={"fastmath": FASTMATH, "nogil": True}, strict=False)
def _choose_what_to_keep(prior: Any, params: Any, renumbered: Any, stats: Any) -> Any:
    if prior.instance_class is not GenericPrior:
        return lambda prior, params, renumbered, stats: None

    def keep(prior, params, renumbered, stats):
        for k in range(params.shape[0]):
            if renumbered[k] >= 0:
                stats[renumbered[k], THETA:] = params[k, 1:]

    return keep


@base.implements(base.stats_size, GenericPrior)
def _stats_size(prior):
    return THETA + prior.widths.shape[0]


@base.implements(base.params_size, GenericPrior)
def _params_size(prior):
    return 1 + prior.widths.shape[0]


@base.implements(base.tile_size, GenericPrior)
def _tile_size(prior):
    return prior.shift.shape[0] + prior.covariates.shape[1]


@base.implements(base.load_tile, GenericPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for j in range(n_features):
        for t in range(TILE):
            tile[j * TILE + t] = data[rows[t], j]
    for j in range(prior.covariates.shape[1]):
        for t in range(TILE):
            tile[(n_features + j) * TILE + t] = prior.covariates[rows[t], j]


@base.implements(base.fill_log_density, GenericPrior)
def _fill_log_density(prior, tile, params, out, scratch):
    theta = part_of(params, 1, prior.widths.shape[0])
    call_density(prior.density, tile, TILE, theta, prior.shared, out)
    for t in range(TILE):
        # Not a number, as where parameters overflow, and infinity are impossible.
        out[t] = out[t] + params[0] if out[t] < np.inf else -np.inf


@base.implements(base.add_row, GenericPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0


@base.implements(base.add_groups, GenericPrior)
def _add_groups(prior, data, members, bounds, stats):
    for k in range(stats.shape[0]):
        stats[k, 0] += bounds[k + 1] - bounds[k]


@base.implements(base.log_marginal, GenericPrior)
def _log_marginal(prior, stats):
    """Log density of the parameters and the members, eq. (76): nothing is integrated out."""
    return stats[LOG_POSTERIOR]


@base.implements(base.draw_parameters, GenericPrior)
def _draw_parameters(prior, stats, rng, params):
    """Return the parameters of an occupied cluster; of a new one, the next draw of the pool."""
    params[0] = 0.0
    if stats[0] > 0.0:
        params[1:] = stats[THETA:]
        return
    if prior.taken[0] >= prior.pool.shape[0]:
        call_refill(prior.refill, draw_key(rng), prior.pool, prior.shared)
        prior.taken[0] = 0
    params[1:] = prior.pool[prior.taken[0]]
    prior.taken[0] += 1
