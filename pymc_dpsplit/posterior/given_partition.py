"""A partition as users give it, checked against the labels of the draws it stands for."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.posterior.point_partition import PointPartition


def labels_of_partition(partition: Any) -> Any:
    """Return the labels of a partition, also of what an estimate found.

    Parameters
    ----------
    partition : PointPartition, MapPartition, DPMeansClusters, DataArray or array_like of int

    Returns
    -------
    DataArray or array_like of int
        Not yet checked.
    """
    if isinstance(partition, PointPartition):
        return partition.partition
    if isinstance(partition, xr.DataArray):  # which may have a coordinate of the name below
        return partition
    return getattr(partition, "labels", partition)


def given_partition(
    partition: Any, dim: str, n_obs: int, coord: Any = None, argument: str = "partition"
) -> xr.DataArray:
    """Check a partition of some observations, and name its dimension.

    Parameters
    ----------
    partition : PointPartition, DataArray or array_like of int, shape (N,)
        As users give it; or what `find_map` or `dp_means` found.
    dim : str
        Name of the dimension of observations.
    n_obs : int
    coord : DataArray, optional
        Coordinate of the observations, with which that of the partition must agree.
    argument : str
        What the user calls the partition, for messages.

    Returns
    -------
    DataArray of int64, shape (N,)
        Labels from 0 on, without gaps, in the order of those given.

    Raises
    ------
    ValueError
        If it is not one integer for each observation, or is one of other observations.
    """
    given = labels_of_partition(partition)
    labels = np.asarray(given)
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
    """Refuse labels whose coordinate says that they are of other observations, or in other order.

    Parameters
    ----------
    given : DataArray or array_like of int
        As `labels_of_partition` returns them.
    dim : str
        Name of the dimension of observations.
    coord : DataArray or ndarray, optional
        Coordinate of the observations.
    argument : str
        What the user calls the partition.

    Raises
    ------
    ValueError
        If both have a coordinate, and they differ.
    """
    own = given.coords.get(dim) if isinstance(given, xr.DataArray) else None
    if own is not None and coord is not None and not np.array_equal(own, coord):
        raise ValueError(
            f"{argument} is one of other observations, by its coordinate {dim}; give one of those "
            "that the draws are of, in the same order."
        )
