"""Greedy search for the partition of least expected loss: allocation, sweetening, rebuilding.

The search follows the description of Dahl, Johnson & Mueller (2022).  Its state contains the number
of observations that each cluster of each draw shares with each cluster of the partition, so that
the cost of a change of one label is a sum over draws, and no N x N matrix is needed.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted

# Larger than rounding errors of a sum over draws, so that the search cannot cycle between ties.
_LEAST_GAIN = 1e-11


class Search(NamedTuple):
    """State of the search: the draws and the current partition.

    Two tables have one row for each cluster of each draw, draw by draw; their first columns are the
    clusters of the partition.

    Attributes
    ----------
    draws : ndarray of uint16 or uint32, shape (N, S)
        Labels of the draws, one row per observation.
    first_row : ndarray of int64, shape (S,)
        First row of each draw.
    step : ndarray of float64, shape (N + 1,)
        F(n + 1) - F(n); the last entry is never used.
    weight : float
        Cost of separating two observations that belong together.
    labels : ndarray of int64, shape (N,)
        Labels of the partition; -1 for observations not allocated.
    sizes : ndarray of int64, shape (C,)
        Sizes of the clusters of the partition.
    shared : ndarray of int32, shape (rows, C)
        Number of observations that a cluster of a draw shares with one of the partition.
    gains : ndarray of float64, shape (rows, C)
        ``step[shared]``.
    n_clusters : ndarray of int64, shape (1,)
        Number of columns in use.
    """

    draws: np.ndarray
    first_row: np.ndarray
    step: np.ndarray
    weight: float
    labels: np.ndarray
    sizes: np.ndarray
    shared: np.ndarray
    gains: np.ndarray
    n_clusters: np.ndarray


@jitted
def _widened(search: Search) -> Search:
    """Return a copy with twice as many columns."""
    n_rows, n_columns = search.shared.shape
    sizes = np.zeros(2 * n_columns, search.sizes.dtype)
    shared = np.zeros((n_rows, 2 * n_columns), search.shared.dtype)
    gains = np.zeros((n_rows, 2 * n_columns))
    sizes[:n_columns] = search.sizes
    shared[:, :n_columns] = search.shared
    gains[:, :n_columns] = search.gains
    return Search(
        search.draws,
        search.first_row,
        search.step,
        search.weight,
        search.labels,
        sizes,
        shared,
        gains,
        search.n_clusters,
    )


@jitted
def _with_room(search: Search) -> Search:
    """Return a search with at least one free column."""
    return _widened(search) if search.n_clusters[0] == len(search.sizes) else search


@jitted
def _put(search: Search, i_obs: int, j: int) -> None:
    """Allocate an observation to cluster `j`; the first free column is a new cluster."""
    search.labels[i_obs] = j
    search.sizes[j] += 1
    search.n_clusters[0] = max(search.n_clusters[0], j + 1)
    for draw in range(len(search.first_row)):
        row = search.first_row[draw] + search.draws[i_obs, draw]
        n_shared = search.shared[row, j] + 1
        search.shared[row, j] = n_shared
        search.gains[row, j] = search.step[n_shared]


@jitted
def _take(search: Search, i_obs: int, j: int) -> None:
    """Remove an observation from cluster `j`; the caller updates its label."""
    search.sizes[j] -= 1
    for draw in range(len(search.first_row)):
        row = search.first_row[draw] + search.draws[i_obs, draw]
        n_shared = search.shared[row, j] - 1
        search.shared[row, j] = n_shared
        search.gains[row, j] = search.step[n_shared]
    if search.sizes[j] == 0:
        _close_column(search, j)


@jitted
def _close_column(search: Search, j: int) -> None:
    """Move the last cluster to the empty column `j`."""
    last = search.n_clusters[0] - 1
    search.n_clusters[0] = last
    if j == last:
        return
    search.sizes[j], search.sizes[last] = search.sizes[last], 0
    for row in range(len(search.shared)):
        search.shared[row, j], search.shared[row, last] = search.shared[row, last], 0
        search.gains[row, j], search.gains[row, last] = search.gains[row, last], 0.0
    for i_obs in range(len(search.labels)):
        if search.labels[i_obs] == last:
            search.labels[i_obs] = j


@jitted
def _fill_costs(search: Search, i_obs: int, costs: np.ndarray) -> None:
    """Write the cost of each cluster for an observation, relative to a singleton, eq. (10.3)."""
    n_clusters, n_draws = search.n_clusters[0], len(search.first_row)
    first_row, draws, gains = search.first_row, search.draws, search.gains
    costs[:n_clusters] = 0.0
    in_fours = n_draws - n_draws % 4
    # Four rows at a time take half the time, because sums are loaded and stored less often.
    for d in range(0, in_fours, 4):
        p, q = first_row[d] + draws[i_obs, d], first_row[d + 1] + draws[i_obs, d + 1]
        r, s = first_row[d + 2] + draws[i_obs, d + 2], first_row[d + 3] + draws[i_obs, d + 3]
        for j in range(n_clusters):
            costs[j] += (gains[p, j] + gains[q, j]) + (gains[r, j] + gains[s, j])
    for d in range(in_fours, n_draws):
        p = first_row[d] + draws[i_obs, d]
        for j in range(n_clusters):
            costs[j] += gains[p, j]
    for j in range(n_clusters):
        apart = (2.0 - search.weight) * search.step[search.sizes[j]]
        costs[j] = apart - 2.0 * costs[j] / n_draws


@jitted
def _cost_of_staying(search: Search, i_obs: int) -> float:
    """Return the cost of an observation in its cluster, relative to a singleton."""
    j = search.labels[i_obs]
    gain = 0.0
    for draw in range(len(search.first_row)):
        row = search.first_row[draw] + search.draws[i_obs, draw]
        gain += search.step[search.shared[row, j] - 1]
    own = (2.0 - search.weight) * search.step[search.sizes[j] - 1]
    return own - 2.0 * gain / len(search.first_row)


@jitted
def _best_place(search: Search, costs: np.ndarray, stays: int, most: int) -> tuple[int, float]:
    """Return the cheapest cluster except `stays`, or a new one if allowed, and its cost."""
    n_clusters = search.n_clusters[0]
    may_open = n_clusters < most
    best, cost = (n_clusters, 0.0) if may_open else (-1, np.inf)
    for j in range(n_clusters):
        if j != stays and costs[j] < cost:
            best, cost = j, costs[j]
    return best, cost


@jitted
def allocate(search: Search, order: np.ndarray, most: int) -> tuple[Search, float]:
    """Allocate observations sequentially, each to its cheapest cluster.

    Parameters
    ----------
    search : Search
        Modified in place.
    order : ndarray of int64, shape (n,)
        Observations that are not allocated.
    most : int
        Largest number of clusters.

    Returns
    -------
    search : Search
        With more columns if required.
    change : float
        Increase of the loss times its divisor.
    """
    change = 0.0
    for i_obs in order:
        costs = np.empty(search.n_clusters[0])
        _fill_costs(search, i_obs, costs)
        best, cost = _best_place(search, costs, -1, most)
        if best == search.n_clusters[0]:
            search = _with_room(search)
        _put(search, i_obs, best)
        change += cost
    return search, change


@jitted
def place(search: Search, labels: np.ndarray) -> Search:
    """Allocate all observations according to labels.

    Parameters
    ----------
    search : Search
        Without allocated observations; modified in place.
    labels : ndarray of int64, shape (N,)
        Labels 0, 1, ... without gaps.

    Returns
    -------
    Search
        With more columns if required.
    """
    for i_obs in range(len(labels)):
        while labels[i_obs] >= len(search.sizes):
            search = _widened(search)
        _put(search, i_obs, labels[i_obs])
    return search


@jitted
def sweeten(search: Search, order: np.ndarray, most: int) -> tuple[Search, int]:
    """Visit each observation once and move it to a cheaper cluster, if there is one.

    Parameters
    ----------
    search : Search
        Modified in place; all observations are allocated.
    order : ndarray of int64, shape (N,)
        Order in which observations are visited.
    most : int
        Largest number of clusters.

    Returns
    -------
    search : Search
        With more columns if required.
    n_moved : int
    """
    tolerance = _LEAST_GAIN * search.step[len(search.labels) - 1]
    n_moved = 0
    for i_obs in order:
        j = search.labels[i_obs]
        costs = np.empty(search.n_clusters[0])
        _fill_costs(search, i_obs, costs)
        best, cost = _best_place(search, costs, j, most)
        if best < 0 or cost >= _cost_of_staying(search, i_obs) - tolerance:
            continue
        if best == search.n_clusters[0]:
            search = _with_room(search)
        _put(search, i_obs, best)
        _take(search, i_obs, j)
        n_moved += 1
    return search, n_moved


@jitted
def rebuild(search: Search, members: np.ndarray, most: int) -> tuple[Search, float]:
    """Dissolve a cluster and allocate its members sequentially; undo this if the loss grows.

    Parameters
    ----------
    search : Search
        Modified in place; all observations are allocated.
    members : ndarray of int64, shape (n,)
        All members of one cluster, in the order of allocation.
    most : int
        Largest number of clusters.

    Returns
    -------
    search : Search
        With more columns if required.
    change : float
        Change of the loss times its divisor; 0 if undone.
    """
    change = -_dissolve(search, members)
    search, cost = allocate(search, members, most)
    change += cost
    if change < -_LEAST_GAIN * search.step[len(search.labels) - 1] * len(members):
        return search, change
    _dissolve(search, members)
    search = _with_room(search)
    j = search.n_clusters[0]
    for i_obs in members:
        _put(search, i_obs, j)
    return search, 0.0


@jitted
def _dissolve(search: Search, members: np.ndarray) -> float:
    """Remove observations from their clusters; return their cost there."""
    cost = 0.0
    for i_obs in members:
        cost += _cost_of_staying(search, i_obs)
        j = search.labels[i_obs]
        search.labels[i_obs] = -1
        _take(search, i_obs, j)
    return cost
