"""Computations on observations block by block, without temporary arrays of their size.

Sums are computed in float64 for every type of observations: the same numbers in float32 and in
float64 give bit-identical results.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pymc_dpsplit.data.fixed_rows import FixedRows
from pymc_dpsplit.data.sparse_rows import Rows, SparseRows, column_totals

# Elements in a block: few relative to the memory, many relative to the overhead of a call.
_BLOCK_SIZE = 2**18
# Distance of mean and median, in interquartile ranges, from which the mean is no centre: a
# millionth of the digits is lost by then.
_FAR = 10.0
_MOST_RANKED = 10_000


def blocks_of(shape: tuple[int, ...], multiple: int = 1) -> Iterator[slice]:
    """Iterate over slices of rows that partition an array.

    Parameters
    ----------
    shape : tuple of int
        Shape (N, ...) of the array.
    multiple : int
        The number of rows of every slice but the last is a multiple of it.

    Yields
    ------
    slice
    """
    numbers = int(np.prod(shape[1:], dtype=np.int64))
    step = max(1, _BLOCK_SIZE // max(1, numbers * multiple)) * multiple
    for first in range(0, shape[0], step):
        yield slice(first, min(first + step, shape[0]))


def blocks_as_floats(rows: np.ndarray) -> Iterator[np.ndarray]:
    """Iterate over blocks of rows (N, D), as float64 (n, D)."""
    for block in blocks_of(rows.shape):
        yield np.asarray(rows[block], dtype=np.float64)


def column_means(rows: Rows) -> np.ndarray:
    """Return the mean (D,) of each column of rows (N, D), in float64.

    Parameters
    ----------
    rows : SparseRows, or ndarray of float64 or float32, shape (N, D)

    Returns
    -------
    ndarray of float64, shape (D,)
    """
    if isinstance(rows, SparseRows):
        return column_totals(rows) / rows.shape[0]
    total = np.zeros(rows.shape[1])
    for block in blocks_as_floats(rows):
        total += block.sum(0)
    return total / len(rows)


def column_centres(rows: Rows) -> np.ndarray:
    """Centre (D,) of the bulk of each column: its mean, or its median if they are far apart.

    A few huge entries move the mean so far that centred numbers keep few digits of the others.
    Quartiles are those of at most some 10,000 rows, evenly spread.  Rows that cannot change
    remember their centre, for functions that read every draw of a trace.

    Parameters
    ----------
    rows : SparseRows, or ndarray of float64 or float32, shape (N, D)
        Without NaN.

    Returns
    -------
    ndarray of float64, shape (D,)
    """
    if not isinstance(rows, FixedRows):
        return _centres(rows)
    if rows.centres is None:
        rows.centres = _centres(rows)
    return rows.centres.copy()


def _centres(rows: Rows) -> np.ndarray:
    """Compute the result of `column_centres`."""
    means = column_means(rows)
    if isinstance(rows, SparseRows):
        return means
    lower, median, upper = quartiles_of(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        is_far = ~(np.abs(means - median) <= _FAR * (upper - lower))
    return np.where(is_far, median, means)


def quartiles_of(rows: np.ndarray) -> np.ndarray:
    """Quartiles (3, D) of each column of rows (N, D), NaN left out, of at most some 10,000 rows."""
    some = np.asarray(rows[:: max(1, len(rows) // _MOST_RANKED)], dtype=np.float64)
    if np.isnan(some).any():
        return _ranked(np.nanquantile, some)
    return _ranked(np.quantile, some)


def _ranked(quantile: Callable[..., np.ndarray], rows: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column may hold nothing but NaN
        return quantile(rows, [0.25, 0.5, 0.75], axis=0, method="closest_observation")


def count_where(is_such: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> int:
    """Count the entries of rows (N, D) for which an array predicate is true."""
    return sum(int(np.count_nonzero(is_such(rows[block]))) for block in blocks_of(rows.shape))


def missing_index_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and feature of each NaN, in C order.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)

    Returns
    -------
    row, feature : ndarrays of int64, shape (M,)
    """
    found = []
    for block in blocks_of(rows.shape):
        where, features = np.nonzero(np.isnan(rows[block]))
        found.append((where + block.start, features))
    where, features = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return where, features


def moments_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and variance of the observed entries of each column.

    The variance of a constant column is replaced by a positive one, of another column or 1.

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
        If a column has no observed entry.
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
    lowest, highest = range_of(rows)
    # Rounding may give equal numbers a small positive variance.
    varies = (highest > lowest) & (variance > 0)
    stand_in = variance[varies].min() if varies.any() else 1.0
    return mean, np.where(varies, variance, stand_in)


def highest_of(rows: np.ndarray) -> np.ndarray:
    """Return the largest entry (D,) of each column without NaN, -inf if all entries are NaN."""
    return range_of(rows)[1]


def _sum_over(rows: np.ndarray, term: Callable[[np.ndarray], Any]) -> np.ndarray:
    """Return the sum (D,) over rows of a function of blocks."""
    total = np.zeros(rows.shape[1])
    for block in blocks_as_floats(rows):
        total += term(block).sum(0)
    return total


def range_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest entry (D,) of each column, without NaN.

    They are inf and -inf if all entries are NaN.
    """
    lowest = np.full(rows.shape[1], np.inf)
    highest = -lowest
    for block in blocks_of(rows.shape):
        lowest = np.fmin(lowest, np.fmin.reduce(rows[block], axis=0))
        highest = np.fmax(highest, np.fmax.reduce(rows[block], axis=0))
    return lowest, highest
