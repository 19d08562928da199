"""Log densities of a tile under all atoms, by lookup in a table if the family provides one."""

from pymc_dpsplit.components.base import fill_log_density, load_tile
from pymc_dpsplit.components.optional import fill_by_table
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_scratch


@jitted
def new_masses(table, n_atoms, n_tiles):
    """Allocate log masses for `n_tiles` tiles: all atoms and one spare row each.

    Parameters
    ----------
    table : object or None
        Result of `find_table`.
    n_atoms, n_tiles : int

    Returns
    -------
    ndarray of float64, shape (n_tiles, at least A + 1, TILE)
    """
    n_rows = n_atoms + 1 if table is None else table.constants.shape[0] + 1
    return new_scratch(n_tiles * n_rows).reshape(n_tiles, n_rows, TILE)


@jitted
def fill_masses(prior, data, first, params, table, rows, tile, log_mass, scratch):
    """Write the log densities of the tile whose first observation is `first` under all atoms.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    first : int
        Index of the first observation of the tile.
    params : ndarray of float64, shape (A, P)
    table : object or None
        Result of `find_table` for `params`.
    rows : ndarray of int64, shape (TILE,)
        Overwritten by the indices of the observations.
    tile : object
        Scratch, a result of `begin_tile`.
    log_mass : ndarray of float64, shape (1, > A, TILE)
        Overwritten; a result of `new_masses`.
    scratch : ndarray of float64, shape (4 * TILE,)
    """
    n_obs = data.shape[0]
    fill_range(rows, first, n_obs)
    if table is not None:
        fill_by_table(prior, data, first, min(first + TILE, n_obs), table, log_mass)
    else:
        load_tile(prior, data, rows, tile)
        for k in range(params.shape[0]):
            fill_log_density(prior, tile, params[k], log_mass[0, k], scratch)
