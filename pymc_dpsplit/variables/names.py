"""Names of the rows and columns of a table or named array, which become coordinates of a model."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class Names(NamedTuple):
    """Names that observations carry.

    Attributes
    ----------
    dims : tuple of str, optional
        Names of their dimensions, as an xarray DataArray has them.
    coords : tuple
        For each dimension its coordinate, a sequence, or None.
    """

    dims: tuple[str, ...] | None = None
    coords: tuple[Sequence[Any] | None, ...] = (None, None)

    @property
    def is_named(self) -> bool:
        """Return whether there is any name."""
        return self.dims is not None or any(coord is not None for coord in self.coords)


def names_in(observed: Any) -> Names:
    """Read the names of rows and columns.

    Parameters
    ----------
    observed : object
        A frame or series of pandas or polars, a mapping of columns, a DataArray, or anything else,
        which has no names.

    Returns
    -------
    Names
        In a form that can be stored: numbers, strings or dates.  The index 0, 1, ... that pandas
        gives to every frame is no name.
    """
    if isinstance(observed, Mapping):
        first = next(iter(observed.values()), None)
        return Names(None, (names_in(first).coords[0], _storable(list(observed))))
    if hasattr(observed, "dims") and hasattr(observed, "coords"):
        return _names_in_array(observed)
    rows = _names_in_index(getattr(observed, "index", None))
    columns = getattr(observed, "columns", None)
    return Names(None, (rows, None if columns is None else _storable(list(columns))))


def _names_in_array(observed: Any) -> Names:
    coords = [
        _storable(observed.coords[dim].values) if dim in observed.coords else None
        for dim in observed.dims
    ]
    dims = tuple(str(dim) for dim in observed.dims)
    # xarray names the dimensions of an array without names dim_0, dim_1, ...
    is_named = dims != tuple(f"dim_{axis}" for axis in range(len(dims)))
    padded = (*coords, None, None)[: max(2, len(coords))]
    return Names(dims if is_named else None, padded)


def _names_in_index(index: Any) -> Sequence[Any] | None:
    """Names of rows in an index of pandas; `index` is a method of lists."""
    if index is None or callable(index) or not hasattr(index, "to_numpy"):
        return None
    is_default = getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1
    return None if is_default else _storable(index.to_numpy())


def _storable(values: Any) -> Sequence[Any]:
    """Return names as numbers, dates or strings of one type, so that netCDF can store them."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufMm":
        return list(values)
    if all(isinstance(value, str) for value in values):
        return [str(value) for value in values]
    if all(isinstance(value, int | np.integer) and value is not True for value in values):
        return [int(value) for value in values]
    return [_in_words(value) for value in values]


def _in_words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
