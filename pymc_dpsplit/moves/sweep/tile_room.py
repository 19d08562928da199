"""Scratch arrays in which the labels of a tile are drawn, in float64 or in float32."""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.base import tile_size
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch, new_single_scratch
from pymc_dpsplit.moves.sweep.group_factors import new_groups


class TileRoom(NamedTuple):
    """Scratch arrays; shapes as in `moves.sweep.tile_labels`.

    In float32 are `tile`, `log_mass` and `sums`, or none of them.
    """

    rows: np.ndarray
    chosen: np.ndarray
    active: np.ndarray
    position: np.ndarray
    own: np.ndarray
    groups: np.ndarray
    tile: Any
    log_mass: np.ndarray
    sums: np.ndarray
    slices: np.ndarray
    scratch: np.ndarray


@jitted
def new_tile_room(prior, data, n_atoms):
    """Allocate arrays of float64 for tiles with up to `n_atoms` atoms in reach."""
    tile, log_mass = begin_tile(prior, data), new_scratch(n_atoms).reshape(n_atoms, TILE)
    return _room(n_atoms, new_rows(), tile, log_mass, new_scratch(4))


@jitted
def new_single_tile_room(prior, n_atoms):
    """Allocate arrays of float32, for families whose tiles hold features only."""
    tile = new_single_scratch(tile_size(prior))
    log_mass = new_single_scratch(n_atoms).reshape(n_atoms, TILE)
    return _room(n_atoms, np.empty(TILE, np.int32), tile, log_mass, new_single_scratch(4))


@jitted
def _room(n_atoms, chosen, tile, log_mass, sums):
    return TileRoom(
        new_rows(),
        chosen,
        np.empty(n_atoms, np.int64),
        np.empty(n_atoms, np.int64),
        new_rows(),
        new_groups(),
        tile,
        log_mass,
        sums,
        new_scratch(1),
        new_scratch(4),
    )
