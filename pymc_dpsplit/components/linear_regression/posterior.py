"""Posterior of the coefficients of one cluster, its draws and its marginal likelihood.

A row of the data is z = (x, y), and only the density of y given x counts.  With an intercept, the
augmented rows (1, x, y) and the prior, written as rows of the same kind, have the cross products

    [kappa_n  .                            ]
    [kappa_n m  psi_n + kappa_n m m'       ],

where m and psi_n are those of the normal-inverse-Wishart update of the rows z, with `mu0`, `kappa0`
and `psi0` of the prior below; docs/method.md, eqs. (7.43) to (7.46).  Without one, psi_n is psi0
plus the cross products of the rows z, and m = 0.  In the Cholesky factor of psi_n, with y last,
the block L of x is that of the precision of the slopes, the last row l gives their mean, the
solution of L' beta = l, and the square of the last pivot is 2 b_n.

Layout.  stats: n, sums (D), lower triangle of the sum of outer products, by rows.  params: log
normaliser, then constant and slopes (D) of the standardised residual, which is linear in z.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.linalg import cholesky_inplace
from pymc_dpsplit.kernels.linear import fill_log_linear
from pymc_dpsplit.kernels.normal_wishart import fill_posterior
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.scatter import add_outer, add_outer_groups
from pymc_dpsplit.kernels.special import positive_exp
from pymc_dpsplit.kernels.tiles import TILE, load_dense_tile
from pymc_dpsplit.kernels.views import part_of

_LOG_2, _LOG_2PI = math.log(2.0), math.log(2.0 * math.pi)


class LinearRegressionPrior(NamedTuple):
    """Hyperparameters for kernels.

    `mu0` (D,), `kappa0`, `nu0` = 2 a0, `psi0` (D, D) and `floor` (D,), the squared pivots of
    `psi0`, are those that `kernels.normal_wishart.fill_posterior` reads; `mu0` is relative to the
    shift.  `log_norm` is the part of the log marginal likelihood that depends on the prior alone.
    """

    shift: np.ndarray
    mu0: np.ndarray
    kappa0: float
    nu0: float
    psi0: np.ndarray
    floor: np.ndarray
    log_norm: float
    has_intercept: bool


@base.implements(base.stats_size, LinearRegressionPrior)
def _stats_size(prior):
    n_features = prior.mu0.shape[0]
    return 1 + n_features + n_features * (n_features + 1) // 2


@base.implements(base.params_size, LinearRegressionPrior)
def _params_size(prior):
    return 2 + prior.mu0.shape[0]


@base.implements(base.tile_size, LinearRegressionPrior)
def _tile_size(prior):
    return prior.mu0.shape[0] + 1


@base.implements(base.load_tile, LinearRegressionPrior)
def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)
    # `fill_log_linear` adds the row after the features.
    last = prior.mu0.shape[0] * TILE
    for t in range(TILE):
        tile[last + t] = 0.0


@base.implements(base.fill_log_density, LinearRegressionPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    d, log_norm = prior.mu0.shape[0], params[0]
    fill_log_linear(tile, part_of(params, 2, d), params[1], out)
    for t in range(TILE):
        out[t] = log_norm - 0.5 * out[t] * out[t]


@base.implements(base.add_row, LinearRegressionPrior)
def _add_row(prior, data, i, stats):
    add_outer(prior.shift, data, i, stats)


@base.implements(base.add_groups, LinearRegressionPrior)
def _add_groups(prior, data, members, bounds, stats):
    add_outer_groups(prior.shift, data, members, bounds, stats)


@jitted
def fill_factor(prior, stats, mean, factor):
    """Write the centre of the rows and the Cholesky factor of psi_n.

    Parameters
    ----------
    prior : LinearRegressionPrior
    stats : ndarray of float64, shape (S,)
    mean : ndarray of float64, shape (D,)
        Overwritten; 0 without an intercept.
    factor : ndarray of float64, shape (D, D)
        Overwritten in its lower triangle.

    Returns
    -------
    kappa_n : float
        Precision of the intercept at the centre, in units of sigma^-2; infinite without one.
    """
    if prior.has_intercept:
        kappa_n, _ = fill_posterior(prior, stats, mean, factor)
        return kappa_n
    d = mean.shape[0]
    at = 1 + d
    for a in range(d):
        mean[a] = 0.0
        for b in range(a + 1):
            factor[a, b] = prior.psi0[a, b] + stats[at]
            at += 1
    cholesky_inplace(factor, prior.floor)
    return math.inf


@base.implements(base.log_marginal, LinearRegressionPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.45)."""
    d = prior.mu0.shape[0]
    mean, factor = np.empty(d), np.empty((d, d))
    kappa_n = fill_factor(prior, stats, mean, factor)
    a_n = 0.5 * (prior.nu0 + stats[0])
    total = prior.log_norm - 0.5 * stats[0] * _LOG_2PI + math.lgamma(a_n)
    if prior.has_intercept:
        total -= 0.5 * math.log(kappa_n)
    for j in range(d - 1):
        total -= math.log(factor[j, j])
    return total - a_n * (2.0 * math.log(factor[d - 1, d - 1]) - _LOG_2)


