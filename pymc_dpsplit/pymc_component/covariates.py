"""Covariates of a `Component`: arrays, or ``pm.Data`` whose value may be replaced."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import as_floats
from pymc_dpsplit.components.data_reader import DataReader, is_data, is_variable

Held = np.ndarray | DataReader


def hold(name: str, covariate: Any) -> Held:
    """Return a covariate as an array, or a ``pm.Data`` with its reader.

    Parameters
    ----------
    name : str
    covariate : array-like or SharedVariable, shape (N, ...)

    Returns
    -------
    ndarray of float64, or DataReader

    Raises
    ------
    ValueError
        With one sentence that names the covariate.
    """
    if is_data(covariate):
        return DataReader(covariate, partial(_read_value, name))
    if is_variable(covariate):
        raise ValueError(
            f"covariate {name} is an expression of variables; give an array or pm.Data, and "
            "compute with it in the function of the component."
        )
    return _checked(name, covariate)


def present(held: Mapping[str, Held]) -> dict[str, np.ndarray]:
    """Return the covariates that are held, by name."""
    return {name: of.now() if isinstance(of, DataReader) else of for name, of in held.items()}


def shape_of_rows(n_rows: str, rest: tuple[int, ...]) -> str:
    """Return a shape in words, such as (M, 2)."""
    return f"({', '.join([n_rows, *map(str, rest)])}{',' * (not rest)})"


def _read_value(name: str, value: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    array = _checked(name, value)
    if before is not None and array.shape[1:] != before.shape[1:]:
        raise ValueError(
            f"covariate {name} has shape {array.shape} in its pm.Data; give shape "
            f"{shape_of_rows('M', before.shape[1:])}."
        )
    return array


def _checked(name: str, value: Any) -> np.ndarray:
    array = as_floats(name, value)
    if not array.ndim:
        raise ValueError(
            f"covariate {name} is a single number; give an array, a row for each row of the data."
        )
    return array
