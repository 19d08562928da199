"""Observations that are not numbers: what is wrong with them, and what to give instead."""

from datetime import date, time, timedelta
from typing import Any

import numpy as np

_CATEGORIES = "give numbers, and encode categories first, for instance by .cat.codes of pandas"
_EQUAL_ROWS = "give rows of one length, with NaN where entries are missing"
_REAL = "give real numbers, such as real and imaginary parts in columns of their own"
_DAYS = "give numbers, such as days since the first of them"
_DURATIONS = "give numbers, such as the days that they last"

_REMEDIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((date, time, np.datetime64), _DAYS),
    ((timedelta, np.timedelta64), _DURATIONS),
    ((complex, np.complexfloating), _REAL),
    ((list, tuple, np.ndarray), _EQUAL_ROWS),
)


def refuse_columns_by_name(observed: Any, row_ndim: int) -> None:
    """Refuse a dict of columns, of which only families of several columns read the names.

    Parameters
    ----------
    observed : object
        As the user gives it.
    row_ndim : int
        0 for a family of single numbers, 1 for one of rows.

    Raises
    ------
    ValueError
    """
    if not isinstance(observed, dict):
        return
    key = next(iter(observed), None)
    wanted = "single numbers; give the array of one column"
    if row_ndim:
        wanted = "an array of rows; give np.column_stack([*observed.values()]), or use Product"
    elif key is not None:
        wanted += f", such as observed[{key!r}]"
    raise ValueError(f"observed is a dict of columns, but this component takes {wanted}.")


def remedy_for(array: Any, is_ragged: bool) -> str:
    """Return what to give in place of observations that are not numbers.

    Parameters
    ----------
    array : array
        The observations, as far as they can be read.
    is_ragged : bool
        Whether they cannot be read because their rows differ in length.

    Returns
    -------
    str
    """
    if is_ragged:
        return _EQUAL_ROWS
    dtype = getattr(array, "dtype", None)
    if not isinstance(dtype, np.dtype):
        return _CATEGORIES
    # Entries of arrays that are read in chunks are not looked at.
    is_of_objects = dtype.kind == "O" and isinstance(array, np.ndarray)
    entries = {type(entry) for entry in array.flat} if is_of_objects else {dtype.type}
    for kinds, remedy in _REMEDIES:
        if any(issubclass(entry, kinds) for entry in entries):
            return remedy
    return _CATEGORIES
