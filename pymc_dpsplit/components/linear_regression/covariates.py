"""Covariates of a regression as users give them: an array, a frame or a DataArray."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import array_of, rows_of
from pymc_dpsplit.components.data_reader import DataReader, is_data, is_variable


def read_covariates(covariates: Any) -> np.ndarray:
    """Return a copy of covariates as an array.

    Parameters
    ----------
    covariates : array-like or frame, shape (N,) or (N, P)

    Returns
    -------
    ndarray of float64, shape (N, P)
        Read-only.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    if is_variable(covariates):
        raise ValueError(
            "covariates are an expression of variables; give an array or pm.Data, or leave "
            "covariates out, and observed=pm.math.concatenate([X, y[:, None]], axis=1)."
        )
    array, _ = array_of(covariates)
    row_ndim = 0 if getattr(array, "ndim", 0) == 1 else 1
    try:
        rows = np.array(rows_of(covariates, row_ndim), np.float64, order="C")
    except ValueError as error:
        # The checks are those of `observed`, whose name is in their messages.
        message = str(error).replace("observed has", "covariates have")
        raise ValueError(message.replace("observed is", "covariates are")) from None
    rows.flags.writeable = False
    return rows


def _read_value(value: np.ndarray, before: np.ndarray | None) -> np.ndarray:
    return read_covariates(value) if before is None else read_other(value, None, before.shape[1])


def held_covariates(covariates: Any) -> np.ndarray | DataReader:
    """Return covariates as an array, see `read_covariates`, or a ``pm.Data`` with its reader."""
    if is_data(covariates):
        return DataReader(covariates, _read_value)
    return read_covariates(covariates)


def present(held: np.ndarray | DataReader | None) -> np.ndarray:
    """Return the covariates (N, P) that are held."""
    if held is None:
        raise ValueError(
            "LinearRegression has no covariates to draw responses for; give "
            "LinearRegression(covariates, ...)."
        )
    return held.now() if isinstance(held, DataReader) else held


def read_other(covariates: Any, names: Sequence[Any] | None, n_covariates: int) -> np.ndarray:
    """Return other covariates (M, P) than those observed, see `read_covariates`.

    Parameters
    ----------
    covariates : array-like or frame, shape (M, P) or (M,)
    names : sequence, optional
        Columns of a frame are put in this order.
    n_covariates : int
        The number P.
    """
    columns = {str(name): name for name in getattr(covariates, "columns", [])}
    wanted = [str(name) for name in names or ()]
    # Names made for an array say nothing about the columns of a frame.
    made: tuple[list[str], ...] = (
        [],
        names_of(None, n_covariates),
        [str(j) for j in range(n_covariates)],
    )
    if columns and wanted not in made:
        absent = [name for name in wanted if name not in columns]
        if absent:
            raise ValueError(
                f"covariates have no column {absent[0]!r}, a covariate of the model; give a frame "
                f"with the columns {wanted}, or an array in that order."
            )
        covariates = covariates[[columns[name] for name in wanted]]
    x = read_covariates(covariates)
    if x.shape[1] != n_covariates:
        raise ValueError(
            f"covariates have shape {x.shape}, but there {'are' if n_covariates > 1 else 'is'} "
            f"{n_covariates} of them; give shape (M, {n_covariates})."
        )
    return x


def names_of(covariates: Any, n_covariates: int) -> list[str]:
    """Return the names of the columns of a frame or DataArray; ``x0``, ``x1``, ... without names.

    Parameters
    ----------
    covariates : array-like or frame, shape (N,) or (N, P)
    n_covariates : int
        Number of columns P.

    Returns
    -------
    list of str
        Distinct, and none of them ``"intercept"``; otherwise those of an array.
    """
    names = getattr(covariates, "columns", None)
    dims: Any = getattr(covariates, "dims", ())
    if names is None and len(dims) == 2 and dims[1] in covariates.coords:
        names = covariates.coords[dims[1]].values
    name = getattr(covariates, "name", None)
    if names is None and n_covariates == 1 and isinstance(name, str) and name:
        names = [name]
    found = [] if names is None else [str(name) for name in names]
    if len({*found, "intercept"}) == n_covariates + 1:
        return found
    return [f"x{j}" for j in range(n_covariates)]


def not_by_column() -> ValueError:
    """Return the error for rows of which some columns are missing."""
    return ValueError(
        "rows of LinearRegression have missing entries, but a response has no law without its "
        "covariates, nor have these; drop those rows or fill them in first."
    )
