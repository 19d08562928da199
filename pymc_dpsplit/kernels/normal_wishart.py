"""Normal-inverse-Wishart posterior and draws from it; docs/method.md, eq. (7.4)-(7.6).

`prior` is any NamedTuple with mu0 (D,), kappa0, nu0, psi0 (D, D) and floor (D,), the squared
pivots of psi0.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.linalg import (
    add_rank_one,
    cholesky_inplace,
    invert_lower,
    log_diagonal_sum,
)
from pymc_dpsplit.kernels.overrelaxation import overrelax_log_gamma, overrelax_normal
from pymc_dpsplit.kernels.products import AT_ONCE, add_product
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import LEAST_LOG, positive_exp
from pymc_dpsplit.kernels.views import part_of, row_of, square_of

# Squared distance of the prior mean, in variances of a cluster, from which its term in psi_n is
# added to the factor: four of sixteen digits.
_FAR = 1e4
_LOG_2, _LOG_2PI = math.log(2.0), math.log(2.0 * math.pi)


@jitted
def fill_posterior(prior, stats, mean, factor):
    """Write the posterior mean and the Cholesky factor of psi_n, eq. (7.5).

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (S,)
    mean : ndarray of float64, shape (D,)
    factor : ndarray of float64, shape (D, D)
        Both overwritten; the factor in its lower triangle.

    Returns
    -------
    kappa_n, nu_n : float
    """
    n = stats[0]
    n_features = mean.shape[0]
    kappa_n = prior.kappa0 + n
    weight = prior.kappa0 * n / kappa_n
    is_far = False
    at = 1 + n_features
    for a in range(n_features):
        # From the prior mean to that of the cluster.
        mean[a] = stats[1 + a] / n - prior.mu0[a] if n > 0.0 else 0.0
        for b in range(a + 1):
            scatter = stats[at] - stats[1 + a] * (stats[1 + b] / n) if n > 0.0 else 0.0
            factor[a, b] = prior.psi0[a, b] + scatter
            at += 1
        is_far |= weight * mean[a] * mean[a] > _FAR * factor[a, a]
    if is_far:
        # Added to the matrix, the term of the means would leave few digits of the rest.
        cholesky_inplace(factor, prior.floor)
        root = math.sqrt(weight)
        for a in range(n_features):
            mean[a] *= root
        add_rank_one(factor, mean)
    else:
        for a in range(n_features):
            for b in range(a + 1):
                factor[a, b] += weight * mean[a] * mean[b]
        cholesky_inplace(factor, prior.floor)
    for a in range(n_features):
        mean[a] = (prior.kappa0 * prior.mu0[a] + stats[1 + a]) / kappa_n
    return kappa_n, prior.nu0 + n


@jitted
def draw_whitening(inverse, nu_n, rng, whitening):
    """Draw W, lower triangular, with W'W ~ Wishart(nu_n, psi_n^-1), eq. (7.6).

    This is a reversed Bartlett decomposition: W = B C^-1 with psi_n = C C' and B lower,
    B_ii^2 ~ chi^2(nu_n - (D - 1 - i)).  No covariance is formed or factorised.

    Parameters
    ----------
    inverse : ndarray of float64, shape (D, D)
        C^-1, zero above the diagonal.
    nu_n : float
    rng : numpy.random.Generator
    whitening : ndarray of float64, shape (D, D)
        The lower triangle is overwritten, and some elements next to the diagonal above it.

    Returns
    -------
    float
        To be added to the log determinant of `whitening`: 0, or less if an element of its diagonal
        is too small for float64.
    """
    n_features, log_lost = inverse.shape[0], 0.0
    bartlett = np.zeros((n_features, n_features))
    for a in range(n_features):
        for b in range(a):
            bartlett[a, b] = rng.standard_normal()
        shape = 0.5 * (nu_n - (n_features - 1 - a))
        if shape < 1.0:
            log_root = 0.5 * (_LOG_2 + draw_log_gamma(rng, shape))
            bartlett[a, a] = positive_exp(log_root)
            log_lost += min(log_root - LEAST_LOG, 0.0)
        else:
            bartlett[a, a] = math.sqrt(2.0 * rng.standard_gamma(shape))
    _multiply_lower(bartlett, inverse, whitening)
    return log_lost


@jitted
def overrelax_whitening(factor, inverse, nu_n, rng, whitening):
    """Move W, a draw of `draw_whitening`, to another by over-relaxing the elements of B = W C.

    Parameters
    ----------
    factor : ndarray of float64, shape (D, D)
        C and C^-1, zero above the diagonal.
    inverse : ndarray of float64, shape (D, D)
        C and C^-1, zero above the diagonal.
    nu_n : float
    rng : numpy.random.Generator
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
        # The square of a diagonal element is chi-square, which is twice a gamma variable.
        log_half = 2.0 * math.log(bartlett[a, a]) - _LOG_2
        shape = 0.5 * (nu_n - (n_features - 1 - a))
        log_half = overrelax_log_gamma(rng, shape, log_half)
        bartlett[a, a] = math.exp(0.5 * (_LOG_2 + log_half))
    _multiply_lower(bartlett, inverse, whitening)


