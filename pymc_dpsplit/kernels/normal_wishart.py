"""The normal-inverse-Wishart posterior and draws from it; docs/method.md, eq. (24)-(26).

`prior` is any NamedTuple with mu0 (D,), kappa0, nu0, psi0 (D, D) and floor (D,), the squared
pivots of psi0.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.linalg import cholesky_inplace, log_diagonal_sum
from pymc_dpsplit.kernels.overrelaxation import overrelax_log_gamma, overrelax_normal
from pymc_dpsplit.kernels.products import AT_ONCE, add_product
from pymc_dpsplit.kernels.random import draw_log_gamma

_LOG_2, _LOG_2PI = math.log(2.0), math.log(2.0 * math.pi)


@kernel
def fill_posterior(prior, stats, mean, factor):
    """Posterior mean and Cholesky factor of psi_n, eq. (25); returns kappa_n and nu_n."""
    n = stats[0]
    n_features = mean.shape[0]
    kappa_n = prior.kappa0 + n
    weight = prior.kappa0 * n / kappa_n
    for a in range(n_features):
        mean[a] = stats[1 + a] / n - prior.mu0[a] if n > 0.0 else 0.0
    at = 1 + n_features
    for a in range(n_features):
        for b in range(a + 1):
            scatter = stats[at] - stats[1 + a] * (stats[1 + b] / n) if n > 0.0 else 0.0
            factor[a, b] = prior.psi0[a, b] + scatter + weight * mean[a] * mean[b]
            at += 1
    cholesky_inplace(factor, prior.floor)
    for a in range(n_features):
        mean[a] = prior.mu0[a] + n / kappa_n * mean[a]
    return kappa_n, prior.nu0 + n


@kernel
def draw_whitening(inverse, nu_n, rng, whitening):
    """Draw W, lower triangular, with W'W ~ Wishart(nu_n, psi_n^-1), eq. (26).

    A reversed Bartlett decomposition: W = B C^-1 with psi_n = C C' and B lower,
    B_ii^2 ~ chi^2(nu_n - (D - 1 - i)).  No covariance is formed or factorised.

    Parameters
    ----------
    inverse : ndarray of float64, shape (D, D)
        C^-1, zero above its diagonal.
    nu_n : float
    whitening : ndarray of float64, shape (D, D)
        Its lower triangle is written, and little beside the diagonal above.
    """
    n_features = inverse.shape[0]
    bartlett = np.zeros((n_features, n_features))
    for a in range(n_features):
        for b in range(a):
            bartlett[a, b] = rng.standard_normal()
        shape = 0.5 * (nu_n - (n_features - 1 - a))
        if shape < 1.0:
            bartlett[a, a] = math.exp(0.5 * (math.log(2.0) + draw_log_gamma(rng, shape)))
        else:
            bartlett[a, a] = math.sqrt(2.0 * rng.standard_gamma(shape))
    _multiply_lower(bartlett, inverse, whitening)


@kernel
def overrelax_whitening(factor, inverse, nu_n, rng, whitening):
    """Move W, a draw of `draw_whitening`, to another by over-relaxing the elements of B = W C.

    Parameters
    ----------
    factor, inverse : ndarrays of float64, shape (D, D)
        C and C^-1, zero above their diagonals.
    nu_n : float
    whitening : ndarray of float64, shape (D, D)
        As `draw_whitening` leaves it; overwritten.
    """
    n_features = inverse.shape[0]
    bartlett = np.empty((n_features, n_features))
    _multiply_lower(whitening, factor, bartlett)
    for a in range(n_features):
        for b in range(a):
            bartlett[a, b] = overrelax_normal(rng, bartlett[a, b])
        bartlett[a, a + 1 :] = 0.0
        # The diagonal is the root of a chi-square variable, which is twice a gamma variable.
        log_half = 2.0 * math.log(bartlett[a, a]) - _LOG_2
        shape = 0.5 * (nu_n - (n_features - 1 - a))
        log_half = overrelax_log_gamma(rng, shape, log_half)
        bartlett[a, a] = math.exp(0.5 * (_LOG_2 + log_half))
    _multiply_lower(bartlett, inverse, whitening)


@kernel
def _multiply_lower(left, right, out):
    """Write the product of two matrices that are zero above their diagonals.

    Of `out` the lower triangle is written, and little beside the diagonal above.
    """
    n_features = out.shape[0]
    for a in range(n_features):
        for b in range(a + 1):
            out[a, b] = 0.0
    # Not further than the diagonal, or a little.
    for first in range(0, n_features, AT_ONCE):
        last = min(first + AT_ONCE, n_features)
        add_product(1.0, left, right, (first, last), last, (0, last), out)


@kernel
def set_density(whitening, mean, params):
    """Write normaliser and whitening matrix (lower, D x D) into `params`; c = W mean."""
    n_features = mean.shape[0]
    params[:] = 0.0
    params[0] = log_diagonal_sum(whitening) - 0.5 * n_features * _LOG_2PI
    for a in range(n_features):
        c = 0.0
        for b in range(a + 1):
            c += whitening[a, b] * mean[b]
            params[1 + n_features * (1 + a) + b] = whitening[a, b]
        params[1 + a] = c
