"""Ranking of the words of clusters by their relevance."""

import numpy as np
import xarray as xr

from pymc_dpsplit.components.arguments import is_integer, shown


def ranked_words(
    probability: xr.DataArray, size: xr.DataArray, n: int, relevance: float
) -> np.ndarray:
    """Return the indices of the most relevant words of each cluster.

    Parameters
    ----------
    probability : DataArray, shape (R, D)
    size : DataArray of int, shape (R,)
        Numbers of observations, by which clusters are weighted in the average.
    n : int
        Number of words; all, if there are fewer.
    relevance : float
        Weight of the log probability beside that of its ratio to the average.

    Returns
    -------
    ndarray of int, shape (R, min(n, D))
        Most relevant first; ties in the order of the features.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    p, n_obs = probability.to_numpy(), size.to_numpy()
    if not is_integer(n) or n < 1:
        raise ValueError(f"n={shown(n)} must be a number of words of at least 1.")
    if not 0 <= relevance <= 1:
        raise ValueError(f"relevance={shown(relevance)} must lie between 0 and 1.")
    log_p = np.log(np.maximum(p, np.finfo(float).tiny))
    log_average = np.log(np.maximum(n_obs @ p / n_obs.sum(), np.finfo(float).tiny))
    score = log_p - (1 - relevance) * log_average
    return np.argsort(-score, axis=1, kind="stable")[:, :n]
