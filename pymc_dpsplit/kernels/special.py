"""Special functions."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted

# Logarithm of a precision, the inverse of a standard deviation of 1e130.
LEAST_LOG = -300.0
# Used as log(0) where -inf could lead to NaN; its exponential is 0.
LOG_ZERO = -1e300

_LOG_PI = math.log(math.pi)
_TABULATED = 256
# A product of up to _FEW factors of at most about _LARGE is finite.
_FEW, _LARGE = 16.0, 1e15
_LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(_TABULATED)])


@jitted
def positive_exp(x):
    """Exponential of `x`, or of `LEAST_LOG` where `x` is less: positive, and so is its square.

    For the precision of an atom that is drawn from a base measure with a tiny shape: its logarithm
    may be -1e5.  The mean of the atom is then so far away, in data that are never as large, that
    its density is that of the mean alone.
    """
    return math.exp(max(x, LEAST_LOG))


@jitted
def log_multigamma(a, n_features):
    """Logarithm of the multivariate gamma function of dimension `n_features` at `a`."""
    total = 0.25 * n_features * (n_features - 1) * _LOG_PI
    for j in range(n_features):
        total += math.lgamma(a - 0.5 * j)
    return total


@jitted
def log_factorial(n):
    """Logarithm of n!, for a nonnegative float64 that is an integer."""
    if n < _TABULATED:
        return _LOG_FACTORIALS[np.int64(n)]
    return math.lgamma(n + 1.0)


@jitted
def log_sum_of_two(a, b):
    """Logarithm of exp(a) + exp(b), without overflow."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jitted
def log_rising(a, n):
    """Logarithm of a (a + 1) ... (a + n - 1), for a > 0 and a nonnegative integer n.

    Parameters
    ----------
    a, n : float

    Returns
    -------
    float
    """
    if a > _LARGE:
        return n * math.log(a)
    if n > _FEW:
        return math.lgamma(a + n) - math.lgamma(a)
    product = 1.0
    for j in range(np.int64(n)):
        product *= a + j
    return math.log(product)
