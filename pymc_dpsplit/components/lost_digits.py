"""Entries that float64 does not hold beside others, or squared, and counts that cancel."""

import math

import numpy as np

from pymc_dpsplit.data.blocks import quartiles_of, range_of

# Larger counts have Poisson log densities of less than nine digits: their terms cancel.
PRECISE_POISSON_COUNT = 1e6

_EPSILON = float(np.finfo(np.float64).eps)
# Between quartiles.  Squares are held up to 1e154; the rest is for clusters far wider than the
# data, such as those of a prior with heavy tails, whose precisions are held as well.
_MOST_SPREAD = 1e120


def warning_of_lost_digits(rows: np.ndarray, most_precise_count: float | None) -> str | None:
    """Say in one sentence which entry costs digits, None if there is no such entry.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    most_precise_count : float, optional
        Counts above it are named; None for entries that are no counts.

    Raises
    ------
    ValueError
        If the quartiles of a column are so far apart that float64 may not hold its squares, or the
        precisions of clusters.
    """
    lowest, highest = range_of(rows)
    if most_precise_count is not None:
        return _of_large_counts(float(highest.max()), most_precise_count)
    lower, median, upper = quartiles_of(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = upper - lower
        if (spread > _MOST_SPREAD).any():
            d = int(np.argmax(spread))
            raise ValueError(
                f"observed has a spread of {spread[d]:.1e} in column {d}, above the limit of "
                f"{_MOST_SPREAD:.0e} that leaves room in float64 for squares, and for precisions "
                "of clusters far wider than the data; divide the data by a power of ten."
            )
        reach = np.maximum(np.abs(lowest - median), np.abs(highest - median))
        lost = np.flatnonzero((spread > 0) & (spread < _EPSILON * reach))
    if not len(lost):
        return None
    d = int(lost[0])
    i = int(np.nanargmax(np.abs(rows[:, d] - median[d])))
    return (
        f"observed has {rows[i, d]:g} in row {i}, column {d}, beside which the spread of the "
        f"others, {spread[d]:.2g}, is lost to rounding; if it stands for a missing entry, as the "
        "fill values of file formats do, give NaN."
    )


def _of_large_counts(highest: float, most_precise: float) -> str | None:
    if not highest > most_precise:
        return None
    error = _EPSILON * highest * math.log(highest)
    return (
        f"observed has counts up to {highest:g}, whose log densities are rounded by about "
        f"{error:.0e} each; if that matters, model their logarithms, for instance by Normal."
    )
