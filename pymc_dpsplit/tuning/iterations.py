"""Iterations of a draw: as many as cost little, and more for a chain that mixes slowly.

Work is estimated from counts and not timed, so that a random seed determines the draws.
"""

import math

# Time per draw in nanoseconds.  PyMC and the step spend 0.1 to 0.2 ms on a draw, and more with
# NUTS, so that as much again is not noticed.  The time grows with the number of rows; from 1e5 rows
# on the kernels take about 95 % of it.  _MOST is the limit for a chain that mixes slowly.
_LEAST, _LEAST_PER_ROW, _LEAST_OF_MANY, _MOST = 2e5, 120.0, 1.2e7, 5e7
_MOST_ITERATIONS = 100
# Target number of draws per autocorrelation time of the slowest quantity.  Others mix several times
# as fast; with few draws these would be nearly independent, and iterations between them lost.  But
# an autocorrelation time that is estimated from few effective draws is too short more often than
# too long, so the target is a tenth of these.
_LEAST_PER_TIME, _MOST_PER_TIME = 1.5, 4.0
_EFFECTIVE_DRAWS_PER_TARGET = 10.0


def _iterations_within(nanoseconds: float, cost: float) -> int:
    return max(1, min(_MOST_ITERATIONS, int(nanoseconds / cost)))


def iterations_of_fast_chain(cost: float, n_rows: int, beside: float = _LEAST) -> int:
    """Return the number of iterations that cost little beside the other parts of a draw.

    Parameters
    ----------
    cost : float
        Of an iteration, in nanoseconds.
    n_rows : int
    beside : float
        Time per draw that is not noticed however few rows there are, in nanoseconds.

    Returns
    -------
    int
        From 1 to 100.
    """
    return _iterations_within(min(beside + _LEAST_PER_ROW * n_rows, _LEAST_OF_MANY), cost)


def most_iterations(cost: float) -> int:
    """Return the number of iterations of a chain that mixes as slowly as can be."""
    return _iterations_within(_MOST, cost)


def draws_wanted(draws_per_time: float, n_draws: int) -> float:
    """Target number of draws per autocorrelation time, which was estimated from `n_draws`."""
    reliable = n_draws / draws_per_time / _EFFECTIVE_DRAWS_PER_TARGET
    return min(_MOST_PER_TIME, max(_LEAST_PER_TIME, reliable))


def iterations_wanted(n_iterations: int, draws_per_time: float, per_time: float) -> int:
    """Return the number of iterations with which a chain has as many draws per time as wanted.

    Parameters
    ----------
    n_iterations : int
        With which the autocorrelation time was observed.
    draws_per_time : float
        The autocorrelation time, in draws.
    per_time : float
        Number of draws wanted per autocorrelation time.

    Returns
    -------
    int
    """
    return math.ceil(n_iterations * draws_per_time / per_time)
