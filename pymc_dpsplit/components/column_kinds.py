"""Kinds of the columns of a table, from their entries, for `Product.from_data`."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.components.bernoulli import Bernoulli
from pymc_dpsplit.components.categorical import Categorical
from pymc_dpsplit.components.columns import (
    array_of_column,
    categories_declared,
    is_missing,
    is_numeric,
    names_of,
    sorted_categories,
)
from pymc_dpsplit.components.diag_normal import DiagNormal
from pymc_dpsplit.components.negative_binomial import NegativeBinomial
from pymc_dpsplit.components.poisson import Poisson

# Each kind with its family, in the order of the parts.
FAMILY_OF_KIND: dict[str, Any] = {
    "numeric": DiagNormal,
    "count": Poisson,
    "overdispersed": NegativeBinomial,
    "binary": Bernoulli,
    "category": Categorical,
}
# A Poisson distribution with a larger mean is close to a normal one, whose variance is free.
LARGE_MEAN = 30.0
# Clusters with different rates make counts overdispersed too, but seldom by more than this.
LARGE_DISPERSION = 10.0
# Columns that the line of the log names for each kind.
_MOST_NAMED = 8

# A child of PyMC's logger, so that the message appears among those of PyMC.
_log = logging.getLogger("pymc.dpsplit")


def kinds_of_columns(
    table: Any, given: Mapping[Any, str] | None = None
) -> tuple[dict[str, list[Any]], dict[Any, Sequence[Any]]]:
    """Sort the columns of a table by kind, and log the result.

    Parameters
    ----------
    table : frame or mapping
    given : mapping, optional
        Column to kind, for those whose entries are not to decide.

    Returns
    -------
    columns : dict
        Kind to names of columns; kinds without columns are omitted.
    categories : dict
        Column to its categories, for numbers that are given as categories.

    Raises
    ------
    ValueError
        If `given` is not such a mapping, or a column has no kind.
    """
    given = _checked_kinds(given, names_of(table))
    columns: dict[str, list[Any]] = {kind: [] for kind in FAMILY_OF_KIND}
    categories: dict[Any, Sequence[Any]] = {}
    for key in names_of(table):
        values = array_of_column(table[key], key)
        kind = given.get(key) or _kind_of(table[key], values)
        columns[kind].append(key)
        if given.get(key) == "category" and categories_declared(table[key]) is None:
            categories[key] = _categories_of(values, key)
    found = {kind: keys for kind, keys in columns.items() if keys}
    _log.info("Product.from_data: %s; kinds= makes others of them.", _in_words(found))
    return found, categories


def _categories_of(values: np.ndarray, key: Any) -> list[Any]:
    """Return the categories of numbers, as integers if all of them are whole."""
    there = [value for value in values.tolist() if not is_missing(value)]
    if all(isinstance(value, float) and value.is_integer() for value in there):
        there = [int(value) for value in there]
    return sorted_categories(np.array(there, object), key)


def _checked_kinds(given: Any, names: list[Any]) -> Mapping[Any, str]:
    if given is None:
        return {}
    remedy = f"give a dict of columns to {', '.join(map(repr, FAMILY_OF_KIND))}"
    if not isinstance(given, Mapping):
        raise ValueError(f"kinds={shown(given)} is no dict; {remedy}.")
    for key, kind in given.items():
        if key not in names:
            raise ValueError(f"kinds names {key!r}, which observed does not have; {remedy}.")
        if not isinstance(kind, str) or kind not in FAMILY_OF_KIND:
            raise ValueError(f"kinds gives {key!r} the kind {shown(kind)}; {remedy}.")
    return given


def _kind_of(column: Any, values: np.ndarray) -> str:
    """Return the kind of a column, whatever its type and whether entries are missing."""
    if categories_declared(column) is not None:
        return "category"
    numbers = _numbers_in(values)
    return "category" if numbers is None else _kind_of_numbers(numbers)


def _numbers_in(values: np.ndarray) -> np.ndarray | None:
    """Return the entries present if they are numbers or truth values, otherwise None."""
    if values.dtype.kind == "O":
        there = [value for value in values.flat if not is_missing(value)]
        if any(isinstance(value, str | bytes | complex) for value in there):
            return None
        try:
            return np.array([float(value) for value in there])
        except (TypeError, ValueError, OverflowError):
            return None
    if values.dtype.kind != "b" and not is_numeric(values):
        return None
    numbers = values.astype(np.float64)
    return numbers[~np.isnan(numbers)]


def _kind_of_numbers(numbers: np.ndarray) -> str:
    if not len(numbers) or (numbers < 0).any() or (numbers != np.floor(numbers)).any():
        return "numeric"
    if numbers.max() <= 1:
        return "binary"
    mean = numbers.mean()
    if mean > LARGE_MEAN:
        return "numeric"
    return "overdispersed" if numbers.var() > LARGE_DISPERSION * mean else "count"


def _in_words(columns: Mapping[str, Sequence[Any]]) -> str:
    each = []
    for kind, keys in columns.items():
        names = ", ".join(str(key) for key in keys[:_MOST_NAMED])
        more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
        each.append(f"{names}{more} as {kind} ({FAMILY_OF_KIND[kind].__name__})")
    return "; ".join(each)
