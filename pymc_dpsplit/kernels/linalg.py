"""Small dense linear algebra on lower triangles; all of it in place, none of it raises."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.products import AT_ONCE, add_product

# Rows from which on a factor by blocks is faster.
_LEAST_BLOCKED = 16


@kernel
def cholesky_inplace(a, floor):
    """Overwrite the lower triangle of `a` by its Cholesky factor.

    `floor[j]` is a known lower bound of the j-th squared pivot; a pivot that rounding has
    pushed below it is raised to it.  For a = psi0 + (positive semidefinite), the squared
    pivots of psi0 are such bounds (Schur complements are monotone in the Loewner order), so
    the factor exists whatever has cancelled in the scatter.

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


@kernel
def _raised_root(pivot, floor):
    return math.sqrt(pivot if pivot > floor else floor)


@kernel
def _factorise_by_columns(a, floor):
    n = a.shape[0]
    column = np.empty(n)
    for j in range(n):
        root = _raised_root(a[j, j], floor[j])
        a[j, j] = root
        for i in range(j + 1, n):
            a[i, j] /= root
            column[i] = a[i, j]
        # What is left shrinks at once, along its rows: that vectorises, inner products do not.
        for i in range(j + 1, n):
            factor = column[i]
            for m in range(j + 1, i + 1):
                a[i, m] -= factor * column[m]


@kernel
def _factorise_by_blocks(a, floor):
    """Subtract from a block of rows what all before it take at once; the factor is the same."""
    n = a.shape[0]
    # The factor transposed: what is subtracted from a row then lies in rows.
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


@kernel
def invert_lower(lower, out):
    """Write the inverse of the lower triangle of `lower` (D, D) into `out`, and zeros above it."""
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


@kernel
def log_diagonal_sum(a):
    """Sum of the logarithms of the diagonal of `a`."""
    total = 0.0
    for j in range(a.shape[0]):
        total += math.log(a[j, j])
    return total


@kernel
def rank_one_inplace(lower, x, sign):
    """Update the Cholesky factor of A to that of A + sign * x x'; return whether it exists.

    `x` is overwritten.  O(D^2) by Givens (sign = 1) or hyperbolic (sign = -1) rotations
    (Golub & Van Loan, Matrix Computations, section 6.5.4; Das 2014, eq. 15-16).  On False the
    factor is spoilt and must be computed afresh.

    Parameters
    ----------
    lower : ndarray of float64, shape (D, D)
    x : ndarray of float64, shape (D,)
    sign : float
        1.0 or -1.0.
    """
    n = lower.shape[0]
    for j in range(n):
        squared = lower[j, j] * lower[j, j] + sign * x[j] * x[j]
        if not squared > 0.0:
            return False
        r = math.sqrt(squared)
        c = r / lower[j, j]
        s = x[j] / lower[j, j]
        lower[j, j] = r
        for i in range(j + 1, n):
            lower[i, j] = (lower[i, j] + sign * s * x[i]) / c
            x[i] = c * x[i] - s * lower[i, j]
    return True


@kernel
def squared_solve(lower, x):
    """Squared norm of lower^-1 x; `x` is overwritten by the solution."""
    total = 0.0
    for i in range(lower.shape[0]):
        s = x[i]
        for m in range(i):
            s -= lower[i, m] * x[m]
        s /= lower[i, i]
        x[i] = s
        total += s * s
    return total
