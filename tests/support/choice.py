"""The position that a uniform selects, by NumPy: the twin of `choose_position`."""

import numpy as np

from pymc_dpsplit.kernels.cluster_table import WIDE


def chosen(mass: np.ndarray, u: float) -> int:
    """Position with probability proportional to `mass`: by lanes, and in these by blocks."""
    order = np.argsort(np.arange(len(mass)) % WIDE, kind="stable")
    cumulative = np.cumsum(mass[order])
    return int(order[np.searchsorted(cumulative, u * cumulative[-1], side="right")])
