"""Elementary functions of any float64, without calls and branches, so that LLVM vectorises loops.

They agree with NumPy's to a few units in the last place.
"""

import math

from pymc_dpsplit.kernels.exponential import LOG2E, ROUND, exp2_of_fraction, times_power
from pymc_dpsplit.kernels.jit import jitted_inlined
from pymc_dpsplit.kernels.logarithm import LN2_HIGH, LN2_LOW, log_plainly

_LEAST_NORMAL = 2.0**-1022
_TWO54, _LOG_TWO54 = 2.0**54, 54.0 * math.log(2.0)
# Logarithms of the least normal float64 and of the largest.
_LEAST_LOG, _LARGEST_LOG = -708.396418532264, 709.782712893384


@jitted_inlined
def fast_log(x):
    """Logarithm of x.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    is_denormal = x < _LEAST_NORMAL
    y = x * _TWO54 if is_denormal else x
    log = log_plainly(y if y > 0.0 else 1.0)
    return _or_limit(log - _LOG_TWO54 if is_denormal else log, y)


@jitted_inlined
def fast_log1p(x):
    """Logarithm of 1 + x.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    y = 1.0 + x
    return _or_limit(_log_of_sum(x, y if y > 0.0 else 1.0), y)


@jitted_inlined
def _log_of_sum(x, y):
    """Logarithm of 1 + x, which is y but for rounding and positive."""
    # What y has lost of x in rounding is added again, divided by y.
    return log_plainly(y) + (x - (y - 1.0)) / y


@jitted_inlined
def _or_limit(log, y):
    """Return `log`, or the logarithm of y where y is not positive and finite."""
    log = log if y < math.inf else y
    log = log if y > 0.0 else math.nan
    return log if y != 0.0 else -math.inf


@jitted_inlined
def fast_exp(x):
    """Exponential of x, but 0 where it would be denormal.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    y = x if x >= _LEAST_LOG else _LEAST_LOG
    exp = _exp_within(y if y <= _LARGEST_LOG else _LARGEST_LOG)
    exp = exp if x >= _LEAST_LOG else 0.0
    exp = exp if x <= _LARGEST_LOG else math.inf
    return exp if x == x else x


@jitted_inlined
def _exp_within(x):
    """Exponential of x between `_LEAST_LOG` and `_LARGEST_LOG`."""
    shifted = x * LOG2E + ROUND
    n = shifted - ROUND
    rest = (x - n * LN2_HIGH) - n * LN2_LOW
    return times_power(exp2_of_fraction(rest * LOG2E), shifted)


@jitted_inlined
def fast_softplus(x):
    """Logarithm of 1 + exp(x), but the least normal float64 where it would be less.

    Parameters
    ----------
    x : float

    Returns
    -------
    float
    """
    y = -abs(x)
    exp = _exp_within(y if y >= _LEAST_LOG else _LEAST_LOG)
    return (0.0 if x <= 0.0 else x) + _log_of_sum(exp, 1.0 + exp)
