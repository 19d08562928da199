"""Weights of groups given labels and global weights, and labels given weights of groups."""

import numpy as np

from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, count_groups
from pymc_dpsplit.moves.franchise import seat_in_franchise

# The least shape of a gamma variable, by which an exponential one may be divided, and the least
# global weight of a cluster.
_LEAST = 1e-300


def log_dirichlet(shapes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the logarithms of weights (J, K), one Dirichlet law in each row; shapes may be tiny."""
    shapes = np.maximum(shapes, _LEAST)
    # Gamma variables of small shape underflow; see `kernels.random.draw_log_gamma`.
    found = np.log(rng.standard_gamma(shapes + 1.0))
    found -= rng.standard_exponential(shapes.shape) / shapes
    highest = found.max(axis=1, keepdims=True)
    total: np.ndarray = np.log(np.exp(found - highest).sum(axis=1, keepdims=True))
    return found - highest - total


def draw_group_weights(
    target: GroupedTarget, state: GroupedState, rng: np.random.Generator
) -> np.ndarray:
    """Draw the weights of all groups, eq. (16.9).

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (J, K + 1)
        The last column is the weight of all clusters without rows.
    """
    counts = count_groups(target, state.labels, len(state.weights))
    weights = np.append(state.weights, np.exp(state.log_rest))
    shapes = target.alpha * weights + np.column_stack([counts, np.zeros(len(counts))])
    drawn: np.ndarray = np.exp(log_dirichlet(shapes, rng))
    return drawn


def draw_labels_in_groups(
    target: GroupedTarget, state: GroupedState, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw a label for every row from the weights of its group, which are drawn first.

    Rows that fall in the remainder are seated in a franchise with concentrations alpha beta_u and
    gamma, which is the law of the remainders of all groups.

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
        Not modified.
    rng : numpy.random.Generator

    Returns
    -------
    labels : ndarray of int64, shape (N,)
        K, K + 1, .. for new clusters.
    weights : ndarray of float64, shape (A,)
        Global weights of the K clusters and of the new ones.
    log_rest : float
        Log of the global weight of all others.
    """
    of_groups, groups = draw_group_weights(target, state, rng), target.group_of_row
    n_clusters, alpha = len(state.weights), target.alpha
    reached, u = np.cumsum(of_groups, axis=1), rng.random(len(groups))
    labels = np.empty(len(groups), np.int64)
    for group in np.flatnonzero(target.sizes):
        own = groups == group
        labels[own] = np.searchsorted(reached[group, :-1], u[own], side="right")
    outside = labels == n_clusters
    strength = max(alpha * float(np.exp(state.log_rest)), _LEAST)
    seated = seat_in_franchise(groups[outside], strength, target.of_rows.law.strength, rng)
    labels[outside] = n_clusters + seated.labels
    fresh = np.exp(state.log_rest) * seated.weights
    weights = np.append(state.weights, np.maximum(fresh, _LEAST))
    return labels, weights, state.log_rest + seated.log_rest
