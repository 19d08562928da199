"""Order in which a sweep visits the observations of a strip: as they are, or by their slices.

A tile evaluates every atom that one of its observations reaches.  In a tile of observations with
similar slices these are hardly more than each of them reaches.  The uniforms of an observation
belong to it and not to its place, so labels do not depend on the order.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_members, fill_range, new_rows, new_scratch
from pymc_dpsplit.moves.sweep.tile_labels import fill_slices, group_by_label

# Observations ordered at a time, and the classes of slices into which they are sorted.
BLOCK, _CLASSES = 4096, 256
# Number of atoms per tile that the order must save: what it costs, see
# docs/decisions/0052-slices-under-a-discount.md.
_LEAST_SAVED = 6.0


@jitted
def saves_by_slice(slice_bounds, floor):
    """Whether visiting observations by their slices costs less than it saves.

    Parameters
    ----------
    slice_bounds : ndarray of float64, shape (A,)
    floor : float
        The floor c of the slices.

    Returns
    -------
    bool
    """
    n_saved = 0.0
    for k in range(slice_bounds.shape[0]):
        # The probability that a slice of U(0, c) is in reach, and that one of a tile is.
        share = slice_bounds[k] / floor
        n_saved += min(1.0, TILE * share) - share
    return n_saved > _LEAST_SAVED


class Visits(NamedTuple):
    """Scratch arrays of `fill_visits`.

    Attributes
    ----------
    rows : ndarray of int64, shape (TILE,)
    slices : ndarray of float64, shape (TILE,)
    places, classes, members : ndarrays of int64, shape (BLOCK,)
        The numbers 0 .. BLOCK - 1, the class of the slice at each place, and places by class.
    bounds : ndarray of int64
        Where in `members` each class begins.
    """

    rows: np.ndarray
    slices: np.ndarray
    places: np.ndarray
    classes: np.ndarray
    members: np.ndarray
    bounds: np.ndarray


@jitted
def new_visits(by_slice):
    """Allocate `Visits`; next to nothing unless observations are visited by their slices."""
    size = BLOCK if by_slice else 0
    places, classes, members = np.arange(size), np.empty(size, np.int64), np.empty(size, np.int64)
    bounds = np.empty(_CLASSES + 1, np.int64)
    return Visits(new_rows(), new_scratch(1), places, classes, members, bounds)


@jitted
def fill_visits(labels, start, stop, reach, slice_key, visits):
    """Sort the observations start .. stop - 1 by their slices, the lowest first.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    start, stop : int
        At most BLOCK apart.
    reach : Reach
    slice_key : uint64
    visits : Visits
        Overwritten.

    Returns
    -------
    ndarray of int64, shape (stop - start,)
        The observations, less `start`.
    """
    rows, slices, classes = visits.rows, visits.slices, visits.classes
    scale = _CLASSES / reach.floor
    for first in range(start, stop, TILE):
        fill_range(rows, first, stop)
        fill_slices(rows, labels, reach.slice_bounds, slice_key, slices)
        for t in range(min(TILE, stop - first)):
            # A slice may be rounded to the floor.
            classes[first - start + t] = min(int(slices[t] * scale), _CLASSES - 1)
    n_rows = stop - start
    group_by_label(classes, visits.places[:n_rows], visits.bounds, visits.members)
    return visits.members[:n_rows]


@jitted
def fill_tile(rows, first, start, stop, by_slice, order):
    """Write the observations of one tile into `rows`, the last one repeated.

    Parameters
    ----------
    rows : ndarray of int64, shape (TILE,)
        Overwritten.
    first : int
        Place of the tile among the observations start .. stop - 1, plus `start`.
    start, stop : int
    by_slice : bool
    order : ndarray of int64
        Result of `fill_visits`, which is read if `by_slice`.
    """
    if by_slice:
        fill_members(rows, order, first - start)
        for t in range(TILE):
            rows[t] += start
    else:
        fill_range(rows, first, stop)
