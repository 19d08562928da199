"""Small data sets that make every partition test hard.

A data set is a function of the number of features D = 1, 2 or 3; it returns (n, D) with n from
6 to 8, few enough to enumerate all partitions.  Nothing is symmetric, so that a wrong sign or
a swapped pair of arguments shows.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

_ROWS = {
    # Two groups, of unequal size and spread, that the first two features tell apart.
    "separated": [
        [-2.3, 0.9, 0.4],
        [-1.6, 1.6, -0.8],
        [-1.9, 0.2, 0.9],
        [1.4, -0.5, 0.6],
        [1.9, -1.3, -0.2],
        [2.2, 0.1, 1.1],
        [1.6, -0.9, -0.6],
        [2.9, -1.6, 0.3],
    ],
    # One cloud in which any number of clusters is plausible.
    "overlapping": [
        [-1.3, -0.4, 0.6],
        [-0.8, 0.7, -0.9],
        [-0.5, -1.1, 0.2],
        [0.0, 0.4, 1.2],
        [0.3, -0.6, -0.5],
        [0.9, 1.3, 0.1],
        [1.2, 0.2, -1.4],
        [1.9, 0.9, 0.8],
    ],
    # A group and one point far away.
    "outlier": [
        [-0.6, 0.3, 0.9],
        [-0.2, -0.7, 0.2],
        [0.1, 0.5, -0.4],
        [0.4, -0.1, 0.5],
        [0.7, 0.8, -0.8],
        [1.1, -0.5, 0.1],
        [6.5, 5.2, -4.7],
    ],
    # A triple, a pair and a single point: no scatter within, and ties in every ordering.
    "duplicates": [
        [0.5, -0.3, 1.1],
        [0.5, -0.3, 1.1],
        [0.5, -0.3, 1.1],
        [-1.0, 0.8, 0.2],
        [-1.0, 0.8, 0.2],
        [1.7, 0.4, -0.6],
    ],
}


def _first_features(name: str, n_features: int) -> np.ndarray:
    """Return the first features of one of the tables, as an array of its own."""
    return np.array(_ROWS[name])[:, :n_features].copy()


DATASETS: dict[str, Callable[[int], np.ndarray]] = {
    name: partial(_first_features, name) for name in _ROWS
}
