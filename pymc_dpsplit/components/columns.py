"""Tables with columns of different kinds: assign columns to parts, and encode them as numbers."""

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import (
    array_of,
    refuse_shape,
    shown,
    with_remedy,
    without_mask,
)
from pymc_dpsplit.components.component_family import ComponentFamily

_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def is_table(observed: Any) -> bool:
    """Return whether data have named columns: a data frame, or a mapping of names to columns."""
    return isinstance(observed, Mapping) or hasattr(observed, "columns")


def names_of(table: Any) -> list[Any]:
    """Return the names of the columns of a table."""
    return list(table.columns) if hasattr(table, "columns") else list(table)


def columns_of_parts(
    columns: Mapping[str, Any] | None, parts: Mapping[str, Any], table: Any = None
) -> dict[str, list[Any]] | None:
    """Return the columns of each part, or None if they are not named.

    Parameters
    ----------
    columns : mapping, optional
        Name of each part to a column or a list of columns.  By default each part has the column
        of its own name, if the table has such a column for every part.
    parts : mapping
        Name to part.
    table : frame, mapping or array-like, optional
        The table must have exactly the columns of the parts.

    Returns
    -------
    dict or None
        In the order of the parts.

    Raises
    ------
    ValueError
        If parts and columns do not match.
    """
    if columns is None:
        is_named = table is not None and is_table(table) and set(parts) <= set(names_of(table))
        if not is_named:
            return None
        columns = {part: part for part in parts}
    if not isinstance(columns, Mapping) or set(columns) != set(parts):
        raise ValueError(
            f"columns={shown(columns)} does not name the columns of each part; give a dict with "
            f"the keys {', '.join(map(repr, parts))}."
        )
    lists = {part: _as_list(columns[part]) for part in parts}
    taken = [column for keys in lists.values() for column in keys]
    if not _differ(taken) or not all(lists.values()):
        raise ValueError(
            f"columns={shown(columns)} gives a part no column or a column to two parts; give each "
            "part columns of its own, the second a copy of a column that both read."
        )
    if table is not None:
        _refuse_difference(taken, table)
    return lists


def _as_list(keys: Any) -> list[Any]:
    if keys is None:
        return []
    is_several = np.iterable(keys) and not isinstance(keys, str | bytes)
    return list(keys) if is_several else [keys]


def _differ(keys: list[Any]) -> bool:
    """Whether keys are names or numbers, all different."""
    try:
        return len(set(keys)) == len(keys)
    except TypeError:  # a list inside a list
        return False


def _refuse_difference(taken: list[Any], table: Any) -> None:
    known = names_of(table) if is_table(table) else range(np.shape(table)[-1])
    unknown = [column for column in taken if column not in known]
    if unknown:
        raise ValueError(f"columns names {unknown[0]!r}, which observed does not have; rename it.")
    left = [column for column in known if column not in taken]
    if left:
        raise ValueError(
            f"observed has a column {left[0]!r} that no part of the product takes; drop it or give "
            "it to a part."
        )


def table_of_rows(observed: Any, names: Sequence[Any] | None) -> dict[Any, np.ndarray]:
    """Read an array of rows (N, D) of any type, such as strings among numbers, as a table.

    Parameters
    ----------
    observed : array-like
    names : sequence, optional
        Names of the columns; by default, and if they are of another number, their positions.

    Returns
    -------
    dict
        Name to column, NaN where masked.

    Raises
    ------
    ValueError
        If they are not of that shape.
    """
    array, fault = array_of(observed)
    if fault:
        raise ValueError(f"observed {with_remedy(fault, 'give rows of one length')}.")
    array = np.asarray(array)
    refuse_shape(array.shape, 1)
    width = array.shape[1]
    keys = names if names is not None and len(names) == width else range(width)
    return dict(zip(keys, array.T, strict=True))


def array_of_column(column: Any, key: Any) -> np.ndarray:
    """Return the values of a column, NaN where masked.

    Raises
    ------
    ValueError
        If rows differ in length, or values are dates or durations.
    """
    if isinstance(column, np.ma.MaskedArray):
        column = without_mask(column)
    try:
        values = np.asarray(column)
    except Exception as error:  # ragged, or whatever a type raises
        raise ValueError(
            f"observed has a column {key!r} that is no array ({type(error).__name__}); give one "
            "value in each row."
        ) from None
    refuse_dates(values, key)
    return values


def refuse_dates(values: np.ndarray, key: Any) -> None:
    """Refuse a column of dates, times or durations."""
    entries = values.flat if values.dtype.kind == "O" else ()
    first = next((entry for entry in entries if not is_missing(entry)), None)
    is_date = isinstance(first, _DATES) or hasattr(first, "to_timestamp")  # a period of pandas
    if values.dtype.kind in "Mm" or is_date:
        raise ValueError(
            f"observed has a column {key!r} of dates or durations, which no family takes; give "
            "numbers, such as days since the first of them."
        )


def is_numeric(values: np.ndarray) -> bool:
    """Return whether the type of an array is numeric."""
    return values.dtype.kind in "iuf"


