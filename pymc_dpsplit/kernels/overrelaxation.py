"""Over-relaxed draws: to the other side of the mean, which leaves the law of a variable as it is.

A sweep draws labels given parameters and parameters given labels, in steps that are short where
clusters overlap.  A parameter that was on one side of its mean given the labels, and is drawn on
the other, goes up to twice as far (Adler 1981; Neal 1998), docs/method.md, eq. (152)-(153).
"""

import math

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.random import draw_log_gamma

# Correlation of a draw with the one before.  Nearer to -1 steps get little longer, but how far
# from the mean they are hardly changes from draw to draw.
_CORRELATION = -0.9
_NOISE = math.sqrt(1.0 - _CORRELATION**2)
# The logarithm of a gamma variable of smaller shape is too skew for its reflection to be accepted.
_LEAST_SHAPE = 4.0


@kernel
def overrelax_normal(rng, x):
    """Standard normal variable that follows the standard normal `x`."""
    return _CORRELATION * x + _NOISE * rng.standard_normal()


@kernel
def overrelax_log_gamma(rng, shape, y):
    """Logarithm of a gamma variable that follows one of the same shape, with logarithm `y`.

    Proposed as if it were normal, and accepted by Metropolis and Hastings.
    """
    if shape < _LEAST_SHAPE:
        return draw_log_gamma(rng, shape)
    mean, root = math.log(shape), math.sqrt(shape)
    x = (y - mean) * root
    x_new = overrelax_normal(rng, x)
    y_new = mean + x_new / root
    # Density of the variable over that of the normal law, relative to `mean`.
    change = shape * (y_new - y - math.exp(y_new - mean) + math.exp(y - mean))
    change += 0.5 * (x_new * x_new - x * x)
    return y_new if -rng.standard_exponential() < change else y
