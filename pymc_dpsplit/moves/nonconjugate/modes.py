"""Mode of the posterior of a cluster's parameters, and a t distribution around it.

The mode is climbed to by Newton steps with finite differences.  The differences are taken over
about one posterior standard deviation, as the curvature implies it: on this scale a quadratic must
fit, and kinks, such as those of the Laplace distribution, do no harm.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.nonconjugate.parameters import log_posterior

_HALVINGS = 8
# Degrees of freedom of the t distribution, so that its tails are heavier than the posterior's.
_DF = 5.0


@jitted
def _differences(prior, block, n_rows, theta, value, steps, gradient, curvature, out):
    """Write gradient and minus the Hessian at `theta`; shorten `steps` that leave the support."""
    size = theta.shape[0]
    above = np.empty(size)
    for j in range(size):
        start = theta[j]
        for _ in range(_HALVINGS):
            theta[j] = start + steps[j]
            above[j] = log_posterior(prior, block, n_rows, theta, out)
            theta[j] = start - steps[j]
            below = log_posterior(prior, block, n_rows, theta, out)
            if above[j] > -np.inf and below > -np.inf:
                break
            steps[j] *= 0.25
        theta[j] = start
        gradient[j] = (above[j] - below) / (2.0 * steps[j])
        curvature[j, j] = (2.0 * value - above[j] - below) / steps[j] ** 2
        if not np.isfinite(gradient[j] + curvature[j, j]):
            gradient[j], curvature[j, j], above[j] = 0.0, 1.0 / steps[j] ** 2, value
    for i in range(size):
        for j in range(i):
            first, second = theta[i], theta[j]
            theta[i] += steps[i]
            theta[j] += steps[j]
            both = log_posterior(prior, block, n_rows, theta, out)
            theta[i], theta[j] = first, second
            mixed = (above[i] + above[j] - both - value) / (steps[i] * steps[j])
            curvature[i, j] = mixed if np.isfinite(mixed) else 0.0
            curvature[j, i] = curvature[i, j]


@jitted
def _factor(curvature, steps, factor):
    """Write the Cholesky factor of the curvature, made positive definite if necessary."""
    size = steps.shape[0]
    for j in range(size):
        if not curvature[j, j] > 0.0:
            curvature[j, j] = 1.0 / steps[j] ** 2
    shrink = 1.0
    for _ in range(_HALVINGS):
        if _cholesky(curvature, shrink, factor):
            return
        shrink *= 0.5
    _cholesky(curvature, 0.0, factor)


@jitted
def _cholesky(matrix, shrink, factor):
    """Factor `matrix` with off-diagonal elements times `shrink`; False if not positive definite."""
    factor[:] = 0.0
    for i in range(matrix.shape[0]):
        for j in range(i + 1):
            total = matrix[i, j] if i == j else matrix[i, j] * shrink
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            if i > j:
                factor[i, j] = total / factor[j, j]
            elif total > 1e-6 * matrix[i, i]:
                factor[i, i] = math.sqrt(total)
            else:
                return False
    return True


@jitted
def _newton_step(prior, block, n_rows, theta, value, gradient, factor, out):
    """Move `theta` uphill in place; return the new log posterior, `value` if no step succeeds."""
    size = theta.shape[0]
    step, start = gradient.copy(), theta.copy()
    for i in range(size):
        for j in range(i):
            step[i] -= factor[i, j] * step[j]
        step[i] /= factor[i, i]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            step[i] -= factor[j, i] * step[j]
        step[i] /= factor[i, i]
    for _ in range(_HALVINGS):
        theta[:] = start + step
        found = log_posterior(prior, block, n_rows, theta, out)
        if found > value:
            return found
        step *= 0.4
    theta[:] = start
    return value


@jitted
def climb(prior, block, n_rows, theta, n_steps, factor, out):
    """Climb from `theta` towards a mode of the posterior.

    Parameters
    ----------
    prior : NamedTuple
    block : ndarray of float64, shape (F * n_rows,)
        Columns of the members, see `gather_columns`.
    n_rows : int
    theta : ndarray of float64, shape (P,)
        Start; overwritten by the end.
    n_steps : int
        Maximum number of Newton steps.
    factor : ndarray of float64, shape (P, P)
        Overwritten by the Cholesky factor of minus the Hessian at the end.
    out : ndarray of float64, shape (>= n_rows,)
        Scratch.

    Returns
    -------
    float
        Log posterior at the end.
    """
    size = theta.shape[0]
    gradient, curvature = np.empty(size), np.empty((size, size))
    steps = 0.5 * prior.widths / math.sqrt(max(n_rows, 1))
    value = log_posterior(prior, block, n_rows, theta, out)
    for n in range(n_steps + 1):
        _differences(prior, block, n_rows, theta, value, steps, gradient, curvature, out)
        _factor(curvature, steps, factor)
        if n == n_steps:
            break
        for j in range(size):
            steps[j] = min(2.0 * steps[j], max(1e-3 * steps[j], 1.0 / math.sqrt(curvature[j, j])))
        before = value
        value = _newton_step(prior, block, n_rows, theta, value, gradient, factor, out)
        if value - before < 1e-2 and n > 0:
            n_steps = n + 1
    return value


@jitted
def draw_around(mode, factor, rng, theta):
    """Draw from a multivariate t distribution around `mode`.

    Parameters
    ----------
    mode : ndarray of float64, shape (P,)
    factor : ndarray of float64, shape (P, P)
        Cholesky factor of the precision, see `climb`.
    rng : numpy.random.Generator
    theta : ndarray of float64, shape (P,)
        Overwritten by the draw.
    """
    size = theta.shape[0]
    scale = math.sqrt(_DF / (2.0 * rng.standard_gamma(0.5 * _DF)))
    for i in range(size):
        theta[i] = rng.standard_normal() * scale
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            theta[i] -= factor[j, i] * theta[j]
        theta[i] /= factor[i, i]
    for i in range(size):
        theta[i] += mode[i]


@jitted
def log_density_around(mode, factor, theta):
    """Log density of the distribution of `draw_around` at `theta`, eq. (9.5).

    Parameters
    ----------
    mode : ndarray of float64, shape (P,)
    factor : ndarray of float64, shape (P, P)
    theta : ndarray of float64, shape (P,)

    Returns
    -------
    float
    """
    size = theta.shape[0]
    squared, log_det = 0.0, 0.0
    for j in range(size):
        total = 0.0
        for i in range(j, size):
            total += factor[i, j] * (theta[i] - mode[i])
        squared += total * total
        log_det += math.log(factor[j, j])
    log_norm = math.lgamma(0.5 * (_DF + size)) - math.lgamma(0.5 * _DF)
    log_norm += log_det - 0.5 * size * math.log(_DF * math.pi)
    return log_norm - 0.5 * (_DF + size) * math.log1p(squared / _DF)
