"""Distribution of the number of clusters under laws with a discount, eqs. (14.7) and (14.8).

The discount is positive for a Pitman-Yor process, and negative for a finite mixture, whose strength
is a multiple of minus the discount.
"""

from typing import Any

import numpy as np
from scipy.special import gammaln, polygamma

# Above this strength differences of log gamma functions lose digits, and a series is used.
_LARGE = 1e3
# Below this multiple of the strength, or of 1, the discount is small, and a series in it is used.
_SMALL = 1e-3
# An opening mass below this, relative to the strength, is that of a full finite mixture.
_ROUNDING = 1e-12


def expected_with_discount(alpha: np.ndarray, n: int, discount: float) -> np.ndarray:
    """Return the mean number of clusters among n observations, eq. (14.7).

    Parameters
    ----------
    alpha : ndarray of float64
        Strength of the law.
    n : int
    discount : float
        Not 0.

    Returns
    -------
    ndarray of float64, shape of `alpha`
    """
    alpha = np.asarray(alpha, np.float64)
    low, high = np.minimum(alpha, _LARGE), np.maximum(alpha, _LARGE)
    rise = gammaln(low + discount + n) - gammaln(low + n) - gammaln(low + discount)
    # The mean is (Gamma(alpha + 1) exp(rise) - alpha) / d; for larger alpha both are close.
    near_zero = (np.exp(rise + gammaln(low + 1.0)) - low) / discount
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        whole = np.where(
            abs(discount) < _SMALL * np.minimum(low, 1.0),
            _rise_by_series(low, n, discount),
            rise + gammaln(low),
        )
        usual = low / discount * np.expm1(whole)
    growth = discount * np.log1p(n / high) + _beyond_logarithm(high + n, high, discount)
    large = high / discount * np.expm1(growth)
    is_usual = (low > 1.0) | (abs(discount) < _SMALL * low)
    return np.where(alpha > _LARGE, large, np.where(is_usual, usual, near_zero))


def _rise_by_series(alpha: np.ndarray, n: int, d: float) -> np.ndarray:
    """Return the log of Gamma(alpha + d + n) Gamma(alpha) / Gamma(alpha + n) / Gamma(alpha + d)."""
    terms = (
        d ** (m + 1) / factor * (polygamma(m, alpha + n) - polygamma(m, alpha))
        for m, factor in enumerate((1.0, 2.0, 6.0, 24.0))
    )
    return sum(terms, np.zeros_like(alpha))


def _beyond_logarithm(high: np.ndarray, low: np.ndarray, d: float) -> np.ndarray:
    """Return the difference of log Gamma(x + d) / (Gamma(x) x^d) at two large x, by its series."""
    first, second, third = d * (d - 1) / 2, -d * (d - 0.5) * (d - 1) / 6, (d * (d - 1)) ** 2 / 12
    u, v = 1.0 / high, 1.0 / low
    return (u - v) * (first + second * (u + v) + third * (u * u + u * v + v * v))


def laws_with_discounts(
    alphas: np.ndarray, discounts: np.ndarray, n: int, negligible: float = 1e-300
) -> tuple[int, np.ndarray]:
    """Compute laws of the number of clusters by the urn, eq. (14.8), row by row.

    Parameters
    ----------
    alphas, discounts : ndarray of float64, shape (A,)
        Strengths and discounts of the laws.
    n : int
    negligible : float
        Smaller probabilities at both ends are set to zero.

    Returns
    -------
    first : int
        Smallest number of clusters with a non-negligible probability under any of them.
    laws : ndarray of float64, shape (A, any)
        Probabilities of `first`, `first` + 1 and so on.
    """
    strengths, shares = alphas[:, None], discounts[:, None]
    first, laws = 1, np.ones((len(alphas), 1))
    for seen in range(1, n):
        counts = first + np.arange(laws.shape[1])
        moved = np.zeros((len(alphas), len(counts) + 1))
        moved[:, :-1] = laws * (seen - counts * shares)
        moved[:, 1:] += laws * _opening(strengths, counts, shares)
        moved /= strengths + seen
        if moved[:, 0].max() <= negligible:
            first, moved = first + 1, moved[:, 1:]
        laws = moved if moved[:, -1].max() > negligible else moved[:, :-1]
    return first, laws / laws.sum(axis=1, keepdims=True)


def log_opened(alphas: np.ndarray, counts: np.ndarray, discount: float) -> np.ndarray:
    """Return the log products of the masses with which all clusters but the first were opened.

    Parameters
    ----------
    alphas : ndarray of float64, shape (A,)
        Strengths of laws.
    counts : ndarray of int, shape (K,)
        Consecutive numbers of clusters.
    discount : float

    Returns
    -------
    ndarray of float64, shape (A, K)
        -inf where a finite mixture has too few components.
    """
    with np.errstate(divide="ignore"):
        steps = np.log(_opening(alphas[:, None], np.arange(1, counts[-1]), discount))
    sums = np.concatenate([np.zeros((len(alphas), 1)), np.cumsum(steps, axis=1)], axis=1)
    return np.asarray(sums[:, counts[0] - 1 :])


def _opening(strengths: np.ndarray, counts: np.ndarray, discounts: Any) -> np.ndarray:
    """Return the masses (A, K) with which a cluster is opened beside others."""
    masses = strengths + counts * discounts
    return np.where(masses > _ROUNDING * np.abs(strengths), masses, 0.0)
