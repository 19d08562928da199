"""Averages over a distribution of positive numbers by a quadrature rule."""

from typing import Any

import numpy as np
from scipy.special import expit

# Range (-3.2, 3.2) and number of nodes: steps of 0.04, and levels from 1e-16 to 1 - 1e-16.
_END, _N_NODES = 3.2, 161


def nodes_of(distribution: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for averages over a continuous distribution.

    Nodes are quantiles at the levels of the double exponential rule, which tolerates singularities
    of quantiles at both ends.

    Parameters
    ----------
    distribution : frozen distribution of scipy.stats
        Distribution of positive numbers.

    Returns
    -------
    nodes, weights : ndarrays of float64, shape (161,)
        Nodes are positive, even if quantiles underflow.
    """
    t = np.linspace(-_END, _END, _N_NODES)
    s = np.pi * np.sinh(t)
    below, above = expit(s), expit(-s)
    # The smaller of two complementary levels is accurate.
    nodes = np.where(t < 0, distribution.ppf(below), distribution.isf(above))
    weights = np.cosh(t) * below * above
    tiny = np.finfo(np.float64).tiny
    return np.maximum(nodes, tiny), weights / weights.sum()
