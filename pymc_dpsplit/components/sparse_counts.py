"""Conversion of counts from a SciPy sparse matrix or an array to `SparseRows`."""

from typing import Any

import numpy as np
import scipy

from pymc_dpsplit.data.blocks import blocks_of
from pymc_dpsplit.data.sparse_rows import Rows, SparseRows, plain, row_of_each, row_totals

# Kernels read counts as int32.
MOST = 2**31 - 1
# From here on two terms of a series give all digits of what is left of a log factorial.
_MANY = 256.0


def is_sparse(observed: Any) -> bool:
    """Return whether a value is a sparse matrix or array of SciPy, of any format."""
    return bool(scipy.sparse.issparse(observed))


def rows_of_sparse(observed: Any) -> SparseRows:
    """Check a sparse matrix of counts and convert it to compressed rows.

    Parameters
    ----------
    observed : SciPy sparse matrix or array, shape (N, V)

    Returns
    -------
    SparseRows
        A copy, with duplicate entries summed and zeros omitted.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    if observed.ndim != 2 or 0 in observed.shape:
        raise ValueError(
            f"observed is sparse of shape {observed.shape}; give a matrix (N, V) of at least one "
            "row and one column."
        )
    if observed.dtype.kind not in "biuf":
        raise ValueError(
            f"observed is sparse of dtype {observed.dtype}, which is not numeric; give counts, "
            "whole numbers from 0."
        )
    rows = scipy.sparse.csr_array(observed, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    _refuse_entries(rows)
    rows.eliminate_zeros()
    n_rows, n_columns = rows.shape
    return plain(
        SparseRows(
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int32),
            rows.data.astype(np.int32),
            (int(n_rows), int(n_columns)),
        )
    )


def _refuse_entries(rows: Any) -> None:
    values = rows.data
    n_missing = int(np.isnan(values).sum())
    if n_missing:
        raise ValueError(
            f"observed has {n_missing} NaN entr{'y' if n_missing == 1 else 'ies'}, which nobody "
            "can impute here; drop those rows or fill them in first."
        )
    wrong = np.flatnonzero((values < 0) | (values != np.floor(values)) | (values > MOST))
    if len(wrong):
        value, column = values[wrong[0]], rows.indices[wrong[0]]
        raise ValueError(
            f"observed has {value:g} in column {column}; give counts, whole numbers from 0 to "
            f"{MOST}."
        )


def is_no_count(values: np.ndarray) -> np.ndarray:
    """Return where numbers are not counts, that is, whole numbers from 0 to `MOST`."""
    return (values < 0) | (values > MOST) | (values != np.floor(values))


def compressed(rows: Rows) -> tuple[SparseRows, np.ndarray]:
    """Compress rows, and return which of them contain entries that are not counts.

    Parameters
    ----------
    rows : SparseRows, or ndarray of float64 or float32, shape (N, V)

    Returns
    -------
    SparseRows
        The counts; other entries are omitted.
    is_wrong : ndarray of bool, shape (N,)
    """
    if isinstance(rows, SparseRows):
        return plain(rows), np.zeros(rows.shape[0], bool)
    is_wrong = np.zeros(len(rows), bool)
    lengths, indices, values = [], [], []
    for block in blocks_of(rows.shape):
        wrong = is_no_count(rows[block])
        is_wrong[block] = wrong.any(1)
        kept = np.where(wrong, 0.0, rows[block])
        lengths.append(np.count_nonzero(kept, axis=1))
        _, columns = np.nonzero(kept)
        indices.append(columns.astype(np.int32))
        values.append(kept[kept != 0].astype(np.int32))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(lengths)))).astype(np.int64)
    found = SparseRows(indptr, np.concatenate(indices), np.concatenate(values), rows.shape)
    return plain(found), is_wrong


def log_coefficients(rows: SparseRows) -> np.ndarray:
    """Return the log multinomial coefficient log n! - sum(log x!) of each row.

    Parameters
    ----------
    rows : SparseRows

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    totals, row_of = row_totals(rows), row_of_each(rows)
    # Entropies, as differences of log factorials of large counts lose digits.
    x, total = rows.values, totals[row_of]
    is_most = 2.0 * x > total
    few = np.where(is_most | (x == 0.0), 1.0, x / np.maximum(total, 1.0))
    log_share = scipy.special.xlogy(1.0, few)  # NaN for entries that are no counts
    log_share += np.log1p(np.where(is_most, (x - total) / np.maximum(total, 1.0), 0.0))
    own = x * log_share + _factorial_rest(x)
    return _factorial_rest(totals) - np.bincount(row_of, own, minlength=rows.shape[0])


def _factorial_rest(n: np.ndarray) -> np.ndarray:
    """Return log n! - n log n + n, whose terms cancel for large n, for whole numbers n."""
    n = np.asarray(n, np.float64)
    exact = scipy.special.gammaln(n + 1.0) - scipy.special.xlogy(n, n) + n
    many = np.maximum(n, _MANY)
    series = 0.5 * np.log(2.0 * np.pi * many) + (1.0 - 1.0 / (30.0 * many**2)) / (12.0 * many)
    return np.where(n < _MANY, exact, series)
