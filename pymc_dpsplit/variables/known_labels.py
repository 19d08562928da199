"""The argument `labels` of a mixture: labels of rows of which some are known."""

from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import array_of, is_integer
from pymc_dpsplit.components.shared_labels.items import SharedLabels

UNKNOWN = -1
_REMEDY = f"give whole numbers from 0, and {UNKNOWN} for rows whose label is unknown"


def checked_known_labels(labels: Any, n_rows: int) -> np.ndarray:
    """Check the labels of rows, and return them as integers.

    Parameters
    ----------
    labels : array-like of int, shape (N,)
        -1 for unknown.
    n_rows : int
        Number of rows N.

    Returns
    -------
    ndarray of int64, shape (N,)

    Raises
    ------
    ValueError
        If they are no whole numbers from 0, or -1, or if there is not one for each row.
    """
    given, fault = array_of(labels)
    if fault:
        raise ValueError(f"labels {fault}; {_REMEDY}.")
    given = np.asarray(given)
    if given.dtype.kind == "O" and all(map(is_integer, given.flat)):
        given = given.astype(np.int64)  # of a nullable type of pandas
    if given.dtype.kind not in "iuf":
        raise ValueError(f"labels is of type {given.dtype}; {_REMEDY}.")
    if given.shape != (n_rows,):
        raise ValueError(
            f"labels has shape {given.shape}, but observed has {n_rows} rows; give one for each, "
            f"{UNKNOWN} where it is unknown."
        )
    is_label = (given >= UNKNOWN) & (given <= np.iinfo(np.int64).max // 2)
    wrong = np.flatnonzero(~is_label | (given != np.rint(given)))
    if len(wrong):
        raise ValueError(f"labels has {given[wrong[0]]:g} in row {wrong[0]}; {_REMEDY}.")
    return given.astype(np.int64)


def rows_of_known_labels(known: np.ndarray) -> SharedLabels | None:
    """Group the rows of each known label; other rows are by themselves.

    Parameters
    ----------
    known : ndarray of int64, shape (N,)
        -1 for unknown.

    Returns
    -------
    SharedLabels or None
        None if no two rows are together.
    """
    ids = np.where(known == UNKNOWN, -1 - np.arange(len(known)), known)
    _, first, position = np.unique(ids, return_index=True, return_inverse=True)
    if len(first) == len(known):
        return None
    order = np.argsort(first)
    numbers = np.argsort(order)[position.reshape(-1)].astype(np.int64)
    return SharedLabels(numbers, np.ones(len(known)), known=known)
