"""`prior_n_clusters`: prior distribution of the number of clusters."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.prior.clusters_law import laws_at
from pymc_dpsplit.prior.clusters_with_discount import laws_with_discounts
from pymc_dpsplit.prior.finite_components import law_of_finite
from pymc_dpsplit.prior.gamma_prior import GammaPrior
from pymc_dpsplit.prior.quadrature import nodes_of

# The law of more observations takes gigabytes, and minutes; with a discount it is computed row by
# row.
_MOST, _MOST_WITH_DISCOUNT = 10**8, 10**6
# Number of draws of a discount over which laws are averaged, and probabilities that are neglected.
_MOST_LAWS, _NEGLIGIBLE = 50, 1e-25


def prior_n_clusters(
    alpha: Any = None,
    n: Any = None,
    *,
    discount: float = 0.0,
    gamma: Any = None,
    n_components: Any = None,
) -> xr.DataArray:
    """Compute the prior distribution of the number of clusters among n observations.

    Parameters
    ----------
    alpha : number, array-like, frozen distribution or GammaPrior
        Concentration of a process: a known value, draws of it in any shape, a continuous
        distribution of ``scipy.stats``, or the result of `elicit_alpha`.  The result is averaged
        over draws or the distribution.
    n : int
        Number of observations.
    discount : float
        Discount of a Pitman-Yor process, from 0 to below 1.
    gamma : number
        In place of `alpha`: parameter of the Dirichlet distribution of a finite mixture.
    n_components : int, array-like or frozen distribution
        With `gamma`: the number of components, draws of it, or a discrete distribution of
        ``scipy.stats``, for a `FiniteMixture` or an `MFMixture`.

    Returns
    -------
    DataArray of float64, dims (n_clusters,), shape (n,)
        Probability of each number of clusters from 1 to n, the coordinate.

    Raises
    ------
    ValueError
        If `alpha` is not positive and finite, or above minus the discount, if `n` is not a whole
        number of at least 1, if another argument is out of range, or if both `alpha` and `gamma`
        are given.

    Notes
    -----
    The number of clusters is a sum of independent Bernoulli variables, whose distributions are
    convolved; only probabilities below 1e-300 are neglected [1]_.  With a discount they are not
    independent, and the law is computed observation by observation, in time that grows like n times
    the number of clusters: seconds for 1e5 observations.  A distribution of alpha is averaged over
    161 nodes of a quadrature rule, with an error of about 1e-10 if its density is smooth in its
    support.  Without a discount the computation takes about a second for a million observations,
    and longer if alpha is in the thousands.

    References
    ----------
    .. [1] docs/method.md, eqs. (11.5) to (11.7), (14.8) and (14.11).

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> law = dps.prior_n_clusters(1.0, 300)
    >>> float((law * law["n_clusters"]).sum().round(2))
    6.28
    >>> float(law.sel(n_clusters=slice(10, None)).sum().round(3))
    0.075
    >>> from scipy import stats
    >>> law = dps.prior_n_clusters(stats.gamma(2, scale=1 / 4), 300)
    >>> int(law.idxmax())
    2
    >>> law = dps.prior_n_clusters(1.0, 300, discount=0.25)
    >>> float((law * law["n_clusters"]).sum().round(2))
    14.38
    >>> prior = stats.poisson(3, loc=1)
    >>> law = dps.prior_n_clusters(n=300, gamma=1.0, n_components=prior)
    >>> float((law * law["n_clusters"]).sum().round(2))
    3.95
    """
    n = checked_n(n)
    if gamma is not None or n_components is not None:
        if alpha is not None or discount != 0.0:
            raise ValueError(
                "gamma or n_components is given beside alpha or discount, which are of processes; "
                "give gamma and n_components, or alpha and discount."
            )
        return _as_array(law_of_finite(gamma, n_components, n))
    share = checked_discount(discount, n)
    alphas, weights = _nodes(alpha, share)
    return _as_array(_averaged(alphas, weights, n, share))


def n_clusters_under(discounts: np.ndarray, strengths: np.ndarray, n: int) -> xr.DataArray:
    """Average the distribution of the number of clusters over draws of the law.

    Parameters
    ----------
    discounts, strengths : ndarray of float64, shape (A,)
    n : int
        Number of observations.

    Returns
    -------
    DataArray of float64, dims (n_clusters,), shape (n,)

    Raises
    ------
    ValueError
        If draws are out of range, or observations too many.
    """
    n = checked_n(n)
    if np.ptp(discounts) == 0.0:
        alphas, counts = np.unique(strengths, return_counts=True)
        share = float(discounts[0])
        _refuse_many(share, n)
        alphas, _ = _nodes(alphas, max(share, 0.0))
        return _as_array(_averaged(alphas, counts.astype(np.float64), n, share))
    _refuse_many(1.0, n)
    chosen = slice(None, _MOST_LAWS)
    first, laws = laws_with_discounts(strengths[chosen], discounts[chosen], n, _NEGLIGIBLE)
    law = np.zeros(n)
    law[first - 1 : first - 1 + laws.shape[1]] = laws.sum(0)
    return _as_array(law)


def _averaged(alphas: np.ndarray, weights: np.ndarray, n: int, discount: float) -> np.ndarray:
    """Return the weighted sum of the laws, (n,)."""
    law = np.zeros(n)
    for which, first, laws in laws_at(alphas, n, discount):
        law[first - 1 : first - 1 + laws.shape[1]] += weights[which] @ laws
    return law


def _as_array(law: np.ndarray) -> xr.DataArray:
    n = len(law)
    # Weights of a quadrature rule sum to one only up to its error.
    law = law / law.sum()
    return xr.DataArray(
        law, dims="n_clusters", coords={"n_clusters": np.arange(1, n + 1)}, name="probability"
    )


def checked_n(n: Any) -> int:
    """Check a number of observations, at least 1.

    Raises
    ------
    ValueError
        If it is not a whole number of at least 1, or is too large.
    """
    is_whole = isinstance(n, int | np.integer) and not isinstance(n, bool)
    if not is_whole or n < 1:
        raise ValueError(f"n={n!r} is no number of observations; give a whole number from 1.")
    if n > _MOST:
        raise ValueError(
            f"n is more than {_MOST:.0e} observations, whose law memory does not hold; give a "
            "whole number up to that."
        )
    return int(n)


def checked_discount(discount: Any, n: int) -> float:
    """Check a discount for n observations.

    Raises
    ------
    ValueError
        If it is no number from 0 to below 1, or positive with too many observations.
    """
    is_number = isinstance(discount, int | float | np.number) and not isinstance(discount, bool)
    if not is_number or not 0.0 <= discount < 1.0:
        raise ValueError(
            f"discount={discount!r} is not from 0 to below 1; give 0 for a Dirichlet process, or a "
            "number such as 0.25."
        )
    _refuse_many(discount, n)
    return float(discount)


def _refuse_many(discount: float, n: int) -> None:
    if discount != 0.0 and n > _MOST_WITH_DISCOUNT:
        raise ValueError(
            f"n is more than {_MOST_WITH_DISCOUNT:.0e} observations, whose law with a discount "
            "takes long; give a number up to that."
        )


def _nodes(alpha: Any, discount: float) -> tuple[np.ndarray, np.ndarray]:
    """Return values of alpha and their weights."""
    if isinstance(alpha, GammaPrior):
        alpha = alpha.frozen()
    if hasattr(alpha, "ppf") and hasattr(alpha, "isf"):
        if alpha.support()[0] < 0:
            raise ValueError(
                f"alpha has a prior on values from {alpha.support()[0]:g}; give a distribution on "
                "the positive numbers, such as scipy.stats.gamma(2, scale=1 / 4)."
            )
        return nodes_of(alpha)
    try:
        values = np.asarray(alpha, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise ValueError(
            f"alpha is a {type(alpha).__name__}; give a number, a distribution of scipy.stats, or "
            "draws, as pm.draw(alpha, 1000) makes them of a variable."
        ) from None
    if values.size == 0 or not (np.isfinite(values) & (values > -discount)).all():
        least = f"above -discount = {-discount:g}" if discount else "positive"
        raise ValueError(f"alpha must be {least} and finite; give a number or draws that are.")
    return values, np.full(len(values), 1 / len(values))
