"""Grids over which a density is computed: even ones, or points where a law has narrow peaks."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.posterior.density.feature_laws import FeatureLaw

_LINE_POINTS = 500
_PLANE_POINTS = 100  # along each axis
# A grid that is not even has up to so many times the points, this share of them evenly spaced.
_MORE, _EVEN_SHARE = 2, 0.05
# Mass that the trapezoid rule may misplace on an even grid of one feature, and on each of two.
_LINE_ERROR, _PLANE_ERROR = 0.02, 0.05
_WARNED_ERROR = 0.1
# Cells are halved until the rule misplaces less mass in each, but not below this share of the
# range: a density is infinite where it is not found by then.
_CELL_ERROR, _NARROWEST, _MOST_CELLS = 2e-6, 1e-10, 10_000
# Rounds in which points move to the cells of a grid that misplace most, and how many of them.
_EXCHANGES, _MOVED_SHARE = 20, 0.05

# Points, and at each the mean density and the mean mass below.
Found = tuple[np.ndarray, np.ndarray, np.ndarray]


def chosen_grids(
    given: Any,
    values: np.ndarray,
    is_whole: Sequence[bool],
    laws: Sequence[FeatureLaw | None],
) -> list[np.ndarray]:
    """Return the grid of each feature, that of the user or one over the range of the values.

    Parameters
    ----------
    given : array_like, sequence of array_like, or None
        Those of the user.
    values : ndarray, shape (n, F)
        The values that the density describes.
    is_whole : sequence of bool
        Which features have whole numbers.
    laws : sequence of FeatureLaw or None
        Of each feature by itself; None for one that has none.

    Returns
    -------
    list of ndarray

    Raises
    ------
    ValueError
        If the grid of the user is none.
    """
    if given is not None:
        return _checked(given, is_whole)
    size, error = (
        (_LINE_POINTS, _LINE_ERROR) if len(is_whole) == 1 else (_PLANE_POINTS, _PLANE_ERROR)
    )
    grids, worst = [], 0.0
    for of, whole, law in zip(values.T, is_whole, laws, strict=True):
        grid = _whole_grid(of) if whole else _even_grid(of, size)
        if law is not None and not whole:
            grid, left = _resolved(grid, law, error)
            worst = max(worst, left)
        grids.append(grid)
    if worst > _WARNED_ERROR:
        warnings.warn(
            f"the default grid of {' x '.join(str(len(of)) for of in grids)} points does not "
            "resolve all clusters, which are narrow and many; give density a grid= of more points "
            f"where they are{'' if len(grids) == 1 else ', or fewer features='}.",
            stacklevel=3,
        )
    return grids


def _checked(given: Any, is_whole: Sequence[bool]) -> list[np.ndarray]:
    n_features = len(is_whole)
    grids = [np.asarray(given, float)] if n_features == 1 else [np.asarray(of) for of in given]
    are_valid = len(grids) == n_features and all(
        of.ndim == 1 and len(of) > 0 and np.isfinite(of).all() and (np.diff(of) > 0).all()
        for of in grids
    )
    if not are_valid:
        raise ValueError(
            f"grid must hold ascending finite numbers for {n_features} features; give an array "
            "for one feature, a pair of arrays for two."
        )
    for of, whole in zip(grids, is_whole, strict=True):
        if whole and (of != np.rint(of)).any():
            raise ValueError("grid holds fractions for a feature of whole numbers; give integers.")
    return [of.astype(float) for of in grids]


def _even_grid(values: np.ndarray, size: int) -> np.ndarray:
    """Return evenly spaced points over the range of `values`, with a margin."""
    low, high = values.min(), values.max()
    margin = 0.15 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, size)


def _whole_grid(values: np.ndarray) -> np.ndarray:
    """Return the whole numbers over the range of `values`, from 0 if it is near."""
    low, high = values.min(), values.max()
    first = 0.0 if low <= high - low else low
    return np.arange(first, high + 1)


def _resolved(even: np.ndarray, law: FeatureLaw, most: float) -> tuple[np.ndarray, float]:
    """Return `even`, or points nearer to narrow peaks, and the mass misplaced between them."""
    heights, below = _mean_law(even, law)
    misplaced = _misplaced(even, heights, below)
    if not misplaced.sum() > most:  # nor if a density is infinite at a point
        return even, 0.0
    points, heights, below = _halved(even, heights, below, law)
    size, found = _MORE * len(even), (points, heights, below)
    n_even, n_moved = int(size * _EVEN_SHARE), int(size * _MOVED_SHARE)
    spread = even[np.linspace(0, len(even) - 1, n_even).astype(int)]
    chosen = np.union1d(
        _by_curvature(points, heights, size - n_even), np.searchsorted(points, spread)
    )
    for _ in range(_EXCHANGES):
        if len(chosen) > size - n_moved:
            chosen = _without_idle(chosen, found, n_moved)
        chosen = _split_worst(chosen, found, min(size - len(chosen), n_moved))
    return points[chosen], float(_misplaced(*_at(chosen, found)).sum())


def _without_idle(chosen: np.ndarray, found: Found, n: int) -> np.ndarray:
    """Leave out at most `n` points, where the least mass is misplaced without them."""
    error = _misplaced(*_at(chosen, found))
    gain = np.full(len(chosen), np.inf)
    for first in (0, 1):  # merge the cells on both sides of every other point
        at = np.arange(first, len(chosen), 2)
        inner = at[:-1] + 1
        gain[inner] = _misplaced(*_at(chosen[at], found)) - error[inner - 1] - error[inner]
    # No two beside each other.
    is_least = gain < np.append(np.inf, gain[:-1])
    is_least &= gain <= np.append(gain[1:], np.inf)
    idle = np.argsort(np.where(is_least, gain, np.inf))[:n]
    return np.delete(chosen, idle[is_least[idle]])


def _split_worst(chosen: np.ndarray, found: Found, n: int) -> np.ndarray:
    """Add the middle points of the `n` cells in which most mass is misplaced."""
    error = _misplaced(*_at(chosen, found))
    is_long = np.diff(chosen) > 1
    worst = np.argsort(np.where(is_long, -error, 0.0))[:n]
    worst = worst[is_long[worst]]
    return np.union1d(chosen, (chosen[worst] + chosen[worst + 1]) // 2)


def _at(chosen: np.ndarray, found: Found) -> Found:
    points, heights, below = found
    return points[chosen], heights[chosen], below[chosen]


def _mean_law(points: np.ndarray, law: FeatureLaw) -> tuple[np.ndarray, np.ndarray]:
    """Return the means over draws of the density, and of the mass below, at `points` (G,)."""
    return law.density(points[:, None]).mean(0), law.cdf(points).mean(0)


def _misplaced(points: np.ndarray, heights: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return how much mass the trapezoid rule adds to each cell, or leaves out."""
    drawn = 0.5 * (heights[1:] + heights[:-1]) * np.diff(points)
    return np.abs(drawn - np.diff(below))


