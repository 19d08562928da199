"""Tables and global weights of rows in groups, given their labels."""

import numpy as np

from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, count_groups
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.tables import draw_global_weights, draw_n_tables


@jitted
def draw_tables(target, labels, weights, rng):
    """Draw the number of tables of each cluster in all groups, eq. (15.5).

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
    weights : ndarray of float64, shape (K,)
        Global weights.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int64, shape (K,)
    """
    n_clusters = weights.shape[0]
    counts = count_groups(target, labels, n_clusters)
    stream = new_stream(draw_key(rng))
    tables = np.zeros(n_clusters, np.int64)
    for k in range(n_clusters):
        for j in range(counts.shape[0]):
            if counts[j, k] > 0:
                tables[k] += draw_n_tables(stream, counts[j, k], target.alpha * weights[k])
    return tables


def redraw_weights(
    target: GroupedTarget, state: GroupedState, tables: np.ndarray, rng: np.random.Generator
) -> GroupedState:
    """Redraw the global weights given the tables, eq. (15.6).

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
    tables : ndarray of int64, shape (K,)
        Result of `draw_tables`.
    rng : numpy.random.Generator

    Returns
    -------
    GroupedState
    """
    weights, log_rest = draw_global_weights(rng, tables, target.of_rows.law.strength)
    return state._replace(weights=weights, log_rest=log_rest)
