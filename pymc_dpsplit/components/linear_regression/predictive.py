"""Predictive density of y given x under `posterior`, updated as observations come and go.

Layout of a cache: log normaliser, n, log of the factor by which removals since the last
`fill_predictive` have reduced the determinant of the Cholesky factor, centre (D), Cholesky factor
of psi_n (D x D), scratch (D).
"""

import math

from pymc_dpsplit.components import base
from pymc_dpsplit.components.linear_regression.posterior import LinearRegressionPrior, fill_factor
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.linalg import (
    add_rank_one,
    log_diagonal_sum,
    remove_rank_one,
    squared_solve,
)

_LOG_PI = math.log(math.pi)
# If downdates reduce the determinant of the factor by more than this, half of its digits are lost.
_LOG_DIGITS = math.log(1e-4)


@base.implements(base.predictive_size, LinearRegressionPrior)
def _cache_size(prior):
    d = prior.mu0.shape[0]
    return 3 + 2 * d + d * d


@jitted
def _factor_in(cache, d):
    """Return a view of the Cholesky factor of psi_n in a cache."""
    return cache[3 + d : -d].reshape(d, d)


@jitted
def _refresh_normaliser(prior, cache):
    """Recompute what does not depend on the row, from n and the last pivot."""
    d = prior.mu0.shape[0]
    a_n = 0.5 * (prior.nu0 + cache[1])
    log_ratio = math.lgamma(a_n + 0.5) - math.lgamma(a_n)
    cache[0] = log_ratio - 0.5 * _LOG_PI - math.log(_factor_in(cache, d)[d - 1, d - 1])


@base.implements(base.fill_predictive, LinearRegressionPrior)
def _fill_cache(prior, stats, cache):
    d = prior.mu0.shape[0]
    cache[1] = stats[0]
    cache[2] = 0.0
    fill_factor(prior, stats, cache[3 : 3 + d], _factor_in(cache, d))
    _refresh_normaliser(prior, cache)


@jitted
def _fill_gap(prior, data, i, cache):
    """Write the distance of observation i from the centre to the scratch; return the scratch."""
    d = prior.mu0.shape[0]
    gap = cache[-d:]
    for j in range(d):
        gap[j] = data[i, j] - prior.shift[j] - cache[3 + j]
    return gap


@jitted
def _move_centre(prior, gap, step, shrink, cache):
    """Move the centre by `step` gaps, and shrink the gap to the root of its share in psi_n."""
    if prior.has_intercept:
        for j in range(prior.mu0.shape[0]):
            cache[3 + j] += step * gap[j]
            gap[j] *= shrink


@base.implements(base.predictive_add, LinearRegressionPrior)
def _cache_add(prior, data, i, cache):
    kappa_n = prior.kappa0 + cache[1]
    gap = _fill_gap(prior, data, i, cache)
    shrink = math.sqrt(kappa_n / (kappa_n + 1.0))
    _move_centre(prior, gap, 1.0 / (kappa_n + 1.0), shrink, cache)
    add_rank_one(_factor_in(cache, prior.mu0.shape[0]), gap)
    cache[1] += 1.0
    _refresh_normaliser(prior, cache)


@base.implements(base.predictive_remove, LinearRegressionPrior)
def _cache_remove(prior, data, i, cache):
    kappa_n = prior.kappa0 + cache[1]
    gap = _fill_gap(prior, data, i, cache)
    if prior.has_intercept:
        shrink = math.sqrt(kappa_n / (kappa_n - 1.0))
        _move_centre(prior, gap, -1.0 / (kappa_n - 1.0), shrink, cache)
    cache[1] -= 1.0
    factor = _factor_in(cache, prior.mu0.shape[0])
    before = log_diagonal_sum(factor)
    sound = remove_rank_one(factor, gap)
    if sound:
        # Cancellation accumulates: a later removal can amplify an earlier rounding error.
        cache[2] += log_diagonal_sum(factor) - before
        sound = cache[2] > _LOG_DIGITS
    if sound:
        _refresh_normaliser(prior, cache)
    return sound


@base.implements(base.log_predictive, LinearRegressionPrior)
def _log_predictive(prior, data, i, cache):
    """Return the Student t log density of y given x, eq. (7.46)."""
    d = prior.mu0.shape[0]
    gap = _fill_gap(prior, data, i, cache)
    squared_solve(_factor_in(cache, d), gap)
    # Variance of y given sigma = 1, and of the coefficients.
    spread = 1.0 + 1.0 / (prior.kappa0 + cache[1]) if prior.has_intercept else 1.0
    for j in range(d - 1):
        spread += gap[j] * gap[j]
    residual = gap[d - 1] * gap[d - 1] / spread
    freedom = prior.nu0 + cache[1]
    return cache[0] - 0.5 * math.log(spread) - 0.5 * (freedom + 1.0) * math.log1p(residual)