def _halved(points: np.ndarray, heights: np.ndarray, below: np.ndarray, law: FeatureLaw) -> Found:
    """Halve cells until their trapezoids hold the mass of each, and return the points."""
    even, narrowest = points, _NARROWEST * np.ptp(points)
    while True:
        is_unsettled = ~(_misplaced(points, heights, below) < _CELL_ERROR)
        is_narrow = np.diff(points) < narrowest
        halved = np.flatnonzero(is_unsettled & ~is_narrow)
        if len(halved) == 0 or len(points) + len(halved) > _MOST_CELLS:
            break
        middle = 0.5 * (points[halved] + points[halved + 1])
        found = (middle, *_mean_law(middle, law))
        points, heights, below = (
            np.insert(of, halved + 1, new)
            for of, new in zip((points, heights, below), found, strict=True)
        )
    # Near a point of infinite density there is no peak to resolve: what is added would be as high
    # as it is near.
    infinite = np.searchsorted(even, points[:-1][is_unsettled & is_narrow], side="right")
    infinite = np.append(infinite, np.searchsorted(even, points[~np.isfinite(heights)]))
    kept = ~np.isin(np.searchsorted(even, points), infinite) | np.isin(points, even)
    return points[kept], heights[kept], below[kept]


def _by_curvature(points: np.ndarray, heights: np.ndarray, size: int) -> np.ndarray:
    """Return which of the points make straight lines between them closest to the density.

    Each line leaves out the same area if points are as dense as the cube root of the curvature.
    """
    width = np.diff(points)
    turns = np.abs(np.diff(np.diff(heights) / width)) / (0.5 * (width[1:] + width[:-1]))
    turns = np.pad(np.cbrt(turns), 1, mode="edge")
    length = np.append(0.0, np.cumsum(0.5 * (turns[1:] + turns[:-1]) * width))
    places = np.searchsorted(length, np.linspace(0.0, length[-1], size))
    return np.unique(np.minimum(places, len(points) - 1))
