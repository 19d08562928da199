"""Kernel operations of a pair of families of which one reads another form of rows than an array.

They are those of `pair`, docs/method.md, eq. (7.19), except that the rows and the tiles of both
families lie side by side: compressed rows of counts are no columns of an array.
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.optional import begin_tile, entry_of
from pymc_dpsplit.components.pair import WITHOUT_TILES, first_rows, other_rows
from pymc_dpsplit.kernels.tiles import TILE, new_scratch
from pymc_dpsplit.kernels.views import part_of


class MixedPairPrior(NamedTuple):
    """Priors of the first columns and of the rest; `shift` is that of all columns."""

    shift: np.ndarray
    first: Any
    other: Any


class MixedRows(NamedTuple):
    """Rows (N, D), those of each family in the form that its kernels read.

    Attributes
    ----------
    first, other : ndarray or NamedTuple
        As `ComponentFamily.arranged` of the family returns them.
    shape : tuple of int
    """

    first: Any
    other: Any
    shape: tuple[int, int]


class MixedTile(NamedTuple):
    """Tiles of both families, and space (TILE,) for the densities under the other."""

    first: Any
    other: Any
    densities: np.ndarray


@base.implements(first_rows, MixedPairPrior, inline=True)
def _first_rows(prior, data):
    return data.first


@base.implements(other_rows, MixedPairPrior, inline=True)
def _other_rows(prior, data):
    return data.other


@base.implements(begin_tile, MixedPairPrior)
def _begin_tile(prior, data):
    first, other = begin_tile(prior.first, data.first), begin_tile(prior.other, data.other)
    return MixedTile(first, other, new_scratch(1))


@base.implements(entry_of, MixedPairPrior)
def _entry_of(prior, data, i, j):
    n_first = data.first.shape[1]
    if j < n_first:
        return entry_of(prior.first, data.first, i, j)
    return entry_of(prior.other, data.other, i, j - n_first)


@base.implements(base.load_tile, MixedPairPrior)
def _load_tile(prior, data, rows, tile):
    base.load_tile(prior.first, data.first, rows, tile.first)
    base.load_tile(prior.other, data.other, rows, tile.other)


@base.implements(base.fill_log_density, MixedPairPrior)
def _fill_log_density(prior, tile, params, out, scratch):
    n_first, n_other = base.params_size(prior.first), base.params_size(prior.other)
    params_first, params_other = part_of(params, 0, n_first), part_of(params, n_first, n_other)
    base.fill_log_density(prior.first, tile.first, params_first, out, scratch)
    base.fill_log_density(prior.other, tile.other, params_other, tile.densities, scratch)
    for t in range(TILE):
        out[t] += tile.densities[t]


for _operation, _implementation in WITHOUT_TILES.items():
    base.implements(_operation, MixedPairPrior)(_implementation)
