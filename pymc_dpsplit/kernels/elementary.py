"""Elementary functions of any float64, without calls and branches, so that LLVM vectorises loops.

They agree with NumPy's to a few units in the last place.
"""

import math

from pymc_dpsplit.kernels.exponential import LOG2E, ROUND, exp2_of_fraction, times_power
from pymc_dpsplit.kernels.jit import jitted_inlined
from pymc_dpsplit.kernels.logarithm import log_plainly

_LEAST_NORMAL = 2.0**-1022
_TWO54, _LOG_TWO54 = 2.0**54, 54.0 * math.log(2.0)
# Logarithms of the least normal float64 and of the largest.
_LEAST_LOG, _LARGEST_LOG = -708.396418532264, 709.782712893384
# Log 2 in two parts; the first has so few bits that its products with whole numbers are exact.
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


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
    # What y has lost of x in rounding is added again, divided by y.
    safe = y if y > 0.0 else 1.0
    return _or_limit(log_plainly(safe) + (x - (y - 1.0)) / safe, y)


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
    rest = (x - n * _LN2_HIGH) - n * _LN2_LOW
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
    grown = 1.0 + exp
    of_least = log_plainly(grown) + (exp - (grown - 1.0)) / grown
    return (0.0 if x <= 0.0 else x) + of_least
