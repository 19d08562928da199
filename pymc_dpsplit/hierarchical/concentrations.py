"""Conditional laws of the concentrations of rows in groups."""

import math

import numpy as np

from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, count_groups
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.special import log_rising
from pymc_dpsplit.moves.franchise import LogFactor


def factor_of_alpha_given_weights(target: GroupedTarget, state: GroupedState) -> LogFactor:
    """Return the log probability of the labels given the global weights as a function of alpha.

    That is eq. (16.5) without the rows, up to a constant: tables are summed out, so that alpha
    moves farther than given their number.

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState

    Returns
    -------
    callable
    """
    counts = count_groups(target, state.labels, len(state.weights))
    groups, clusters = np.nonzero(counts)
    of_cells = counts[groups, clusters], state.weights[clusters]
    of_groups = np.unique(target.sizes[target.sizes > 0], return_counts=True)

    def log_factor(alpha: float) -> float:
        return float(log_probability_of_labels(alpha, *of_cells, *of_groups))

    return log_factor


@jitted
def log_probability_of_labels(alpha, counts, weights, sizes, times):
    """Log probability of the labels given the global weights, up to a constant.

    Parameters
    ----------
    alpha : float
    counts : ndarray of int64, shape (c,)
        Positive numbers of rows of one group in one cluster.
    weights : ndarray of float64, shape (c,)
        Global weights of these clusters.
    sizes : ndarray of int64, shape (s,)
        Different positive numbers of rows of a group.
    times : ndarray of int64, shape (s,)
        Number of groups of each size.

    Returns
    -------
    float
    """
    # The first factor of Gamma(a + n) / Gamma(a) is a, whose logarithm is finite for any weight.
    total = (counts.shape[0] - times.sum()) * math.log(alpha)
    for c in range(counts.shape[0]):
        total += log_rising(1.0 + alpha * weights[c], counts[c] - 1.0)
    for s in range(sizes.shape[0]):
        total -= times[s] * log_rising(1.0 + alpha, sizes[s] - 1.0)
    return total
