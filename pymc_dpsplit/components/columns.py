"""Tables with columns of different kinds: which belong to which part, and as what numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.declaration import Component


def is_table(observed: Any) -> bool:
    """Whether data have columns with names: a frame, or a mapping of names to columns."""
    return isinstance(observed, Mapping) or hasattr(observed, "columns")


def _names_of(table: Any) -> list[Any]:
    return list(table.columns) if hasattr(table, "columns") else list(table)


def columns_of_parts(
    columns: Mapping[str, Any] | None, parts: Mapping[str, Any], table: Any = None
) -> dict[str, list[Any]] | None:
    """Return the columns of each part, if they were named.

    Parameters
    ----------
    columns : mapping, optional
        Name of each part to a column or a list of columns; by default a table that has columns
        with the names of all parts says it.
    parts : mapping
        By name.
    table : frame, mapping or array-like, optional
        Checked to have these columns and no others.

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
        is_named = table is not None and is_table(table) and set(parts) <= set(_names_of(table))
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
    if len(set(taken)) != len(taken) or not all(lists.values()):
        raise ValueError(
            f"columns={shown(columns)} gives a part no column or a column to two parts; give each "
            "part columns of its own."
        )
    if table is not None:
        _refuse_difference(taken, table)
    return lists


def _as_list(keys: Any) -> list[Any]:
    return [keys] if isinstance(keys, str | int) else list(keys)


def _refuse_difference(taken: list[Any], table: Any) -> None:
    known = _names_of(table) if is_table(table) else range(np.shape(table)[-1])
    unknown = [column for column in taken if column not in known]
    if unknown:
        raise ValueError(f"columns names {unknown[0]!r}, which observed does not have; rename it.")
    left = [column for column in known if column not in taken]
    if left:
        raise ValueError(
            f"observed has a column {left[0]!r} that no part of the product takes; drop it or give "
            "it to a part."
        )


def _column(table: Any, key: Any) -> Any:
    return table[key] if is_table(table) else np.asarray(table)[:, key]


def _is_numeric(column: Any) -> bool:
    return getattr(np.asarray(column).dtype, "kind", "") in "iuf"


def columns_by_kind(table: Any) -> dict[str, list[Any]]:
    """Sort the columns of a table into ``numeric``, ``count`` and ``category``.

    Parameters
    ----------
    table : frame or mapping

    Returns
    -------
    dict
        Kind to names of columns, kinds without any left out.
    """
    kinds: dict[str, list[Any]] = {"numeric": [], "count": [], "category": []}
    for key in _names_of(table):
        column = _column(table, key)
        values = np.asarray(column)
        if not _is_numeric(column):
            kinds["category"].append(key)
        elif values.dtype.kind == "f" or (values < 0).any():
            kinds["numeric"].append(key)
        else:
            kinds["count"].append(key)
    return {kind: keys for kind, keys in kinds.items() if keys}


def encoded_columns(
    table: Any,
    columns: Mapping[str, Sequence[Any]],
    families: Mapping[str, Any],
    categories: Mapping[Any, Sequence[Any]],
) -> tuple[np.ndarray, dict[Any, Sequence[Any]]]:
    """Put the columns of a table side by side, as numbers.

    Parameters
    ----------
    table : frame, mapping or array-like
    columns : mapping
        Name of each part to its columns.
    families : mapping
        Name of each part to its family; `takes_categories` says whether strings become codes.
    categories : mapping
        Column to the categories it is known to have, in the order of their codes.

    Returns
    -------
    rows : ndarray of float64, shape (N, D)
        Columns in the order of the parts; NaN where missing.
    categories : dict
        With those found here added.

    Raises
    ------
    ValueError
        If a column is not numeric and its part takes no categories, or has an unknown category, or
        columns differ in length.
    """
    found, known = [], dict(categories)
    for part, keys in columns.items():
        for key in keys:
            column = _column(table, key)
            if np.asarray(column).dtype.kind == "b" or _is_numeric(column):
                found.append(np.asarray(column, np.float64))
            elif not families[part].takes_categories:
                found.append(_as_numbers(column, key, part, families[part]))
            else:
                known[key], codes = _codes(column, key, known.get(key))
                found.append(codes)
    lengths = {column.shape for column in found}
    if len(lengths) != 1 or found[0].ndim != 1:
        raise ValueError(
            f"observed has columns of shapes {sorted(lengths)}; give columns of one length."
        )
    return np.column_stack(found), known


def _as_numbers(column: Any, key: Any, part: str, family: Component) -> np.ndarray:
    """Numbers of a column of objects, such as integers with missing entries."""
    values = np.asarray(column)
    is_text = any(isinstance(value, str | bytes) for value in values.flat)
    try:
        if not is_text:
            return np.array([_number(value) for value in values.flat], np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"observed has a column {key!r} of {values.dtype}, but its part {part!r} is "
        f"{type(family).__name__}; give numbers, or the column to a Categorical."
    )


def _number(value: Any) -> float:
    return float("nan") if _is_missing(value) else float(value)


def _is_missing(value: Any) -> bool:
    """Whether an entry is None, NaN, NaT or the missing value of pandas."""
    return value is None or str(value) in {"nan", "NaN", "NaT", "<NA>"}


def _codes(column: Any, key: Any, known: Sequence[Any] | None) -> tuple[Sequence[Any], np.ndarray]:
    """Return the categories of a column and its codes, NaN where missing."""
    values = np.asarray(column, object)
    is_there = np.array([not _is_missing(value) for value in values.flat], bool)
    if known is None:
        declared = getattr(getattr(column, "dtype", None), "categories", None)
        known = sorted(set(values[is_there])) if declared is None else list(declared)
    code_of = {category: code for code, category in enumerate(known)}
    strangers = [value for value in values[is_there] if value not in code_of]
    if strangers:
        raise ValueError(
            f"observed has {strangers[0]!r} in column {key!r}, where it was declared with "
            f"{shown(list(known))}; give these categories or declare the mixture anew."
        )
    codes = np.full(len(values), np.nan)
    codes[is_there] = [code_of[value] for value in values[is_there]]
    return known, codes
