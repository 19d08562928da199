"""Averages over a distribution of positive numbers by a quadrature rule."""

from typing import Any

import numpy as np
from scipy.special import expit

# From end to end the levels range from 1e-16 to 1 - 1e-16, in steps of 0.04.
_END, _N_NODES = 3.2, 161


def nodes_of(distribution: Any) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of an average over a continuous distribution.

    Quantiles at the levels of the double exponential rule, which does not mind what quantiles do
    at either end.

    Parameters
    ----------
    distribution : frozen distribution of scipy.stats
        On positive numbers.

    Returns
    -------
    nodes, weights : ndarrays of float64, shape (161,)
        The nodes are positive, also where quantiles underflow.
    """
    t = np.linspace(-_END, _END, _N_NODES)
    s = np.pi * np.sinh(t)
    below, above = expit(s), expit(-s)
    # Of two complementary levels the smaller one has all its digits.
    nodes = np.where(t < 0, distribution.ppf(below), distribution.isf(above))
    weights = np.cosh(t) * below * above
    tiny = np.finfo(np.float64).tiny
    return np.maximum(nodes, tiny), weights / weights.sum()
