"""Checks of what a trace records of a mixture: numbers of clusters, weights and labels."""

from typing import Any

import numpy as np
import xarray as xr

_REMEDY = "give the trace as pm.sample returned it"
# More clusters than that are in no trace: each has an observation.
_MOST_CLUSTERS = 2**31
# More different numbers of clusters than a table of them holds with ease.
_MOST_COUNTED = 10**6
# By how much the weights of a draw may miss one: traces may have been stored in float32.
_ROUNDING = 1e-3


def counts_of(drawn: xr.Dataset, name: str) -> xr.DataArray:
    """Return the numbers of clusters of all draws.

    Parameters
    ----------
    drawn : Dataset
        Laid out, with a variable of that name.
    name : str
        Name of the mixture.

    Returns
    -------
    DataArray of int64, shape (chain, draw)

    Raises
    ------
    ValueError
        If one is no whole number from 1.
    """
    counts = drawn[f"{name}_n_clusters"]
    refuse_dims(counts, 0)
    counts = whole_numbers(counts)
    if counts.min() < 1 or counts.max() >= _MOST_CLUSTERS:
        raise ValueError(
            f"{counts.name} is {int(counts.min())} to {int(counts.max())} in idata, but every draw "
            f"has a cluster and each an observation; {_REMEDY}."
        )
    return counts


def refuse_many(counts: xr.DataArray) -> None:
    """Refuse numbers of clusters too large to count how often each occurs."""
    if counts.max() > _MOST_COUNTED:
        raise ValueError(
            f"{counts.name} is up to {int(counts.max())} in idata, more than can be shown; "
            f"{_REMEDY}."
        )


def refuse_dims(values: xr.DataArray, ndim: int) -> None:
    """Refuse a variable that is not over chain, draw and as many dimensions more."""
    if values.dims[:2] != ("chain", "draw") or values.ndim != 2 + ndim:
        dims = ", ".join(str(dim) for dim in values.dims)
        raise ValueError(
            f"{values.name} has the dimensions ({dims}) in idata, which are not chain, draw and "
            f"{ndim} more; {_REMEDY}."
        )


def whole_numbers(values: xr.DataArray) -> xr.DataArray:
    """Return whole numbers as integers, also those that were stored as floats.

    Raises
    ------
    ValueError
        If they are something else.
    """
    if values.dtype.kind in "biu":
        return values
    is_whole = values.dtype.kind == "f" and bool((np.abs(values) < 2.0**53).all())
    if not is_whole or not (values == np.rint(values)).all():
        raise ValueError(
            f"{values.name} holds values of type {values.dtype} in idata that are not whole "
            f"numbers; {_REMEDY}."
        )
    return values.astype(np.int64)


def refuse_weights(weights: np.ndarray, name: str) -> None:
    """Refuse recorded weights (..., K) of a mixture that are NaN, negative or above one."""
    if weights.dtype.kind not in "fiu" or not ((weights >= 0) & (weights <= 1 + _ROUNDING)).all():
        raise ValueError(
            f"{name}_weights holds values in idata that are not between 0 and 1; {_REMEDY}."
        )


def refuse_measure(
    weights: np.ndarray, remainder: float, parameters: dict[str, np.ndarray], name: str
) -> None:
    """Refuse a draw whose weights do not sum to one, or with parameters that are not finite."""
    if not (remainder >= 0 and abs(weights.sum() + remainder - 1) <= _ROUNDING):
        raise ValueError(
            f"{name}_weights and {name}_new_weight do not sum to one in some draws of idata; "
            f"{_REMEDY}."
        )
    for key, values in parameters.items():
        if not np.isfinite(values).all():
            raise ValueError(
                f"{name}_{key} is NaN or infinite for a cluster in use in some draws of idata; "
                f"{_REMEDY}."
            )


def labels_of(drawn: xr.Dataset, name: str) -> xr.DataArray:
    """Return the labels of a mixture that a group records.

    Parameters
    ----------
    drawn : Dataset
        Laid out, with a variable of that name.
    name : str
        Name of the mixture.

    Returns
    -------
    DataArray of int, shape (chain, draw, N)

    Raises
    ------
    ValueError
        If one is no whole number from 0.
    """
    labels = drawn[f"{name}_labels"]
    refuse_dims(labels, 1)
    labels = whole_numbers(labels)
    # Types without a sign need no look at what may be a large array on disk.
    if labels.size == 0 or (labels.dtype.kind != "u" and labels.min() < 0):
        raise ValueError(
            f"{labels.name} holds in idata what are no numbers of clusters; {_REMEDY}."
        )
    return labels


def refuse_other_draws(drawn: xr.Dataset, others: xr.Dataset, group: str) -> None:
    """Refuse a group of other draws than those of the posterior."""
    for dim in ("chain", "draw"):
        if not same_coords(drawn[dim], others[dim]):
            raise ValueError(
                f"the group {group} of idata has other values of {dim} than posterior; select the "
                "same in both, as idata.sel does of the whole trace."
            )


def same_coords(one: Any, other: Any) -> bool:
    """Return whether two coordinates are equal; NaN and NaT, of an index with gaps, equal itself.

    Parameters
    ----------
    one, other : DataArray or array_like

    Returns
    -------
    bool
    """
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    are_equal = (one == other) | ((one != one) & (other != other))
    return bool(np.all(are_equal))
