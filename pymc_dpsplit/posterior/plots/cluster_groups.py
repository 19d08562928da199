"""Groups of observations in a figure: the largest clusters in colours, others in grey."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from pymc_dpsplit.posterior.partitions.check_partition import check_partition

MOST_COLOURED = 10  # colours of the cycle of matplotlib
GREY = "0.75"
# Colours of clusters by rank; colour 7 of the cycle is grey too.
COLOURS = tuple("black" if k == 7 else f"C{k}" for k in range(MOST_COLOURED))


class ClusterGroup(NamedTuple):
    """Observations drawn in one colour.

    Attributes
    ----------
    members : ndarray of int, shape (n,)
        Indices of the observations, cluster by cluster.
    color : str
    label : str
        Text for a legend.
    """

    members: np.ndarray
    color: str
    label: str


def cluster_groups(
    partition: Any, like: Any, dim: str, n_obs: int, coord: Any = None
) -> list[ClusterGroup]:
    """Group observations by cluster.

    Parameters
    ----------
    partition : PointPartition, DataArray or array_like of int, shape (N,)
        As given by the user.
    like : PointPartition, DataArray or array_like of int, shape (N,), or None
        Partition that determines numbers and colours of matched clusters, see `matched_numbers`.
    dim : str
        Name of the dimension of observations.
    n_obs : int
        Number of observations N.
    coord : DataArray, optional
        Coordinate of the observations, which those of the partitions must equal.

    Returns
    -------
    list of ClusterGroup
        One group for each of the ten largest clusters of `like`, or of `partition` without it, by
        decreasing size, and one group of all others.  Colours that `like` does not use go to the
        largest unmatched clusters.

    Raises
    ------
    ValueError
        See `check_partition`.
    """
    labels = check_partition(partition, dim, n_obs, coord).to_numpy()
    sizes = np.bincount(labels)
    numbers, counted = np.arange(len(sizes)), sizes
    if like is not None:
        reference = check_partition(like, dim, n_obs, coord, "like").to_numpy()
        numbers = matched_numbers(labels, reference)
        counted = np.bincount(reference, minlength=int(numbers.max()) + 1)
    # The rank of each number by size; numbers that `like` does not have come last.
    ranks = np.argsort(np.argsort(-counted, kind="stable"))[numbers]
    ordered = np.argsort(-sizes, kind="stable")
    is_coloured = ranks[ordered] < MOST_COLOURED
    groups = [
        ClusterGroup(
            np.flatnonzero(labels == k), COLOURS[ranks[k]], f"cluster {numbers[k]}: {sizes[k]}"
        )
        for k in ordered[is_coloured]
    ]
    others = ordered[~is_coloured]
    if len(others):
        members = np.concatenate([np.flatnonzero(labels == k) for k in others])
        what = "smaller" if like is None else "more"
        groups.append(ClusterGroup(members, GREY, f"{len(others)} {what}: {len(members)}"))
    return groups


def matched_numbers(partition: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Number the clusters of one partition like those of another.

    Parameters
    ----------
    partition, like : ndarrays of int, shape (N,)
        Labels 0, 1, ... without gaps.

    Returns
    -------
    ndarray of int64, shape (K,)
        For each cluster of `partition` the number of its match in `like`.  The matching maximises
        the number of observations in matched clusters.  Clusters without a match, or without a
        common observation with it, take further numbers by decreasing size.
    """
    n_clusters, n_like = int(partition.max()) + 1, int(like.max()) + 1
    pairs = np.bincount(partition * n_like + like, minlength=n_clusters * n_like)
    shared = pairs.reshape(n_clusters, n_like)
    own, partner = linear_sum_assignment(shared, maximize=True)
    is_alike = shared[own, partner] > 0
    numbers = np.full(n_clusters, -1)
    numbers[own[is_alike]] = partner[is_alike]
    further = np.flatnonzero(numbers < 0)
    further = further[np.argsort(-shared[further].sum(axis=1), kind="stable")]
    numbers[further] = n_like + np.arange(len(further))
    return numbers