@jitted
def _multiply_lower(left, right, out):
    """Write the product of two matrices that are zero above their diagonals.

    The lower triangle of `out` is written, and some elements next to the diagonal above it.
    """
    n_features = out.shape[0]
    for a in range(n_features):
        for b in range(a + 1):
            out[a, b] = 0.0
    # Blocks of rows stop at the diagonal block.
    for first in range(0, n_features, AT_ONCE):
        last = min(first + AT_ONCE, n_features)
        add_product(1.0, left, right, (first, last), last, (0, last), out)


@jitted
def set_density(whitening, mean, params):
    """Write log normaliser, centre W mean and whitening matrix W into `params`.

    Parameters
    ----------
    whitening : ndarray of float64, shape (D, D)
        W, lower triangular.
    mean : ndarray of float64, shape (D,)
    params : ndarray of float64, shape (1 + D + D * D,)
        Overwritten.
    """
    n_features = mean.shape[0]
    params[:] = 0.0
    params[0] = log_diagonal_sum(whitening) - 0.5 * n_features * _LOG_2PI
    for a in range(n_features):
        c = 0.0
        for b in range(a + 1):
            c += whitening[a, b] * mean[b]
            params[1 + n_features * (1 + a) + b] = whitening[a, b]
        params[1 + a] = c


@jitted
def fill_moments(params, shift, mu, cov):
    """Write the means and covariances of clusters, W^-1 c + shift and W^-1 W^-T.

    NumPy takes several times as long: it calls LAPACK for each matrix and knows no triangles.

    Parameters
    ----------
    params : ndarray of float64, shape (K, P)
        Log normaliser, c (D,) and W (D, D), lower triangular, of each cluster.
    shift : ndarray of float64, shape (D,)
    mu : ndarray of float64, shape (K, D)
        Overwritten.
    cov : ndarray of float64, shape (K, D, D)
        Overwritten.
    """
    n_features = shift.shape[0]
    root, turned = np.empty((n_features, n_features)), np.empty((n_features, n_features))
    for k in range(params.shape[0]):
        own = row_of(params, k)
        centre = part_of(own, 1, n_features)
        invert_lower(square_of(own, 1 + n_features, n_features), root)
        for a in range(n_features):
            mu[k, a] = shift[a]
            for b in range(a + 1):
                mu[k, a] += root[a, b] * centre[b]
                turned[b, a] = root[a, b]
        for a in range(n_features):
            for b in range(a + 1):
                cov[k, a, b] = 0.0
            # Sums of rows of the transposed root vectorise, inner products of its rows do not.
            for m in range(a + 1):
                factor = root[a, m]
                for b in range(m, a + 1):
                    cov[k, a, b] += factor * turned[m, b]
            for b in range(a):
                cov[k, b, a] = cov[k, a, b]
