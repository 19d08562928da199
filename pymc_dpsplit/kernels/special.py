"""Special functions on tiles: a vectorised exponential, and the multivariate log gamma."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import kernel

_LOG2E = 1.4426950408889634
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to the nearest integer
_LOWEST = -1020.0  # powers of two below this would be denormal
_BIAS = np.int64(1023)
_MANTISSA = np.int64(52)
# Taylor coefficients of 2^f, log(2)^n / n!: on |f| <= 1/2 the first term left out is 2e-16.
_LN2 = 0.6931471805599453
_C = tuple(_LN2**n / math.factorial(n) for n in range(13))
_C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12 = _C[1:]
_LOG_PI = math.log(math.pi)


@kernel
def exp_inplace(values, rounded):
    """Replace `values` by exp(values), for values <= 0 or slightly above.

    Written as loops that LLVM vectorises: 2^x = 2^n 2^f with n the nearest integer, the
    fraction by a polynomial and 2^n by its bits.  Relative error below 1e-15 + 2e-16 |value|
    for |value| < 700; smaller values, -inf among them, give some number below 1e-303.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Overwritten.
    rounded : ndarray of float64, shape (n,)
        Scratch.
    """
    for t in range(values.shape[0]):
        x = values[t] * _LOG2E
        x = x if x > _LOWEST else _LOWEST
        shifted = x + _ROUND
        rounded[t] = shifted
        f = x - (shifted - _ROUND)
        p = _C12
        p = p * f + _C11
        p = p * f + _C10
        p = p * f + _C9
        p = p * f + _C8
        p = p * f + _C7
        p = p * f + _C6
        p = p * f + _C5
        p = p * f + _C4
        p = p * f + _C3
        p = p * f + _C2
        p = p * f + _C1
        p = p * f + 1.0
        values[t] = p
    # The low bits of `shifted` hold n; moved into the exponent field they are 2^n.
    bits = rounded.view(np.int64)
    for t in range(values.shape[0]):
        bits[t] = (bits[t] + _BIAS) << _MANTISSA
    for t in range(values.shape[0]):
        values[t] *= rounded[t]


@kernel
def log_multigamma(a, n_features):
    """Logarithm of the multivariate gamma function of dimension `n_features` at `a`."""
    total = 0.25 * n_features * (n_features - 1) * _LOG_PI
    for j in range(n_features):
        total += math.lgamma(a - 0.5 * j)
    return total
