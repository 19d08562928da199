"""What is computed of observations block by block, so that no array as large as they is made.

Sums are made in float64 whatever the type of the observations: the same numbers in float32 and
in float64 give the same results, bit for bit.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pymc_dpsplit.data.sparse_rows import Rows, SparseRows, column_totals

# Numbers in a block: little beside data that fill the memory, much beside the cost of a call.
_BLOCK_SIZE = 2**18


def blocks_of(shape: tuple[int, ...], multiple: int = 1) -> Iterator[slice]:
    """Slices of rows, in order, that make up an array.

    Parameters
    ----------
    shape : tuple of int
        Of the array; (N, ...).
    multiple : int
        All slices but the last have a multiple of so many rows.

    Yields
    ------
    slice
    """
    numbers = int(np.prod(shape[1:], dtype=np.int64))
    step = max(1, _BLOCK_SIZE // max(1, numbers * multiple)) * multiple
    for first in range(0, shape[0], step):
        yield slice(first, min(first + step, shape[0]))


def blocks_as_floats(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks of rows (N, D), in order, as float64 (n, D)."""
    for block in blocks_of(rows.shape):
        yield np.asarray(rows[block], dtype=np.float64)


def column_means(rows: Rows) -> np.ndarray:
    """Mean (D,) of each column of rows (N, D), in float64."""
    if isinstance(rows, SparseRows):
        return column_totals(rows) / rows.shape[0]
    total = np.zeros(rows.shape[1])
    for block in blocks_as_floats(rows):
        total += block.sum(0)
    return total / len(rows)


def count_where(is_such: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> int:
    """Count the entries of rows (N, D) of which a function of arrays is true."""
    return sum(int(np.count_nonzero(is_such(rows[block]))) for block in blocks_of(rows.shape))


def holes_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row and feature of each NaN in rows (N, D), row by row: two ndarrays of int64 (M,)."""
    found = []
    for block in blocks_of(rows.shape):
        where, features = np.nonzero(np.isnan(rows[block]))
        found.append((where + block.start, features))
    where, features = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return where, features


def moments_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the entries present in each column.

    Columns that do not vary get a positive variance, that of another column or 1.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.

    Returns
    -------
    mean, variance : ndarrays of float64, shape (D,)

    Raises
    ------
    ValueError
        If a column has no entry.
    """
    n_present = _sum_over(rows, lambda block: ~np.isnan(block))
    empty = np.flatnonzero(n_present == 0)
    if len(empty):
        raise ValueError(
            f"observed has no entry in column {empty[0]}, so its scale is not known; leave the "
            "column out, or give the hyperparameters yourself."
        )
    mean = _sum_over(rows, np.nan_to_num) / n_present
    variance = _sum_over(rows, lambda block: np.nan_to_num((block - mean) ** 2)) / n_present
    lowest, highest = _range_of(rows)
    # The variance of equal numbers, as computed, may be a rounding error above zero.
    varies = (highest > lowest) & (variance > 0)
    stand_in = variance[varies].min() if varies.any() else 1.0
    return mean, np.where(varies, variance, stand_in)


def highest_of(rows: np.ndarray) -> np.ndarray:
    """Largest entry (D,) of each column of rows (N, D), NaN left out; -inf where all are NaN."""
    return _range_of(rows)[1]


def _sum_over(rows: np.ndarray, term: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Sum (D,) over rows of a function of blocks."""
    total = np.zeros(rows.shape[1])
    for block in blocks_as_floats(rows):
        total += term(block).sum(0)
    return total


def _range_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest entry (D,) of each column, NaN left out."""
    lowest = np.full(rows.shape[1], np.inf)
    highest = -lowest
    for block in blocks_of(rows.shape):
        lowest = np.fmin(lowest, np.fmin.reduce(rows[block], axis=0))
        highest = np.fmax(highest, np.fmax.reduce(rows[block], axis=0))
    return lowest, highest
