"""Validation of a partition given by the user."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.partitions.label_arrays import as_labels
from pymc_dpsplit.posterior.trace.recorded import same_coords


def labels_of_partition(partition: Any) -> Any:
    """Return the labels of a partition or of an estimate of it.

    Parameters
    ----------
    partition : PointPartition, MapPartition, DPMeansClusters, DataArray or array_like of int

    Returns
    -------
    DataArray or array_like of int
        Labels, not yet checked.
    """
    if isinstance(partition, xr.DataArray):  # it may have a coordinate named `labels`
        return partition
    return getattr(partition, "labels", partition)


def labels_of_rows(
    partition: Any,
    group_of_row: np.ndarray | None,
    dim: str,
    names: Any = None,
    argument: str = "partition",
) -> Any:
    """Return the labels of the rows of a partition of groups, any other partition as it is.

    Parameters
    ----------
    partition : PointPartition, MapPartition, DPMeansClusters, DataArray or array_like of int
        As given by the user; or None.
    group_of_row : ndarray of int, shape (N,), optional
        Group 0 .. G - 1 of each row; None if rows have labels of their own.
    dim : str
        Name of the dimension of groups.
    names : sequence, optional
        Names of the groups, which the coordinate of the partition must equal.
    argument : str
        Name of the argument, for messages.

    Returns
    -------
    object

    Raises
    ------
    ValueError
        If the partition is one of other groups.
    """
    given = labels_of_partition(partition)
    if given is None or group_of_row is None:
        return partition
    labels = as_labels(given, argument)
    # As many groups as rows are the rows, in their order.
    n_groups = int(group_of_row.max()) + 1
    if labels.shape != (n_groups,) or n_groups == len(group_of_row):
        return partition
    refuse_other_rows(given, dim, names, argument)
    return labels[group_of_row]


def check_partition(
    partition: Any, dim: str, n_obs: int, coord: Any = None, argument: str = "partition"
) -> xr.DataArray:
    """Check a partition of observations, and name its dimension.

    Parameters
    ----------
    partition : PointPartition, DataArray or array_like of int, shape (N,)
        As given by the user; also a result of `find_map` or `dp_means`.
    dim : str
        Name of the dimension of observations.
    n_obs : int
        Number of observations N.
    coord : DataArray, optional
        Coordinate of the observations, which that of the partition must equal.
    argument : str
        Name of the argument, for messages.

    Returns
    -------
    DataArray of int64, shape (N,)
        Labels 0, 1, ... without gaps, in the order of the given labels.

    Raises
    ------
    ValueError
        If the partition is not one integer per observation, or has another coordinate.
    """
    given = labels_of_partition(partition)
    labels = as_labels(given, argument)
    if labels.shape != (n_obs,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{argument} has shape {labels.shape} and type {labels.dtype}; give one integer for "
            f"each of the {n_obs} observations, as point_partition returns them."
        )
    refuse_other_rows(given, dim, coord, argument)
    dense = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    coords = {} if coord is None else {dim: coord}
    return xr.DataArray(dense, dims=(dim,), coords=coords, name="partition")


def refuse_other_rows(given: Any, dim: str, coord: Any, argument: str = "partition") -> None:
    """Refuse labels whose coordinate differs from that of the observations.

    Parameters
    ----------
    given : DataArray or array_like of int
        As `labels_of_partition` returns them.
    dim : str
        Name of the dimension of observations.
    coord : DataArray or ndarray, optional
        Coordinate of the observations.
    argument : str
        Name of the argument, for messages.

    Raises
    ------
    ValueError
        If both have a coordinate and the coordinates differ.
    """
    own = given.coords.get(dim) if isinstance(given, xr.DataArray) else None
    if own is not None and coord is not None and not same_coords(own, coord):
        raise ValueError(
            f"{argument} is one of other observations, by its coordinate {dim}; give one of those "
            "that the draws are of, in the same order."
        )
