"""Over-relaxed draws: noisy reflection about the mean that leaves the law of a variable invariant.

A sweep draws labels given parameters and parameters given labels, in steps that are short if
clusters overlap.  A parameter on one side of its mean given the labels that is drawn on the other
side moves up to twice as far (Adler 1981; Neal 1998), docs/method.md, eq. (2.6)-(2.7).
"""

import math

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma

# Correlation of successive draws.  Closer to -1 the steps are little longer, but the distance from
# the mean hardly changes from draw to draw.
_CORRELATION = -0.9
_NOISE = math.sqrt(1.0 - _CORRELATION**2)
# The logarithm of a gamma variable of smaller shape is too skew for its reflection to be accepted.
_LEAST_SHAPE = 4.0


@jitted
def overrelax_normal(rng, x):
    """Draw a standard normal variable by over-relaxation of the standard normal `x`."""
    return _CORRELATION * x + _NOISE * rng.standard_normal()


@jitted
def overrelax_log_gamma(rng, shape, y):
    """Draw the log of a gamma variable by over-relaxation of `y`, the log of one of the same shape.

    The proposal treats it as normal; a Metropolis-Hastings step corrects for that, eq. (2.7).

    Parameters
    ----------
    rng : numpy.random.Generator
    shape, y : float

    Returns
    -------
    float
    """
    if shape < _LEAST_SHAPE:
        return draw_log_gamma(rng, shape)
    mean, root = math.log(shape), math.sqrt(shape)
    x = (y - mean) * root
    x_new = overrelax_normal(rng, x)
    y_new = mean + x_new / root
    # Log ratio of the density to its normal approximation, proposed minus present.
    change = shape * (y_new - y - math.exp(y_new - mean) + math.exp(y - mean))
    change += 0.5 * (x_new * x_new - x * x)
    return y_new if -rng.standard_exponential() < change else y
