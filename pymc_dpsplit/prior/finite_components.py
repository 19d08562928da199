"""Prior number of clusters of mixtures whose number of components is finite, known or random."""

from typing import Any

import numpy as np

from pymc_dpsplit.prior.clusters_law import laws_at

# Numbers of components that are tried, and how probable larger ones may be.
_MOST, _NEGLIGIBLE = 100_000, 1e-9
# Probability of a number that is neglected.
_LEAST = 1e-15


def law_of_finite(gamma: Any, n_components: Any, n: int) -> np.ndarray:
    """Average the distribution of the number of clusters over that of the components.

    Parameters
    ----------
    gamma : number
    n_components : int, array-like or frozen distribution
        As in `prior_n_clusters`.
    n : int
        Number of observations.

    Returns
    -------
    ndarray of float64, shape (n,)
        Probabilities of 1, .., n clusters, eq. (14.11).

    Raises
    ------
    ValueError
        If an argument is missing or out of range.
    """
    parameter = _checked_gamma(gamma)
    numbers, weights = numbers_of_components(n_components)
    law = np.zeros(n)
    for which, first, laws in laws_at(parameter * numbers, n, -parameter):
        law[first - 1 : first - 1 + laws.shape[1]] += weights[which] @ laws
    return law


def _checked_gamma(gamma: Any) -> float:
    is_number = isinstance(gamma, int | float | np.number) and not isinstance(gamma, bool)
    if not (is_number and 0.0 < gamma < np.inf):
        raise ValueError(
            f"gamma={gamma!r} is no positive number; give the parameter of the Dirichlet "
            "distribution, such as 1.0."
        )
    return float(gamma)


def numbers_of_components(n_components: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers of components, in ascending order, and their weights."""
    if hasattr(n_components, "pmf"):
        return _numbers_of_distribution(n_components)
    try:
        values = np.asarray(n_components, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        values = np.empty(0)
    if not values.size or not (np.isfinite(values) & (values >= 1) & (values % 1 == 0)).all():
        raise ValueError(
            f"n_components is a {type(n_components).__name__} that holds no whole numbers from 1; "
            "give a number, a discrete distribution such as scipy.stats.poisson(3, loc=1), or "
            "draws, as pm.draw(prior, 1000) makes them."
        )
    numbers, counts = np.unique(values, return_counts=True)
    return numbers, counts / counts.sum()


def _numbers_of_distribution(prior: Any) -> tuple[np.ndarray, np.ndarray]:
    low = prior.support()[0]
    if low < 1:
        raise ValueError(
            f"n_components has a prior on numbers from {low:g}; give a distribution on the numbers "
            "from 1, such as scipy.stats.poisson(3, loc=1)."
        )
    numbers = low + np.arange(float(_MOST))
    weights = np.asarray(prior.pmf(numbers))
    if not weights.sum() > 1.0 - _NEGLIGIBLE:
        raise ValueError(
            f"n_components has a prior under which more than {_MOST} are too likely; give draws of "
            "it instead, as prior.rvs(1000) makes them."
        )
    is_likely = weights > _LEAST
    return numbers[is_likely], weights[is_likely]
