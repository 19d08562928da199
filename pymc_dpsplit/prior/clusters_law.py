"""Distribution of the number of occupied clusters given the law of the partition.

See docs/method.md, eqs. (11.5)-(11.7), and (14.7)-(14.8) for laws with a discount.

Computations use only sums and products of positive numbers, so that small probabilities have the
same relative accuracy as large ones.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import digamma, logsumexp

from pymc_dpsplit.prior.clusters_with_discount import (
    expected_with_discount,
    laws_with_discounts,
    log_opened,
)

# Number of rows convolved directly, before blocks are convolved in pairs.
_LEAF = 64
# Smaller probabilities are set to zero; it is close to the smallest positive float64.
_NEGLIGIBLE = 1e-300
# Largest probability outside the tabulated range for which a tilted law is used.
_OUTSIDE = 1e-30
# The law given this alpha covers the range of the laws of all smaller ones.
_SMALL = 0.1
# Above this value the series below is used, with relative error 3e-14.
_LARGE = 1e3
# Largest number of elements in a table of laws of several alphas.
_TABLE = 2**20


def expected_n_clusters(alpha: np.ndarray, n: int, discount: float = 0.0) -> np.ndarray:
    """Return the mean number of clusters among n observations, eq. (11.5) or (14.7).

    Parameters
    ----------
    alpha : ndarray of float64
        Strength of the law.
    n : int
    discount : float

    Returns
    -------
    ndarray of float64, shape of `alpha`
    """
    if discount != 0.0:
        return expected_with_discount(alpha, n, discount)
    # The first observation is counted separately, so that the rest is accurate for small alpha.
    low, high = alpha + 1.0, alpha + n
    # For large alpha the difference of digammas loses digits, and Stirling's series is used.
    by_series = (n - 1.0) / low
    by_series = np.log1p(by_series) + by_series / high / 2 * (1 + (1 / low + 1 / high) / 6)
    gap = np.where(alpha > _LARGE, by_series, digamma(high) - digamma(low))
    return 1.0 + alpha * gap


def law_at(alpha: float, n: int, discount: float = 0.0) -> tuple[int, np.ndarray]:
    """Compute the law of the number of clusters given one alpha.

    Parameters
    ----------
    alpha : float
        Strength of the law.
    n : int
    discount : float

    Returns
    -------
    first : int
        Smallest number of clusters with a non-negligible probability.
    law : ndarray of float64
        Probabilities of `first`, `first` + 1 and so on.
    """
    if discount != 0.0:
        first, (law,) = laws_with_discounts(np.array([alpha]), np.array([discount]), n)
        return first, law
    # Probabilities of the Bernoulli variables of eq. (11.5), the first of which is 1, and their
    # complements, which are computed directly because one minus the probability loses digits.
    rows = np.arange(n)
    n_leaves = -(-n // _LEAF)
    occupies, joins = np.zeros(n_leaves * _LEAF), np.ones(n_leaves * _LEAF)
    occupies[:n], joins[:n] = alpha / (alpha + rows), rows / (alpha + rows)
    laws = np.zeros((n_leaves, _LEAF + 1))
    laws[:, 0] = 1.0
    by_step = occupies.reshape(n_leaves, _LEAF).T, joins.reshape(n_leaves, _LEAF).T
    for occupy, join in zip(*by_step, strict=True):
        moved = laws[:, :-1] * occupy[:, None]
        laws *= join[:, None]
        laws[:, 1:] += moved
    blocks = [_trimmed(0, law) for law in laws]
    while len(blocks) > 1:
        pairs = [_convolved(a, b) for a, b in zip(blocks[::2], blocks[1::2], strict=False)]
        blocks = pairs + blocks[2 * len(pairs) :]
    first, law = blocks[0]
    return first, law / law.sum()


def _convolved(a: tuple[int, np.ndarray], b: tuple[int, np.ndarray]) -> tuple[int, np.ndarray]:
    return _trimmed(a[0] + b[0], np.convolve(a[1], b[1]))


def _trimmed(first: int, law: np.ndarray) -> tuple[int, np.ndarray]:
    """Remove negligible probabilities at both ends."""
    kept = np.flatnonzero(law > _NEGLIGIBLE)
    return first + int(kept[0]), law[kept[0] : kept[-1] + 1]


def laws_at(
    alphas: np.ndarray, n: int, discount: float = 0.0
) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """Iterate over laws of the number of clusters given several alphas, in groups.

    The law given one alpha is that given another, tilted by powers of their ratio, eq. (11.7), or
    by ratios of their opening masses, so that only few laws are computed from the start.

    Parameters
    ----------
    alphas : ndarray of float64, shape (A,)
        Strengths of the laws, in ascending order in the groups.
    n : int
    discount : float

    Yields
    ------
    which : ndarray of int
        Indices of the alphas of the group.
    first : int
        As in `law_at`.
    laws : ndarray of float64, shape (len(which), any)
    """
    waiting = np.argsort(alphas)
    while len(waiting):
        reference = float(alphas[waiting[0]])
        # Strengths of finite mixtures are multiples of minus the discount.
        reference = reference if discount < 0.0 else max(_SMALL, reference)
        first, law = law_at(reference, n, discount)
        counts = first + np.arange(len(law))
        step = max(1, _TABLE // len(law))
        is_known = True
        while is_known and len(waiting):
            tried = waiting[:step]
            tilted = np.log(law) + _log_tilt(alphas[tried], reference, counts, discount)
            tilted = np.exp(tilted - logsumexp(tilted, axis=1, keepdims=True))
            # Laws of smaller alphas have less mass above the range, and need no check.
            is_whole = (alphas[tried] <= reference) | (tilted[:, -1] < _OUTSIDE) | (counts[-1] == n)
            is_known = bool(is_whole.all())
            n_good = len(tried) if is_known else int(np.argmin(is_whole))
            if n_good:
                yield tried[:n_good], first, tilted[:n_good]
            waiting = waiting[n_good:]


def _log_tilt(
    alphas: np.ndarray, reference: float, counts: np.ndarray, discount: float
) -> np.ndarray:
    """Return the log ratios, up to a constant, of the factors (A, K) that depend on alpha."""
    if discount == 0.0:
        return counts * np.log(alphas / reference)[:, None]
    return log_opened(alphas, counts, discount) - log_opened(
        np.array([reference]), counts, discount
    )
