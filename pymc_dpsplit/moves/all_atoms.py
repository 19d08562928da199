"""The log masses of a tile under all atoms, read off a table where the family has one."""

from pymc_dpsplit.components.base import fill_log_density, load_tile
from pymc_dpsplit.components.optional import fill_by_table
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_scratch


@kernel
def new_masses(table, n_atoms, n_tiles):
    """Room for the log masses of some tiles, (tiles, > A, TILE): for all atoms and one more."""
    n_rows = n_atoms + 1 if table is None else table.constants.shape[0] + 1
    return new_scratch(n_tiles * n_rows).reshape(n_tiles, n_rows, TILE)


@kernel
def fill_masses(prior, data, first, params, table, rows, tile, log_mass, scratch):
    """Write the log densities of the tile that begins with observation `first`.

    Parameters
    ----------
    params : ndarray of float64, shape (A, P)
    table : object or None
        What `find_table` returned for `params`.
    rows : ndarray of int64, shape (TILE,)
        Written: the observations.
    tile : object
        What `begin_tile` returned; scratch.
    log_mass : ndarray of float64, shape (1, > A, TILE)
        What `new_masses` returned.
    scratch : ndarray of float64, shape (4 * TILE,)
    """
    n_obs = data.shape[0]
    fill_range(rows, first, n_obs)
    if table is None:
        load_tile(prior, data, rows, tile)
        for k in range(params.shape[0]):
            fill_log_density(prior, tile, params[k], log_mass[0, k], scratch)
    else:
        fill_by_table(prior, data, first, min(first + TILE, n_obs), table, log_mass)
