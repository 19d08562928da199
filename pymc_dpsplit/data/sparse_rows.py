"""Rows of which only the numbers that are not zero are stored."""

from typing import NamedTuple

import numpy as np


class SparseRows(NamedTuple):
    """Rows (N, V) of whole numbers, compressed row by row; nobody writes to them.

    Attributes
    ----------
    indptr : ndarray of int64, shape (N + 1,)
        Row i has the entries indptr[i] to indptr[i + 1] - 1.
    indices : ndarray of int32, shape (M,)
        Column of each entry, ascending within a row.
    values : ndarray of int32, shape (M,)
        None is zero.
    shape : tuple of int
        (N, V), as of an array.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    @property
    def parts(self) -> list[np.ndarray]:
        """The arrays, in order."""
        return [self.indptr, self.indices, self.values]


Rows = np.ndarray | SparseRows


def row_of_each(rows: SparseRows) -> np.ndarray:
    """Row (M,) to which each entry belongs."""
    return np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))


def row_totals(rows: SparseRows) -> np.ndarray:
    """Sum (N,) of each row, as int64."""
    running = np.concatenate(([0], np.cumsum(rows.values, dtype=np.int64)))
    return running[rows.indptr[1:]] - running[rows.indptr[:-1]]


def column_totals(rows: SparseRows) -> np.ndarray:
    """Sum (V,) of each column, as float64."""
    return np.bincount(rows.indices, weights=rows.values, minlength=rows.shape[1])


def as_array(rows: SparseRows) -> np.ndarray:
    """Write the zeros out: an array of float64, shape (N, V)."""
    out = np.zeros(rows.shape)
    out[row_of_each(rows), rows.indices] = rows.values
    return out


def plain(rows: SparseRows) -> SparseRows:
    """Return the rows with arrays as kernels take them: not of a subclass, not to be written to."""
    views = [part.view(np.ndarray) for part in rows.parts]
    for view in views:
        view.flags.writeable = False
    indptr, indices, values = views
    return SparseRows(indptr, indices, values, rows.shape)