@jitted
def _set_params(mean, factor, log_precision, noise, params):
    """Write the parameters whose standardised distance from the posterior mean is `noise`.

    Parameters
    ----------
    mean : ndarray of float64, shape (D,)
    factor : ndarray of float64, shape (D, D)
        As `fill_factor` writes them.
    log_precision : float
        Minus log sigma.
    noise : ndarray of float64, shape (D,)
        Of the slopes, then of the intercept at the centre, in units of sigma.
    params : ndarray of float64, shape (2 + D,)
        Overwritten.
    """
    last = mean.shape[0] - 1
    precision = positive_exp(log_precision)
    params[0] = log_precision - 0.5 * _LOG_2PI
    params[2 + last] = precision
    constant = -precision * mean[last] - noise[last]
    # The solution of L' beta = l + sigma noise, times the precision.
    for j in range(last - 1, -1, -1):
        slope = precision * factor[last, j] + noise[j]
        for i in range(j + 1, last):
            slope += factor[i, j] * params[2 + i]
        params[2 + j] = -slope / factor[j, j]
        constant -= params[2 + j] * mean[j]
    params[1] = constant


@base.implements(base.draw_parameters, LinearRegressionPrior)
def _draw_parameters(prior, stats, rng, params):
    """Draw from the normal-inverse-gamma posterior, eq. (7.44)."""
    d = prior.mu0.shape[0]
    mean, factor, noise = np.empty(d), np.empty((d, d)), np.zeros(d)
    kappa_n = fill_factor(prior, stats, mean, factor)
    a_n, log_root = 0.5 * (prior.nu0 + stats[0]), math.log(factor[d - 1, d - 1])
    log_precision = 0.5 * (draw_log_gamma(rng, a_n) + _LOG_2) - log_root
    for j in range(d - 1):
        noise[j] = rng.standard_normal()
    if prior.has_intercept:
        noise[d - 1] = rng.standard_normal() / math.sqrt(kappa_n)
    _set_params(mean, factor, log_precision, noise, params)


@base.implements(base.mean_parameters, LinearRegressionPrior)
def _mean_parameters(prior, stats, params):
    """Use the posterior means of the coefficients and of 1 / sigma^2."""
    d = prior.mu0.shape[0]
    mean, factor = np.empty(d), np.empty((d, d))
    fill_factor(prior, stats, mean, factor)
    log_root = math.log(factor[d - 1, d - 1])
    log_precision = 0.5 * math.log(prior.nu0 + stats[0]) - log_root
    _set_params(mean, factor, log_precision, np.zeros(d), params)
