"""Small dense linear algebra on lower triangles, in place and without exceptions."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_copied
from pymc_dpsplit.kernels.products import AT_ONCE, add_product

# Number of rows from which the blocked factorisation is faster.
_LEAST_BLOCKED = 16
# A product of numbers between them and one more pivot is in the range of float64.
_SMALL, _LARGE = 1e-60, 1e60


@jitted
def cholesky_inplace(a, floor):
    """Overwrite the lower triangle of `a` by its Cholesky factor.

    `floor[j]` is a known lower bound of the j-th squared pivot; a pivot that falls below it by
    rounding is raised to it.  For a = psi0 + (positive semidefinite), the squared pivots of psi0
    are such bounds (Schur complements are monotone in the Loewner order), so the factor exists for
    any cancellation in the scatter.

    Parameters
    ----------
    a : ndarray of float64, shape (D, D)
        Symmetric; only the lower triangle is read and written.
    floor : ndarray of float64, shape (D,)
    """
    if a.shape[0] < _LEAST_BLOCKED:
        _factorise_by_columns(a, floor)
    else:
        _factorise_by_blocks(a, floor)


@jitted
def _raised_root(pivot, floor):
    return math.sqrt(pivot if pivot > floor else floor)


@jitted
def _factorise_by_columns(a, floor):
    n = a.shape[0]
    column = np.empty(n)
    for j in range(n):
        root = _raised_root(a[j, j], floor[j])
        a[j, j] = root
        for i in range(j + 1, n):
            a[i, j] /= root
            column[i] = a[i, j]
        # The remaining triangle is updated by rows: this vectorises, inner products do not.
        for i in range(j + 1, n):
            factor = column[i]
            for m in range(j + 1, i + 1):
                a[i, m] -= factor * column[m]


@jitted
def _factorise_by_blocks(a, floor):
    """Factorise in blocks of rows; all previous rows are subtracted from a block at once."""
    n = a.shape[0]
    # The transposed factor, so that the terms subtracted from a row lie in rows.
    upper = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            upper[j, i] = a[i, j]
    for first in range(0, n, AT_ONCE):
        last = min(first + AT_ONCE, n)
        if first > 0:
            add_product(-1.0, a, upper, (first, last), first, (first, n), upper)
        for j in range(first, last):
            for m in range(first, j):
                factor = a[j, m]
                for i in range(j, n):
                    upper[j, i] -= factor * upper[m, i]
            root = _raised_root(upper[j, j], floor[j])
            a[j, j] = root
            for i in range(j + 1, n):
                upper[j, i] /= root
                a[i, j] = upper[j, i]


@jitted
def invert_lower(lower, out):
    """Write the inverse of a lower triangular matrix.

    Parameters
    ----------
    lower : ndarray of float64, shape (D, D)
    out : ndarray of float64, shape (D, D)
        Overwritten; zero above the diagonal.
    """
    n = lower.shape[0]
    out[:] = 0.0
    for first in range(0, n, AT_ONCE):
        last = min(first + AT_ONCE, n)
        if first > 0:
            add_product(-1.0, lower, out, (first, last), first, (0, first), out)
        for i in range(first, last):
            for m in range(first, i):
                factor = lower[i, m]
                for b in range(m + 1):
                    out[i, b] -= factor * out[m, b]
            for b in range(i):
                out[i, b] /= lower[i, i]
            out[i, i] = 1.0 / lower[i, i]


@jitted
def log_diagonal_sum(a):
    """Sum of the logarithms of the diagonal of `a`, whose elements are positive."""
    total, product = 0.0, 1.0
    for j in range(a.shape[0]):
        product *= a[j, j]
        # A logarithm costs as much as several products.
        if not _SMALL < product < _LARGE:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@jitted_copied
def add_rank_one(lower, x):
    """Update the Cholesky factor of A to that of A + x x', by Givens rotations.

    O(D^2) (Golub & Van Loan, Matrix Computations, section 6.5.4; Das 2014, eq. 15).  However long
    x is, each element is as exact as its row of A and x allow.

    Parameters
    ----------
    lower : ndarray of float64, shape (D, D)
        Overwritten.
    x : ndarray of float64, shape (D,)
        Overwritten.
    """
    n = lower.shape[0]
    for j in range(n):
        r = math.sqrt(lower[j, j] * lower[j, j] + x[j] * x[j])
        c, s = lower[j, j] / r, x[j] / r
        lower[j, j] = r
        for i in range(j + 1, n):
            before = lower[i, j]
            lower[i, j] = c * before + s * x[i]
            x[i] = c * x[i] - s * before


@jitted_copied
def remove_rank_one(lower, x):
    """Update the Cholesky factor of A to that of A - x x'; return whether it exists.

    O(D^2) by hyperbolic rotations (Golub & Van Loan, Matrix Computations, section 6.5.4; Das
    2014, eq. 16).  On False the factor is spoilt and must be computed afresh.

    Parameters
    ----------
    lower : ndarray of float64, shape (D, D)
        Overwritten.
    x : ndarray of float64, shape (D,)
        Overwritten by numbers of no meaning.

    Returns
    -------
    bool
    """
    n = lower.shape[0]
    for j in range(n):
        squared = lower[j, j] * lower[j, j] - x[j] * x[j]
        if not squared > 0.0:
            return False
        r = math.sqrt(squared)
        c, inverse = r / lower[j, j], lower[j, j] / r
        s = x[j] / lower[j, j]
        lower[j, j] = r
        for i in range(j + 1, n):
            lower[i, j] = (lower[i, j] - s * x[i]) * inverse
            x[i] = c * x[i] - s * lower[i, j]
    return True


@jitted_copied
def squared_solve(lower, x):
    """Squared norm of lower^-1 x.

    Parameters
    ----------
    lower : ndarray of float64, shape (D, D)
    x : ndarray of float64, shape (D,)
        Overwritten by the solution.

    Returns
    -------
    float
    """
    total = 0.0
    for i in range(lower.shape[0]):
        s = x[i]
        for m in range(i):
            s -= lower[i, m] * x[m]
        s /= lower[i, i]
        x[i] = s
        total += s * s
    return total