def categories_declared(column: Any) -> list[Any] | None:
    """Return the categories of a column that declares them, as pandas and polars can."""
    declared: Any = getattr(getattr(column, "dtype", None), "categories", None)
    # Not those of a categorical of polars, which are shared by all columns of a process.
    return list(declared) if hasattr(declared, "__len__") else None


def encoded_columns(
    table: Any,
    columns: Mapping[str, Sequence[Any]],
    families: Mapping[str, Any],
    categories: Mapping[Any, Sequence[Any]],
) -> tuple[np.ndarray, dict[Any, Sequence[Any]]]:
    """Encode the columns of a table as numbers, in one array.

    Parameters
    ----------
    table : frame or mapping
    columns : mapping
        Name of each part to its columns.
    families : mapping
        Name of each part to its family; strings become codes if its `takes_categories` is true.
    categories : mapping
        Column to its known categories, in the order of their codes.

    Returns
    -------
    rows : ndarray of float64, shape (N, D)
        Columns in the order of the parts; NaN where missing.
    categories : dict
        The given categories, and those found in this table.

    Raises
    ------
    ValueError
        If a column is not numeric and its part takes no categories, or has an unknown category, or
        columns differ in length.
    """
    found, known = [], dict(categories)
    parts = [(part, key, table[key]) for part, keys in columns.items() for key in keys]
    arrays = [array_of_column(column, key) for _, key, column in parts]
    lengths = {values.shape for values in arrays}
    if len(lengths) != 1 or arrays[0].ndim != 1:
        raise ValueError(
            f"observed has columns of shapes {sorted(lengths)}; give columns of one length."
        )
    for (part, key, column), values in zip(parts, arrays, strict=True):
        is_named = key in known or categories_declared(column) is not None
        is_coded = families[part].takes_categories and is_named
        if not is_coded and (values.dtype.kind == "b" or is_numeric(values)):
            found.append(np.asarray(values, np.float64))
        elif not families[part].takes_categories:
            found.append(_as_numbers(values, key, part, families[part]))
        else:
            known[key], codes = _codes(column, key, known.get(key))
            found.append(codes)
    return np.column_stack(found), known


def _as_numbers(values: np.ndarray, key: Any, part: str, family: ComponentFamily) -> np.ndarray:
    """Convert a column of objects, such as integers with missing entries, to numbers."""
    is_odd = any(isinstance(value, str | bytes | np.complexfloating | complex) for value in values)
    try:
        if not is_odd:
            return np.array([_number(value) for value in values.flat], np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(
        f"observed has a column {key!r} of {values.dtype}, but its part {part!r} is "
        f"{type(family).__name__}; give numbers, or the column to a Categorical."
    )


def _number(value: Any) -> float:
    return float("nan") if is_missing(value) else float(value)


def is_missing(value: Any) -> bool:
    """Return whether an entry is None, NaN, NaT or the missing value of pandas."""
    return value is None or str(value) in {"nan", "NaN", "NaT", "<NA>"}


def _codes(column: Any, key: Any, known: Sequence[Any] | None) -> tuple[Sequence[Any], np.ndarray]:
    """Return the categories of a column and its codes, NaN where missing."""
    if isinstance(column, np.ma.MaskedArray):
        column = without_mask(column)
    values = np.asarray(column, object)
    is_there = np.array([not is_missing(value) for value in values.flat], bool)
    if known is None:
        known = categories_declared(column) or sorted_categories(values[is_there], key)
    code_of = {category: code for code, category in enumerate(known)}
    strangers = [value for value in values[is_there] if not _is_among(value, code_of)]
    if strangers:
        raise ValueError(
            f"observed has {strangers[0]!r} in column {key!r}, where it was declared with "
            f"{shown(list(known))}; give these categories or declare the mixture anew."
        )
    codes = np.full(len(values), np.nan)
    codes[is_there] = [code_of[value] for value in values[is_there]]
    return known, codes


def sorted_categories(values: np.ndarray, key: Any) -> list[Any]:
    """Return the different values of a column, in order.

    Raises
    ------
    ValueError
        If they have no order.
    """
    try:
        return sorted(set(values))
    except TypeError:  # numbers among strings, or lists
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise ValueError(
            f"observed has values of type {kinds} in column {key!r}, which have no order; give "
            "strings or numbers, not both."
        ) from None


def coordinate_of_categories(
    several: Sequence[Sequence[Any] | None], n_categories: int
) -> list[str] | None:
    """Return the names of the categories that columns share, None if they do not.

    Parameters
    ----------
    several : sequence
        The categories of each column, None if they are codes.
    n_categories : int
        Number of codes; categories above them do not occur.

    Returns
    -------
    list of str or None
    """
    first, *others = several
    is_shared = first is not None and all(other == first for other in others)
    is_long_enough = first is not None and len(first) >= n_categories
    if first is None or not is_shared or not is_long_enough:
        return None
    return [str(category) for category in first[:n_categories]]


def _is_among(value: Any, known: Mapping[Any, int]) -> bool:
    try:
        return value in known
    except TypeError:  # no category is a list
        return False
