"""Restrict (hyper)parameters to a subset of features."""

from collections.abc import Mapping

import numpy as np


def take_features(
    values: Mapping[str, np.ndarray],
    ndims: Mapping[str, int],
    features: np.ndarray,
    n_before: int = 0,
) -> dict[str, np.ndarray]:
    """Copy the entries of (hyper)parameters that belong to a subset of features.

    Parameters
    ----------
    values : mapping
        Name to ndarray.
    ndims : mapping
        Name to the number of axes of length D.
    features : ndarray of int, shape (D',)
    n_before : int
        Number of axes before those of length D.

    Returns
    -------
    dict
        Name to ndarray, with axes of length D' instead of D.
    """
    taken = {}
    for name, ndim in ndims.items():
        value = np.array(values[name])
        for axis in range(n_before, n_before + ndim):
            value = np.take(value, features, axis)
        taken[name] = value
    return taken
