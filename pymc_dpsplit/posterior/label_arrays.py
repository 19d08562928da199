"""Labels as users give them: checked, with named dimensions, and numbered anew by appearance."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.kernels.jit import kernel

# Labels that spread further are made consecutive by sorting, which is slower than a table.
_LARGEST_TABLE = 10_000_000


class PartitionDraws(NamedTuple):
    """Partitions of one set, numbered by first appearance.

    Attributes
    ----------
    labels : ndarray of uint16 or uint32, shape (S, N)
        The first observation has label 0, and every new cluster the smallest one unused, so that
        equal partitions have equal rows.
    n_clusters : ndarray of int64, shape (S,)
    """

    labels: np.ndarray
    n_clusters: np.ndarray


def labels_of_draws(labels: Any) -> xr.DataArray:
    """Check labels of draws, and name their dimensions if they have no names.

    Parameters
    ----------
    labels : DataArray or ndarray of int, shape (..., obs)
        As from `sample_labels`.

    Returns
    -------
    DataArray of int, shape (..., obs)

    Raises
    ------
    ValueError
        If they are not integers, or empty.
    """
    if isinstance(labels, xr.DataTree | xr.Dataset):
        raise ValueError(
            f"labels are a {type(labels).__name__}; give what sample_labels(idata, model) returns."
        )
    named = labels if isinstance(labels, xr.DataArray) else _named(np.asarray(labels))
    if named.dtype.kind not in "iu":
        raise ValueError(
            f"labels are of type {named.dtype}; give integers, as sample_labels returns them."
        )
    if named.ndim == 0 or named.size == 0:
        raise ValueError(
            f"labels have shape {named.shape}; give an array (chain, draw, obs) that is not empty."
        )
    return named


def _named(labels: np.ndarray) -> xr.DataArray:
    dims = [f"draw_{axis}" for axis in range(labels.ndim - 1)] + ["obs"] * (labels.ndim > 0)
    return xr.DataArray(labels, dims=dims)


def partition_draws(labels: xr.DataArray) -> PartitionDraws:
    """Number the clusters of each draw by first appearance.

    Parameters
    ----------
    labels : DataArray of int, shape (..., obs)
        As from `labels_of_draws`.

    Returns
    -------
    PartitionDraws
        Draws in the order of the leading dimensions, the last of them fastest.
    """
    given = labels.to_numpy().reshape(-1, labels.shape[-1])
    lowest, highest = int(given.min()), int(given.max())
    if highest - lowest < _LARGEST_TABLE:
        # Widened first: the range of a narrow signed type does not fit in it.
        codes = (given.astype(np.int64, copy=False) - lowest) if lowest else given
        spread = highest - lowest
    else:
        codes = np.unique(given, return_inverse=True)[1].reshape(given.shape)
        spread = int(codes.max())
    narrow = np.uint16 if given.shape[1] <= np.iinfo(np.uint16).max else np.uint32
    numbered = np.empty(given.shape, narrow)
    n_clusters = np.empty(len(given), np.int64)
    first = np.full(spread + 1, -1, np.int64)
    codes = np.ascontiguousarray(codes, np.uint16 if spread < 2**16 else np.uint32)
    _number_by_appearance(codes, first, numbered, n_clusters)
    return PartitionDraws(numbered, n_clusters)


@kernel
def _number_by_appearance(
    codes: np.ndarray, number: np.ndarray, numbered: np.ndarray, n_clusters: np.ndarray
) -> None:
    """Fill `numbered` (S, N) and `n_clusters` (S,); `number` holds -1 for every code."""
    for draw in range(len(codes)):
        found = 0
        for i_obs in range(codes.shape[1]):
            code = codes[draw, i_obs]
            if number[code] < 0:
                number[code] = found
                found += 1
            numbered[draw, i_obs] = number[code]
        n_clusters[draw] = found
        for i_obs in range(codes.shape[1]):
            number[codes[draw, i_obs]] = -1
