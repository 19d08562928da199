"""Rows copied and added by loops.

In numba, assigning an array to a slice, concatenation, indexing by an array and sums of arrays
include broadcasting and its error messages, which take longer to compile than many moves.
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted


@jitted
def copy_row(source, target):
    """Write `source`, shape (n,), into the first elements of `target`."""
    for j in range(source.shape[0]):
        target[j] = source[j]


@jitted
def copy_rows(source, target):
    """Write `source`, shape (n, S), into the first rows of `target`, shape (any, S)."""
    for k in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[k, j] = source[k, j]


@jitted
def add_rows(source, target):
    """Add `source`, shape (n, S), to the first rows of `target`, shape (any, S)."""
    for k in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[k, j] += source[k, j]


@jitted
def sum_of_rows(matrix, a, b):
    """Sum of rows a and b, shape (S,): the sufficient statistics of two clusters merged.

    Parameters
    ----------
    matrix : ndarray of float64, shape (K, S)
    a, b : int

    Returns
    -------
    ndarray of float64, shape (S,)
    """
    total = np.empty(matrix.shape[1])
    for j in range(matrix.shape[1]):
        total[j] = matrix[a, j] + matrix[b, j]
    return total


@jitted
def first_column_sum(matrix):
    """Sum of the first column: the number of observations, if rows are sufficient statistics."""
    total = 0.0
    for k in range(matrix.shape[0]):
        total += matrix[k, 0]
    return total


@jitted
def lengthened(values, n_added):
    """Copy `values`, shape (n,), with zeros appended: shape (n + n_added,)."""
    longer = np.zeros(values.shape[0] + n_added, values.dtype)
    copy_row(values, longer)
    return longer


@jitted
def with_free_slots(slots):
    """Double the length of `slots`, shape (n,); the new slots, n .. 2 n - 1, are free."""
    longer = lengthened(slots, slots.shape[0])
    for q in range(slots.shape[0], longer.shape[0]):
        longer[q] = q
    return longer


@jitted
def with_more_rows(matrix, n_added):
    """Copy `matrix`, shape (n, S), with rows of zeros appended: shape (n + n_added, S)."""
    longer = np.zeros((matrix.shape[0] + n_added, matrix.shape[1]))
    copy_rows(matrix, longer)
    return longer
