"""Special functions."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import kernel

# Stands for the logarithm of 0 where infinities would meet and become NaN: exp of it is 0.
LOG_NOTHING = -1e300

_LOG_PI = math.log(math.pi)
_TABULATED = 256
# As many factors, none of them larger, have a product that is finite.
_FEW, _LARGE = 16.0, 1e15
_LOG_FACTORIALS = np.array([math.lgamma(n + 1.0) for n in range(_TABULATED)])


@kernel
def log_multigamma(a, n_features):
    """Logarithm of the multivariate gamma function of dimension `n_features` at `a`."""
    total = 0.25 * n_features * (n_features - 1) * _LOG_PI
    for j in range(n_features):
        total += math.lgamma(a - 0.5 * j)
    return total


@kernel
def log_factorial(n):
    """Logarithm of n!, for a nonnegative float64 that is an integer."""
    if n < _TABULATED:
        return _LOG_FACTORIALS[np.int64(n)]
    return math.lgamma(n + 1.0)


@kernel
def log_sum_of_two(a, b):
    """Logarithm of exp(a) + exp(b), without overflow."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@kernel
def log_rising(a, n):
    """Logarithm of a (a + 1) ... (a + n - 1), for a > 0 and a nonnegative integer n."""
    if a > _LARGE:
        return n * math.log(a)
    if n > _FEW:
        return math.lgamma(a + n) - math.lgamma(a)
    product = 1.0
    for j in range(np.int64(n)):
        product *= a + j
    return math.log(product)
