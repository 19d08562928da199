"""Some features of (hyper)parameters that belong to all of them."""

from collections.abc import Mapping

import numpy as np


def take_features(
    values: Mapping[str, np.ndarray],
    ndims: Mapping[str, int],
    features: np.ndarray,
    n_before: int = 0,
) -> dict[str, np.ndarray]:
    """Copy the entries of some features.

    Parameters
    ----------
    values : mapping
        Name to ndarray.
    ndims : mapping
        Name to the number of axes of features, each of length D.
    features : ndarray of int, shape (D',)
    n_before : int
        Number of axes before those of features.

    Returns
    -------
    dict
        Name to ndarray, with axes of length D' in the place of D.
    """
    taken = {}
    for name, ndim in ndims.items():
        value = np.array(values[name])
        for axis in range(n_before, n_before + ndim):
            value = np.take(value, features, axis)
        taken[name] = value
    return taken
