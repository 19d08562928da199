"""Univariate slice sampling: exact for any density, without tuning."""

from collections.abc import Callable

import numpy as np

_MOST_STEPS = 50


def slice_draw(
    log_density: Callable[[float], float], start: float, width: float, rng: np.random.Generator
) -> float:
    """Move a number by slice sampling with stepping out and shrinkage.

    Parameters
    ----------
    log_density : callable
        Unnormalised log density; -inf outside the support.
    start : float
        Present value; the density must be positive there.
    width : float
        Initial width of the slice interval.
    rng : numpy.random.Generator

    Returns
    -------
    float

    References
    ----------
    .. [1] Neal (2003), Slice sampling, Annals of Statistics 31, section 4, figures 3 and 5.
    """
    level = log_density(start) - rng.standard_exponential()
    left = start - width * rng.random()
    right = left + width
    steps_left = int(_MOST_STEPS * rng.random())
    for _ in range(steps_left):
        if log_density(left) <= level:
            break
        left -= width
    for _ in range(_MOST_STEPS - 1 - steps_left):
        if log_density(right) <= level:
            break
        right += width
    while True:
        drawn = left + (right - left) * rng.random()
        if log_density(drawn) > level or drawn == start:
            return drawn
        if drawn < start:
            left = drawn
        else:
            right = drawn
