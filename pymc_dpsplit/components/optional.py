"""Operations that a family may implement, and what happens where it does not.

They belong to the contract, see `components.base`.
"""

from typing import Any

from numba.extending import overload

from pymc_dpsplit.components.base import (
    add_groups,
    add_row,
    draw_parameters,
    find_bounds,
    implemented,
    overrelax_parameters,
    tile_size,
)
from pymc_dpsplit.kernels.jit import FASTMATH
from pymc_dpsplit.kernels.tiles import new_tile
from pymc_dpsplit.kernels.views import row_of

_OPTIONS: Any = {"fastmath": FASTMATH, "nogil": True}


def begin_tile(prior, data):
    """Return what `load_tile` fills: by default a zeroed tile of `tile_size(prior)` features.

    A family whose rows are not dense returns what suits it.
    """
    raise NotImplementedError


def find_table(prior, params):
    """Return the parameters of all atoms in one table; by default None: there is none.

    For families whose rows are read once for all atoms, not once for each.  `params` are as
    `fill_log_density` takes them, (A, P).  A family with a table has statistics so large that a
    sweep adds them up afterwards, cluster by cluster: their sums, but for the order of the
    observations, may not depend on how they are made up.
    """
    raise NotImplementedError


def fill_by_table(prior, data, start, stop, table, out):
    """Write the log densities of the observations start .. stop - 1 under all atoms.

    `out` has shape (tiles, any, TILE), a tile after the other, the last observation repeated;
    its second axis has room for `table.constants.shape[0]` atoms, A or some more.
    """
    raise NotImplementedError


def can_overrelax(prior):
    """Say whether the family implements `overrelax_parameters`."""
    raise NotImplementedError


@overload(can_overrelax, jit_options=_OPTIONS, strict=False)
def _say_whether_implemented(prior: Any) -> Any:
    """Answer when compiling."""
    can = implemented(overrelax_parameters, prior)
    return lambda prior: can


@overload(overrelax_parameters, jit_options=_OPTIONS, strict=False)
def _choose_no_overrelaxation(prior: Any, stats: Any, rng: Any, params: Any) -> Any:
    """Choose a new draw for families without an `overrelax_parameters` of their own."""
    if implemented(overrelax_parameters, prior):
        return None
    return lambda prior, stats, rng, params: draw_parameters(prior, stats, rng, params)


@overload(begin_tile, jit_options=_OPTIONS, strict=False)
def _choose_dense_tile(prior: Any, data: Any) -> Any:
    """Choose a tile of features for families without a tile of their own."""
    if implemented(begin_tile, prior):
        return None
    return lambda prior, data: new_tile(tile_size(prior))


@overload(find_table, jit_options=_OPTIONS, strict=False)
def _choose_no_table(prior: Any, params: Any) -> Any:
    """Choose None for families without a table."""
    if implemented(find_table, prior):
        return None
    return lambda prior, params: None


@overload(add_groups, jit_options=_OPTIONS, strict=False)
def _choose_one_by_one(prior: Any, data: Any, members: Any, bounds: Any, stats: Any) -> Any:
    """Choose the loop over `add_row` for families without an `add_groups` of their own."""
    if implemented(add_groups, prior):
        return None

    def add_one_by_one(prior, data, members, bounds, stats):
        for k in range(stats.shape[0]):
            for j in range(bounds[k], bounds[k + 1]):
                add_row(prior, data, members[j], row_of(stats, k))

    return add_one_by_one


@overload(find_bounds, jit_options=_OPTIONS, strict=False)
def _choose_no_bounds(prior: Any, params: Any, n_clusters: Any) -> Any:
    """Choose None for families without bounds."""
    if implemented(find_bounds, prior):
        return None
    return lambda prior, params, n_clusters: None
