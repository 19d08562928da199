"""Clusters of a partition as figures show them: the largest in colours, all others in grey."""

from typing import NamedTuple

import numpy as np

_MOST_COLOURED = 10  # colours of the cycle of matplotlib


class ClusterGroup(NamedTuple):
    """Observations drawn alike.

    Attributes
    ----------
    members : ndarray of int, shape (n,)
        Positions, cluster by cluster.
    color : str
    label : str
        For a legend.
    """

    members: np.ndarray
    color: str
    label: str


def cluster_groups(partition: np.ndarray) -> list[ClusterGroup]:
    """Group observations by cluster.

    Parameters
    ----------
    partition : ndarray of int, shape (N,)
        Labels from 0 on, without gaps.

    Returns
    -------
    list of ClusterGroup
        The ten largest clusters, by decreasing size, and all others together.
    """
    sizes = np.bincount(partition)
    ordered = np.argsort(-sizes, kind="stable")
    groups = [
        ClusterGroup(np.flatnonzero(partition == k), f"C{rank}", f"cluster {k}: {sizes[k]}")
        for rank, k in enumerate(ordered[:_MOST_COLOURED])
    ]
    others = ordered[_MOST_COLOURED:]
    if len(others):
        members = np.concatenate([np.flatnonzero(partition == k) for k in others])
        label = f"{len(others)} smaller: {len(members)}"
        groups.append(ClusterGroup(members, "0.6", label))
    return groups
