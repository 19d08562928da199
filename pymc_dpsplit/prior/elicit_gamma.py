"""`elicit_gamma`: parameter of a finite mixture from the expected number of clusters."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln

from pymc_dpsplit.prior.finite_components import numbers_of_components
from pymc_dpsplit.prior.n_clusters import checked_n

# Above this sum of parameters differences of log gamma functions lose digits.
_LARGE = 50.0
# Range of the logarithm of gamma that is searched.
_LOWEST, _HIGHEST = np.log(1e-12), np.log(1e6)


def elicit_gamma(n: int, expected: float, *, n_components: Any) -> float:
    """Find the Dirichlet parameter for which a finite mixture has the expected number of clusters.

    "About 3 clusters among 300 rows, of 10 components" is
    ``elicit_gamma(300, 3, n_components=10)``, for a `FiniteMixture` or an `MFMixture`.

    Parameters
    ----------
    n : int
        Number of observations.
    expected : float
        Prior mean of the number of clusters, above 1.
    n_components : int, array-like or frozen distribution
        The number of components, draws of it, or a discrete distribution of ``scipy.stats``, as for
        `prior_n_clusters`.

    Returns
    -------
    float
        Gamma.

    Raises
    ------
    ValueError
        If no gamma gives this mean, which lies between 1 and what equal weights give, or if an
        argument is out of range.

    Notes
    -----
    The mean grows with gamma [1]_.  `prior_n_clusters` tells the whole distribution of the result.

    References
    ----------
    .. [1] docs/method.md, eq. (14.12).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> from scipy import stats
    >>> components = stats.poisson(9, loc=1)
    >>> gamma = dps.elicit_gamma(300, 3, n_components=components)
    >>> round(gamma, 4)
    0.044
    >>> law = dps.prior_n_clusters(n=300, gamma=gamma, n_components=components)
    >>> float((law * law["n_clusters"]).sum().round(6))
    3.0
    """
    n = checked_n(n)
    is_number = isinstance(expected, int | float | np.number) and not isinstance(expected, bool)
    if not (is_number and 1 < expected < n):
        raise ValueError(
            f"expected={expected!r} clusters cannot be the mean among n={n} observations; give a "
            f"number between 1 and {n}."
        )
    numbers, weights = numbers_of_components(n_components)

    def excess_of(log_gamma: float) -> float:
        return float(weights @ expected_of_finite(np.exp(log_gamma), numbers, n)) - expected

    if excess_of(_HIGHEST) <= 0:
        most = excess_of(_HIGHEST) + expected
        raise ValueError(
            f"expected={expected:g} clusters are too many among {n} with these n_components, as "
            f"even equal weights give {most:.3g}; give a smaller number, or more components."
        )
    if excess_of(_LOWEST) >= 0:
        raise ValueError(
            f"expected={expected:g} clusters are too few for any gamma that matters; give a larger "
            "number, or n_components=1."
        )
    return float(np.exp(brentq(excess_of, _LOWEST, _HIGHEST, xtol=1e-13)))


def expected_of_finite(gamma: float, numbers: np.ndarray, n: int) -> np.ndarray:
    """Return mean numbers of clusters among n observations given numbers of components, (14.12).

    Parameters
    ----------
    gamma : float
    numbers : ndarray of float64, shape (A,)
        Numbers of components M.
    n : int

    Returns
    -------
    ndarray of float64, shape (A,)
    """
    others = gamma * np.maximum(numbers - 1.0, 1.0)
    near = np.minimum(others, _LARGE)
    log_empty = np.where(
        others < _LARGE,
        betaln(gamma, near + n) - betaln(gamma, near),
        _log_empty_by_series(gamma, np.maximum(others, _LARGE), n),
    )
    return np.where(numbers == 1.0, 1.0, -numbers * np.expm1(log_empty))


def _log_empty_by_series(gamma: float, others: np.ndarray, n: int) -> np.ndarray:
    """Return the log ratio of beta functions by Stirling's series, without large differences."""

    def part(low: np.ndarray) -> np.ndarray:
        high = low + n
        series = [1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) for x in (high, low)]
        return (low - 0.5) * np.log1p(n / low) + series[0] - series[1]

    every = others + gamma
    return n * np.log1p(-gamma / (every + n)) + part(others) - part(every)
