"""Conversion of the argument `a0` of `Categorical` to an array of weights (D, C)."""

from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import as_floats, shape_given, shown


def counts_of_categories(a0: Any, n_features: int) -> np.ndarray | None:
    """Return the number of categories of each column, if `a0` determines it.

    Parameters
    ----------
    a0 : number, array, list of vectors, or symbolic tensor
    n_features : int

    Returns
    -------
    ndarray of int64, shape (D,), or None
        None if `a0` is a number, which fits any number of categories.

    Raises
    ------
    ValueError
        If `a0` is a variable of unknown shape, or not weights, see `weights_by_column`.
    """
    symbolic: Any = getattr(a0, "type", None)
    if hasattr(symbolic, "shape"):
        shape = symbolic.shape
        if all(length == 1 for length in shape):
            return None
        if shape[-1] is None:
            raise ValueError(
                f"a0={a0} is a variable of shape {shape}; give a scalar, or a variable whose "
                "number of categories is known when it is declared."
            )
        return np.full(n_features, shape[-1])
    if _as_table(a0).ndim == 0:
        return None
    return np.count_nonzero(weights_by_column(a0, n_features, None), axis=1)


def shape_of_weights(a0: Any) -> tuple[int | None, ...]:
    """Shape of `a0` as an array; None where that of a variable is not known."""
    if hasattr(getattr(a0, "type", None), "shape"):
        return shape_given("a0", a0)
    return _as_table(a0).shape


def weights_by_column(a0: Any, n_features: int, n_categories: np.ndarray | None) -> np.ndarray:
    """Check weights of categories and convert them to an array.

    Parameters
    ----------
    a0 : number, array (C,) or (D, C), or list of D vectors
    n_features : int
    n_categories : ndarray of int64, shape (D,), optional
        Number of categories of each column, if known.

    Returns
    -------
    ndarray of float64, shape (D, C)
        Zero for categories that a column does not have.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    table = _as_table(a0)
    if table.ndim == 0:
        if n_categories is None:
            raise ValueError(
                f"a0={shown(a0)} is one number, and the number of categories is not known; "
                "give a vector for each column."
            )
        table = np.full((n_features, int(n_categories.max())), table)
    elif table.ndim == 1:
        table = np.tile(table, (n_features, 1))
    if table.ndim != 2 or table.shape[0] != n_features or table.shape[1] == 0:
        raise ValueError(
            f"a0 has shape {table.shape}, but the data have {n_features} "
            f"column{'s' if n_features > 1 else ''}; give a number, or a vector of weights for "
            "each column."
        )
    table = without_absent(table, n_categories)
    is_there = np.arange(table.shape[1]) < np.count_nonzero(table, axis=1)[:, None]
    if not (table[:, 0] > 0).all() or not (table[is_there] > 0).all():
        raise ValueError(f"a0={shown(a0)} must be positive; give numbers above 0.")
    return table


def without_absent(table: np.ndarray, n_categories: np.ndarray | None) -> np.ndarray:
    """Copy weights (D, C), with zeros for categories that a column does not have.

    Weights that contain zeros mark absent categories already and are copied unchanged.
    """
    table = np.array(table, np.float64)
    if n_categories is not None and len(n_categories) == len(table) and table.all():
        table[np.arange(table.shape[1]) >= n_categories[:, None]] = 0.0
    return table


def _as_table(a0: Any) -> np.ndarray:
    """Return numbers as an array, with vectors of different lengths padded by zeros."""
    if isinstance(a0, list | tuple):
        vectors = [as_floats("a0", of) for of in a0]
        if all(of.ndim == 1 for of in vectors):
            table = np.zeros((len(vectors), max((len(of) for of in vectors), default=0)))
            for row, of in zip(table, vectors, strict=True):
                row[: len(of)] = of
            return table
    return as_floats("a0", a0)
