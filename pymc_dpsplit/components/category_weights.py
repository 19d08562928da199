"""The argument `beta` of `Categorical`: weights of the categories of each column, as one array."""

from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import as_floats, shown


def counts_of_categories(beta: Any, n_features: int) -> np.ndarray | None:
    """Return the number of categories of each column, if `beta` says it.

    Parameters
    ----------
    beta : number, array, list of vectors, or symbolic tensor
    n_features : int

    Returns
    -------
    ndarray of int64, shape (D,), or None
        None if `beta` is a number, which serves any number of categories.

    Raises
    ------
    ValueError
        If it is a variable that does not say it, or not weights, see `weights_by_column`.
    """
    symbolic: Any = getattr(beta, "type", None)
    if hasattr(symbolic, "shape"):
        shape = symbolic.shape
        if all(length == 1 for length in shape):
            return None
        if shape[-1] is None:
            raise ValueError(
                f"beta={beta} is a variable of shape {shape}; give a scalar, or a variable whose "
                "number of categories is known when it is declared."
            )
        return np.full(n_features, shape[-1])
    if _as_table(beta).ndim == 0:
        return None
    return np.count_nonzero(weights_by_column(beta, n_features, None), axis=1)


def weights_by_column(beta: Any, n_features: int, n_categories: np.ndarray | None) -> np.ndarray:
    """Check weights of categories.

    Parameters
    ----------
    beta : number, array (C,) or (D, C), or list of D vectors
    n_features : int
    n_categories : ndarray of int64, shape (D,), optional
        Number of categories of each column, where it is known.

    Returns
    -------
    ndarray of float64, shape (D, C)
        Zero where a column has no such category.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    table = _as_table(beta)
    if table.ndim == 0:
        if n_categories is None:
            raise ValueError(
                f"beta={shown(beta)} is one number, and the number of categories is not known; "
                "give a vector for each column."
            )
        table = np.full((n_features, int(n_categories.max())), table)
    elif table.ndim == 1:
        table = np.tile(table, (n_features, 1))
    if table.ndim != 2 or table.shape[0] != n_features or table.shape[1] == 0:
        raise ValueError(
            f"beta has shape {table.shape}, but the data have {n_features} "
            f"column{'s' if n_features > 1 else ''}; give a number, or a vector of weights for "
            "each column."
        )
    table = without_absent(table, n_categories)
    is_there = np.arange(table.shape[1]) < np.count_nonzero(table, axis=1)[:, None]
    if not (table[:, 0] > 0).all() or not (table[is_there] > 0).all():
        raise ValueError(f"beta={shown(beta)} must be positive; give numbers above 0.")
    return table


def without_absent(table: np.ndarray, n_categories: np.ndarray | None) -> np.ndarray:
    """Copy weights (D, C), with zeros where a column has no such category.

    Weights that hold zeros are those of some columns alone, and have them where they belong.
    """
    table = np.array(table, np.float64)
    if n_categories is not None and len(n_categories) == len(table) and table.all():
        table[np.arange(table.shape[1]) >= n_categories[:, None]] = 0.0
    return table


def _as_table(beta: Any) -> np.ndarray:
    """Return numbers as an array; vectors of different lengths are continued by zeros."""
    if isinstance(beta, list | tuple) and all(np.ndim(of) == 1 for of in beta):
        vectors = [as_floats("beta", of) for of in beta]
        table = np.zeros((len(vectors), max((len(of) for of in vectors), default=0)))
        for row, of in zip(table, vectors, strict=True):
            row[: len(of)] = of
        return table
    return as_floats("beta", beta)
