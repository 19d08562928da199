"""State of a chain of rows in groups."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.hierarchical.parameters import (
    first_statistics,
    keeps_parameters,
    statistics_of_moved_rows,
)
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.nonconjugate.nearest_centre import nearest_centre
from pymc_dpsplit.moves.start import assign_to_centres
from pymc_dpsplit.moves.target import Target


class GroupedTarget(NamedTuple):
    """Target of a chain: that of the rows, and their groups.

    Attributes
    ----------
    of_rows : Target
        Its law is that of a Dirichlet process with concentration gamma.
    group_of_row : ndarray of int64, shape (N,)
        Group 0 .. J - 1 of each row.
    sizes : ndarray of int64, shape (J,)
        Number of rows of each group, which may be 0.
    alpha : float
    """

    of_rows: Target
    group_of_row: np.ndarray
    sizes: np.ndarray
    alpha: float


class GroupedState(NamedTuple):
    """Labels of all rows and the global weights; see docs/method.md, (15.4).

    Attributes
    ----------
    labels : ndarray of int32, shape (N,)
        Cluster 0 .. K - 1 of each row.
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics of each cluster; element 0 is its size.
    weights : ndarray of float64, shape (K,)
        Global weights.
    log_rest : float
        Log of the global weight of all clusters without rows.
    """

    labels: np.ndarray
    stats: np.ndarray
    weights: np.ndarray
    log_rest: float


def start_groups(target: GroupedTarget, n_centres: int, rng: np.random.Generator) -> GroupedState:
    """Start a chain from clusters around some of the rows.

    Parameters
    ----------
    target : GroupedTarget
    n_centres : int
        From 1 to the number of rows.
    rng : numpy.random.Generator

    Returns
    -------
    GroupedState
        With at most `n_centres` clusters, all of one global weight.
    """
    prior, data, _ = target.of_rows
    labels = np.empty(len(target.group_of_row), np.int32)
    centres = rng.choice(len(labels), n_centres, replace=False)
    if keeps_parameters(prior):
        labels[:] = nearest_centre(target.of_rows, centres)
    else:
        assign_to_centres(prior, data, centres, labels)
    return resume_groups(target, labels)


def resume_groups(target: GroupedTarget, labels: np.ndarray) -> GroupedState:
    """Return a state with these labels, in which all clusters have one global weight.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Clusters 0 .. K - 1, none empty.

    Returns
    -------
    GroupedState
    """
    prior, data, _ = target.of_rows
    n_clusters = int(labels.max()) + 1
    stats = first_statistics(prior, data, labels, n_clusters)
    weights = np.full(n_clusters, 1.0 / (n_clusters + 1))
    return GroupedState(labels, stats, weights, -float(np.log(n_clusters + 1.0)))


def with_statistics(target: GroupedTarget, state: GroupedState) -> GroupedState:
    """Return a state with the statistics of the rows of the target, which have moved."""
    prior, data, _ = target.of_rows
    stats = statistics_of_moved_rows(prior, data, state.labels, state.stats)
    return state._replace(stats=stats)


@jitted
def count_groups(target, labels, n_clusters):
    """Count the rows of each group in each cluster; a row with label -1 does not count.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
    n_clusters : int

    Returns
    -------
    ndarray of int64, shape (J, K)
    """
    counts = np.zeros((target.sizes.shape[0], n_clusters), np.int64)
    for i in range(labels.shape[0]):
        if labels[i] >= 0:
            counts[target.group_of_row[i], labels[i]] += 1
    return counts
