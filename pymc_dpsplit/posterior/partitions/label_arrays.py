"""Validation of arrays of labels, and renumbering by first appearance."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from pymc_dpsplit.kernels.jit import jitted

# Labels with a larger range are renumbered by sorting; others by a table, which is faster.
_LARGEST_TABLE = 10_000_000


class PartitionDraws(NamedTuple):
    """Partitions of one set of observations, with clusters numbered by first appearance.

    Attributes
    ----------
    labels : ndarray of uint16 or uint32, shape (S, N)
        The first observation has label 0, and each new cluster the smallest unused label, so that
        equal partitions have equal rows.
    n_clusters : ndarray of int64, shape (S,)
    """

    labels: np.ndarray
    n_clusters: np.ndarray


def labels_of_draws(labels: Any) -> xr.DataArray:
    """Check labels of draws, and name their dimensions if these have no names.

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
        If labels are empty or not integers.
    """
    named = _draws_first(labels) if isinstance(labels, xr.DataArray) else _named(labels)
    if named.dtype.kind not in "iu":
        raise ValueError(
            f"labels are of type {named.dtype}; give integers, as sample_labels returns them."
        )
    if named.ndim == 0 or named.size == 0:
        raise ValueError(
            f"labels have shape {named.shape}; give an array (chain, draw, obs) that is not empty."
        )
    return named


def _draws_first(labels: xr.DataArray) -> xr.DataArray:
    """Put the dimensions of draws before that of observations, by their names."""
    over = [dim for dim in ("chain", "draw", "sample") if dim in labels.dims]
    if over and len(over) == labels.ndim:
        raise ValueError(
            f"labels have the dimensions {labels.dims}, none of which is of observations; give "
            "what sample_labels returns."
        )
    return labels.transpose(*over, ...)


def _named(given: Any) -> xr.DataArray:
    labels = as_labels(given, "labels")
    dims = [f"draw_{axis}" for axis in range(labels.ndim - 1)] + ["obs"] * (labels.ndim > 0)
    return xr.DataArray(labels, dims=dims)


def as_labels(given: Any, argument: str) -> np.ndarray:
    """Return labels as an array, of whatever type.

    Parameters
    ----------
    given : array_like
    argument : str
        Name of the argument, for messages.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If they are masked, or make no array.
    """
    # A mask says that some labels are not known, which no partition can have.
    if np.ma.is_masked(getattr(given, "values", given)):
        raise ValueError(f"{argument} has masked entries; give every observation a label.")
    try:
        return np.asarray(given)
    except ValueError:
        raise ValueError(
            f"{argument} is ragged, its rows differ in length; give one label for each observation."
        ) from None


def partition_draws(labels: xr.DataArray) -> PartitionDraws:
    """Number the clusters of each draw by first appearance.

    Parameters
    ----------
    labels : DataArray of int, shape (..., obs)
        As from `labels_of_draws`.

    Returns
    -------
    PartitionDraws
        Draws in C order of the leading dimensions.
    """
    given = labels.to_numpy().reshape(-1, labels.shape[-1])
    lowest, highest = int(given.min()), int(given.max())
    if highest - lowest < _LARGEST_TABLE:
        # Widened first, because the difference may overflow a narrow signed type.
        wide = given if given.dtype == np.uint64 else given.astype(np.int64, copy=False)
        codes = (wide - wide.dtype.type(lowest)).astype(np.int64) if lowest else given
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


@jitted
def _number_by_appearance(
    codes: np.ndarray, number: np.ndarray, numbered: np.ndarray, n_clusters: np.ndarray
) -> None:
    """Fill `numbered` (S, N) and `n_clusters` (S,); `number` is -1 for every code on entry."""
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
