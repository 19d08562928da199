"""Predictive density of one observation under `family`, updated as observations come and go.

Layout of a cache: log predictive normaliser, n, log of the factor by which removals since the last
`fill_predictive` have reduced the determinant of the Cholesky factor, posterior mean (D), Cholesky
factor of psi_n (D x D), scratch (D).
"""

import math

from pymc_dpsplit.components import base
from pymc_dpsplit.components.mv_normal.family import MvNormalPrior
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.linalg import (
    add_rank_one,
    log_diagonal_sum,
    remove_rank_one,
    squared_solve,
)
from pymc_dpsplit.kernels.normal_wishart import fill_posterior

_LOG_PI = math.log(math.pi)


@base.implements(base.predictive_size, MvNormalPrior)
def _cache_size(prior):
    n_features = prior.mu0.shape[0]
    return 3 + 2 * n_features + n_features * n_features


@jitted
def _factor_in(cache, n_features):
    """Return a view of the Cholesky factor of psi_n in a cache."""
    return cache[3 + n_features : -n_features].reshape(n_features, n_features)


@jitted
def _refresh_normaliser(prior, cache):
    """Recompute the normaliser of the Student t predictive from n and the factor of psi_n."""
    n_features = prior.mu0.shape[0]
    kappa_n = prior.kappa0 + cache[1]
    freedom = prior.nu0 + cache[1] - n_features + 1.0
    factor = _factor_in(cache, n_features)
    cache[0] = (
        math.lgamma(0.5 * (freedom + n_features))
        - math.lgamma(0.5 * freedom)
        - 0.5 * n_features * (_LOG_PI + math.log((kappa_n + 1.0) / kappa_n))
        - log_diagonal_sum(factor)
    )


@base.implements(base.fill_predictive, MvNormalPrior)
def _fill_cache(prior, stats, cache):
    n_features = prior.mu0.shape[0]
    cache[1] = stats[0]
    cache[2] = 0.0
    factor = _factor_in(cache, n_features)
    fill_posterior(prior, stats, cache[3 : 3 + n_features], factor)
    _refresh_normaliser(prior, cache)


@base.implements(base.predictive_add, MvNormalPrior)
def _cache_add(prior, data, i, cache):
    """Update the factor of psi_n by a rank-one matrix, O(D^2); Das (2014), eq. 15."""
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    gap = cache[-n_features:]
    scale = math.sqrt(kappa_n / (kappa_n + 1.0))
    for d in range(n_features):
        difference = data[i, d] - prior.shift[d] - cache[3 + d]
        cache[3 + d] += difference / (kappa_n + 1.0)
        gap[d] = scale * difference
    factor = _factor_in(cache, n_features)
    add_rank_one(factor, gap)
    cache[1] += 1.0
    _refresh_normaliser(prior, cache)


@base.implements(base.predictive_remove, MvNormalPrior)
def _cache_remove(prior, data, i, cache):
    """Downdate the factor of psi_n by a rank-one matrix, O(D^2); Das (2014), eq. 16."""
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    gap = cache[-n_features:]
    scale = math.sqrt(kappa_n / (kappa_n - 1.0))
    for d in range(n_features):
        difference = data[i, d] - prior.shift[d] - cache[3 + d]
        cache[3 + d] -= difference / (kappa_n - 1.0)
        gap[d] = scale * difference
    cache[1] -= 1.0
    factor = _factor_in(cache, n_features)
    before = log_diagonal_sum(factor)
    sound = remove_rank_one(factor, gap)
    if sound:
        # Cancellation accumulates: a later removal can amplify an earlier rounding error.
        cache[2] += log_diagonal_sum(factor) - before
        sound = cache[2] > _LOG_DIGITS
    if sound:
        _refresh_normaliser(prior, cache)
    return sound


# If downdates reduce the determinant of the factor by more than this, half of its digits are lost.
_LOG_DIGITS = math.log(1e-4)


@base.implements(base.log_predictive, MvNormalPrior)
def _log_predictive(prior, data, i, cache):
    """Return the Student t log predictive density, eq. (7.8)."""
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    gap = cache[-n_features:]
    for d in range(n_features):
        gap[d] = data[i, d] - prior.shift[d] - cache[3 + d]
    factor = _factor_in(cache, n_features)
    squared = squared_solve(factor, gap) * kappa_n / (kappa_n + 1.0)
    return cache[0] - 0.5 * (prior.nu0 + cache[1] + 1.0) * math.log1p(squared)
