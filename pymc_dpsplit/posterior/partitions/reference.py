"""Reference partitions, to which the clusters of draws are compared by their common members."""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.posterior.partitions.check_partition import labels_of_partition, refuse_other_rows
from pymc_dpsplit.posterior.partitions.label_arrays import as_labels


class Reference(NamedTuple):
    """A partition of the observations, with labels that are indices of `names`.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
    names : ndarray of int, shape (R,)
        The labels given by the user, ascending.
    """

    labels: np.ndarray
    names: np.ndarray


def reference_of(partition: Any, dim: str, coord: np.ndarray | None) -> Reference:
    """Check a partition given by the user, which may be of another number of observations.

    Parameters
    ----------
    partition : PointPartition, DataArray or array_like of int, shape (N,)
    dim : str
        Name of the dimension of observations.
    coord : ndarray, optional
        Coordinate of the observations, which that of the partition must equal.

    Returns
    -------
    Reference

    Raises
    ------
    ValueError
        If it is not one integer per observation, or has another coordinate.
    """
    given_labels = labels_of_partition(partition)
    labels = as_labels(given_labels, "partition")
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"partition has shape {labels.shape} and type {labels.dtype}; give one integer for "
            "each observation, the number of its cluster."
        )
    refuse_other_rows(given_labels, dim, coord)
    names, positions = np.unique(labels, return_inverse=True)
    return Reference(positions, names)


def refuse_other_length(reference: Reference, n_obs: int, name: str) -> None:
    """Refuse a partition of another number of observations than the mixture `name` has."""
    if len(reference.labels) != n_obs:
        raise ValueError(
            f"partition has {len(reference.labels)} labels, but {name} has {n_obs} observations; "
            "give one integer for each."
        )


def counts_shared(labels: np.ndarray, n_clusters: int, reference: Reference) -> np.ndarray:
    """Count the observations that a cluster of a draw and a reference cluster have in common.

    Parameters
    ----------
    labels : ndarray of int, shape (N,)
        Labels of one draw, below `n_clusters`.
    n_clusters : int
        Number of clusters K of the draw, which may include empty ones.
    reference : Reference

    Returns
    -------
    ndarray of int64, shape (K, R)
    """
    n_reference = len(reference.names)
    flat = labels.astype(np.int64) * n_reference + reference.labels
    return np.bincount(flat, minlength=n_clusters * n_reference).reshape(-1, n_reference)


def shares_of(counts: np.ndarray) -> np.ndarray:
    """Return the share (K, R) of each reference cluster among the members; 0 without members."""
    return counts / np.maximum(counts.sum(1, keepdims=True), 1)
