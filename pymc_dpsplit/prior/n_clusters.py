"""`prior_n_clusters`: prior distribution of the number of clusters."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.prior.clusters_law import laws_at
from pymc_dpsplit.prior.gamma_prior import GammaPrior
from pymc_dpsplit.prior.quadrature import nodes_of

# The law of more observations takes gigabytes, and minutes.
_MOST = 10**8


def prior_n_clusters(alpha: Any, n: int) -> xr.DataArray:
    """Compute the prior distribution of the number of clusters among n observations.

    Parameters
    ----------
    alpha : number, array-like, frozen distribution or GammaPrior
        Concentration: a known value, draws of it in any shape, a continuous distribution of
        ``scipy.stats``, or the result of `elicit_alpha`.  The result is averaged over draws or
        the distribution.
    n : int
        Number of observations.

    Returns
    -------
    DataArray of float64, dims (n_clusters,), shape (n,)
        Probability of each number of clusters from 1 to n, the coordinate.

    Raises
    ------
    ValueError
        If `alpha` is not positive and finite, or `n` is not a whole number of at least 1.

    Notes
    -----
    The number of clusters is a sum of independent Bernoulli variables, whose distributions are
    convolved; only probabilities below 1e-300 are neglected [1]_.  A distribution of alpha is
    averaged over 161 nodes of a quadrature rule, with an error of about 1e-10 if its density is
    smooth in its support.  The computation takes about a second for a million observations, and
    longer if alpha is in the thousands.

    References
    ----------
    .. [1] docs/method.md, eqs. (11.5) to (11.7).

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
    """
    n = checked_n(n)
    alphas, weights = _nodes(alpha)
    law = np.zeros(n)
    for which, first, laws in laws_at(alphas, n):
        law[first - 1 : first - 1 + laws.shape[1]] += weights[which] @ laws
    # Weights of a quadrature rule sum to one only up to its error.
    law /= law.sum()
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


def _nodes(alpha: Any) -> tuple[np.ndarray, np.ndarray]:
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
    if values.size == 0 or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("alpha must be positive and finite; give a number or draws that are.")
    return values, np.full(len(values), 1 / len(values))
