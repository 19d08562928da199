"""Selection of features of a mixture by the user, and their names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from pymc_dpsplit.components.arguments import is_integer, shown

Feature = int | str


def feature_positions(
    features: Feature | Sequence[Feature] | None, values: xr.DataArray, default: int, most: int
) -> tuple[int, ...] | None:
    """Return the indices of the features that the user selects.

    Parameters
    ----------
    features : int, str or sequence of them, optional
        As given by the user: indices, or labels of the coordinate.
    values : DataArray, shape (N,) or (N, D)
        Values that the mixture models.
    default : int
        Number of features, the first ones, if the user gives none.
    most : int
        Largest number of features that the user may give.

    Returns
    -------
    tuple of int or None
        None for a mixture of scalars.

    Raises
    ------
    ValueError
        If a feature does not exist, or there are too many.
    """
    if values.ndim == 1:
        if features is not None:
            raise ValueError("features is given for a mixture of scalars; leave it out.")
        return None
    known = feature_names(values)
    n_features = values.shape[1]
    if features is None:
        return tuple(range(min(default, n_features)))
    given: Any = features
    chosen = [given] if np.ndim(given) == 0 else list(given)
    positions = [known.index(of) if of in known else of for of in chosen]
    are_valid = all(_is_position(of, n_features) for of in positions)
    if not are_valid or not 0 < len(positions) <= most or len(set(positions)) < len(positions):
        how_many = "one or two" if most == 2 else f"one to {most}"
        raise ValueError(
            f"features={features!r} must be {how_many} different positions from 0 to "
            f"{n_features - 1}, or labels of the coordinate {values.dims[1]}."
        )
    return tuple(int(of) for of in positions)


def given_values(
    given: Mapping[Feature, float] | None,
    features: Feature | Sequence[Feature] | None,
    values: xr.DataArray,
) -> dict[int, float]:
    """Return the index of each feature that is conditioned on, and its value.

    Parameters
    ----------
    given : mapping, optional
        Index or label of a feature to its value.
    features : int, str or sequence of them, optional
        Features that are not conditioned on, as given by the user.
    values : DataArray, shape (N,) or (N, D)

    Returns
    -------
    dict
        Empty if nothing is given.

    Raises
    ------
    ValueError
        If a feature does not exist or is among `features`, or a value is not finite.
    """
    if given is None:
        return {}
    if values.ndim == 1:
        raise ValueError("given is for a mixture of several features; leave it out.")
    known, n_features = feature_names(values), values.shape[1]
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            f"given={shown(given)} is no dict of values; give one, such as {{{known[0]!r}: 1.0}}."
        )
    found: dict[int, float] = {}
    taken = feature_positions(features, values, 0, 2) if features is not None else ()
    for feature, value in given.items():
        at = known.index(feature) if feature in known else feature
        if not _is_position(at, n_features) or int(at) in found or int(at) in (taken or ()):
            raise ValueError(
                f"given has {feature!r}, which is no feature, or one that is asked for; give "
                f"others of {known}."
            )
        if not isinstance(value, int | float | np.number) or not np.isfinite(value):
            raise ValueError(f"given has {shown(value)} for {feature!r}; give a finite number.")
        found[int(at)] = float(value)
    if len(found) == n_features:
        raise ValueError("given has a value for every feature; leave one out.")
    return found


def chosen_features(
    features: Feature | Sequence[Feature] | None,
    given: Mapping[int, float],
    values: xr.DataArray,
    lawless: Collection[int] = (),
) -> tuple[int, ...] | None:
    """Return the indices of one or two features.

    By default these are the first that are not given and, if there are any, not `lawless`.
    """
    if features is None and (given or lawless):
        others = [d for d in range(values.shape[1]) if d not in given]
        return tuple([d for d in others if d not in lawless][:2] or others[:2])
    return feature_positions(features, values, default=2, most=2)


def _is_position(value: Any, n_features: int) -> bool:
    return is_integer(value) and 0 <= value < n_features


def feature_names(values: xr.DataArray) -> list[str]:
    """Return a name for each feature.

    Parameters
    ----------
    values : DataArray, shape (N, D)

    Returns
    -------
    list of str
        Labels of the coordinate if these are strings.
    """
    dim = values.dims[1]
    if dim in values.coords and values.coords[dim].dtype.kind in "OUT":
        return [str(label) for label in values.coords[dim].values]
    return [f"{dim} {i}" for i in range(values.shape[1])]
