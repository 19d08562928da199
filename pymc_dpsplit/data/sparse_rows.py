"""Sparse rows, of which only the non-zero entries are stored."""

from typing import NamedTuple

import numpy as np


class SparseRows(NamedTuple):
    """Rows (N, V) of whole numbers in compressed row storage; must not be modified.

    Attributes
    ----------
    indptr : ndarray of int64, shape (N + 1,)
        Row i has the entries indptr[i] to indptr[i + 1] - 1.
    indices : ndarray of int32, shape (M,)
        Column of each entry, ascending within a row.
    values : ndarray of int32, shape (M,)
        Non-zero entries.
    shape : tuple of int
        (N, V).
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    @property
    def parts(self) -> list[np.ndarray]:
        """Return the three arrays in order."""
        return [self.indptr, self.indices, self.values]


Rows = np.ndarray | SparseRows


def row_of_each(rows: SparseRows) -> np.ndarray:
    """Return the row (M,) of each entry."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def row_totals(rows: SparseRows) -> np.ndarray:
    """Return the sum (N,) of each row, as int64."""
    running = np.concatenate(([0], np.cumsum(rows.values, dtype=np.int64)))
    return running[rows.indptr[1:]] - running[rows.indptr[:-1]]


def column_totals(rows: SparseRows) -> np.ndarray:
    """Return the sum (V,) of each column, as float64."""
    return np.bincount(rows.indices, weights=rows.values, minlength=rows.shape[1])


def as_array(rows: SparseRows) -> np.ndarray:
    """Return the rows as a dense array of float64, shape (N, V)."""
    out = np.zeros(rows.shape)
    out[row_of_each(rows), rows.indices] = rows.values
    return out


def plain(rows: SparseRows) -> SparseRows:
    """Return the rows with arrays for kernels: read-only, and not of a subclass of ndarray.

    Parameters
    ----------
    rows : SparseRows

    Returns
    -------
    SparseRows
    """
    views = [part.view(np.ndarray) for part in rows.parts]
    for view in views:
        view.flags.writeable = False
    indptr, indices, values = views
    return SparseRows(indptr, indices, values, rows.shape)
