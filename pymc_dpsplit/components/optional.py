"""Optional operations: tiles of sparse rows, tables of the parameters of all atoms, and entries.

The optional operations of `components.base` replace a default by a faster or better version.
"""

import numpy as np

from pymc_dpsplit.components.base import overrelax_parameters, tile_size
from pymc_dpsplit.components.dispatch import (
    operation,
    optional_operation,
    whether_implemented,
)
from pymc_dpsplit.kernels.tiles import new_tile


@optional_operation
def begin_tile(prior, data):
    """Allocate the tile that `load_tile` fills, by default zeros for `tile_size(prior)` features.

    A family with sparse rows returns a tile of its own type.
    """
    return new_tile(tile_size(prior))


@optional_operation
def find_table(prior, params):
    """Arrange the parameters of all atoms (A, P) in one table, or return None, the default.

    With a table, `fill_by_table` reads each row once for all atoms.  A family with a table has
    large sufficient statistics, which a sweep sums after the labels are drawn, cluster by cluster.
    Sums must not depend on how observations are partitioned into blocks, except through the order
    of the observations.
    """


@operation
def fill_by_table(prior, data, start, stop, table, out):
    """Compute the log densities of a range of observations under all atoms of a table.

    Families that implement `find_table` must implement this operation too.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray or NamedTuple
        As `ComponentFamily.arranged` returned it.
    start, stop : int
        The observations start .. stop - 1.
    table : NamedTuple
        As `find_table` returned it; `table.constants` has at least A elements.
    out : ndarray of float64, shape (tiles, A', TILE)
        Overwritten.  A' is at least `table.constants.shape[0]`; a last tile that is not full
        repeats the last observation.
    """


@optional_operation
def rounding_in_single(prior, params):
    """Bound errors of log densities in float32, or return None, the default, if none is known.

    A family with a bound accepts tiles, parameters and log densities of float32 in `load_tile` and
    `fill_log_density`.  Its log density is a constant less half of a sum of squares |y|^2, and its
    tile holds the features of `tile_size(prior)` columns.

    Parameters
    ----------
    prior : NamedTuple
    params : ndarray of float64, shape (A, P)

    Returns
    -------
    per_norm, constant : float
        For an observation of norm r in its tile, y has an error of norm `per_norm * r + constant`
        at most, under any of the atoms, in units of 2^-24; inf if parameters exceed float32.
    """


@optional_operation
def entry_of(prior, data, i, j):
    """Return the entry of observation i in column j; NaN if the family does not say it.

    By default that of an array (N, D).
    """
    return np.float64(data[i, j])


can_overrelax = whether_implemented(overrelax_parameters)
