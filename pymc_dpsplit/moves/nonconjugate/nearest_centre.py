"""Starting labels by the nearest of several observations."""

import numpy as np

from pymc_dpsplit.moves.target import Target


def nearest_centre(target: Target, centres: np.ndarray) -> np.ndarray:
    """Label each observation by the nearest centre, columns scaled to unit standard deviation.

    Parameters
    ----------
    target : Target
        Covariates in its prior count as columns.
    centres : ndarray of int64, shape (K,)
        Indices of observations.

    Returns
    -------
    ndarray of int64, shape (N,)
        Labels 0 .. K' - 1; centres without observations are dropped.
    """
    prior, columns = target.prior, target.data
    if prior.covariates.shape[1]:
        columns = np.column_stack([columns, prior.covariates])
    spread = columns.std(axis=0)
    scaled = columns / np.where(spread > 0.0, spread, 1.0)
    nearest, best = np.zeros(len(columns), np.int64), np.full(len(columns), np.inf)
    for k, centre in enumerate(centres):
        distance = ((scaled - scaled[centre]) ** 2).sum(axis=1)
        nearest[distance < best] = k
        best = np.minimum(distance, best)
    return np.unique(nearest, return_inverse=True)[1]
