"""Number of split/merge attempts in an iteration."""

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.sweep.assignment import strip_count

# Attempts per batch.  They differ in length: for eight, two threads take 0.6 of the time of one.
_AT_ONCE = 8


@jitted
def whole(number, rng):
    """Round a number up or down at random, with the same mean."""
    return int(number) + (1 if rng.random() < number - int(number) else 0)


@jitted
def n_attempts(attempts, n_obs, rng):
    """Draw the number of attempts in this iteration; its mean is the planned `attempts`.

    With threads they are batched by 8, unless `attempts` is an integer.

    Parameters
    ----------
    attempts : float
        Planned mean per iteration.
    n_obs : int
    rng : numpy.random.Generator

    Returns
    -------
    int
    """
    at_once = 1 if attempts == int(attempts) or strip_count(n_obs) == 1 else _AT_ONCE
    return at_once * whole(attempts / at_once, rng)
