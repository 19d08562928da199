"""Renumbering of clusters by size."""

import numpy as np


def largest_first(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Renumber clusters by decreasing size.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
        Clusters 0 .. K - 1, none empty.

    Returns
    -------
    labels : ndarray of int64, shape (N,)
    order : ndarray of int64, shape (K,)
        The former number of each cluster.
    """
    order = np.argsort(-np.bincount(labels), kind="stable")
    return np.argsort(order)[labels], order
