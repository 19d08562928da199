"""Digits of a running sum that are left after removals."""

from pymc_dpsplit.kernels.jit import jitted_inlined

# If removals leave less than this fraction of a sum, half of its digits are lost.
LEAST_KEPT = 1e-8


@jitted_inlined
def keeps_digits(cache, at, kept):
    """Return whether a removal leaves enough digits of a sum, and keep account of it.

    Parameters
    ----------
    cache : ndarray of float64
        Element `at` is the relative precision that is left after all removals, at first 1; updated.
    at : int
    kept : float
        Fraction of the sum that this removal leaves.

    Returns
    -------
    bool
        False if the sum must be computed anew.
    """
    if not kept > LEAST_KEPT:
        return False
    # Cancellation accumulates: a later removal can amplify the rounding error of an earlier one.
    cache[at] *= kept
    return cache[at] >= LEAST_KEPT
