"""Kernel operations of a pair of families, each with its own columns of a row.

The first columns of a row belong to one family and the rest to another.  They are independent given
the cluster, so log densities and log marginals are sums, docs/method.md, eq. (7.19).  Each family
may itself be a pair; a product of several families nests to the right.

Layout.  stats, params and cache: those of the first family, then those of the other.  tile: that of
the first, that of the other, and space for the densities under the other.

Operations that read no tile are those of `mixed_pair` too, where the data have another form.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.dispatch import operation
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import columns_of, part_of, row_of

# Sums of all clusters per row, above which adding them up takes longer than adding rows one by one.
_MOST_SUMS_PER_ROW = 16


class PairPrior(NamedTuple):
    """Priors of the first `n_first` columns and of the rest; `shift` is that of all columns."""

    shift: np.ndarray
    n_first: int
    first: Any
    other: Any


@operation
def first_rows(prior, data):
    """Return the rows of the first family."""


@operation
def other_rows(prior, data):
    """Return the rows of the other family."""


@base.implements(first_rows, PairPrior, inline=True)
def _first_rows(prior, data):
    return columns_of(data, 0, prior.n_first)


@base.implements(other_rows, PairPrior, inline=True)
def _other_rows(prior, data):
    return columns_of(data, prior.n_first, data.shape[1] - prior.n_first)


def _stats_size(prior):
    return base.stats_size(prior.first) + base.stats_size(prior.other)


def _params_size(prior):
    return base.params_size(prior.first) + base.params_size(prior.other)


@base.implements(base.tile_size, PairPrior)
def _tile_size(prior):
    return base.tile_size(prior.first) + base.tile_size(prior.other) + 1


def _cache_size(prior):
    return base.predictive_size(prior.first) + base.predictive_size(prior.other)


@base.implements(base.load_tile, PairPrior, uncounted=True)
def _load_tile(prior, data, rows, tile):
    size_first, size_other = base.tile_size(prior.first) * TILE, base.tile_size(prior.other) * TILE
    tile_first, tile_other = part_of(tile, 0, size_first), part_of(tile, size_first, size_other)
    base.load_tile(prior.first, first_rows(prior, data), rows, tile_first)
    base.load_tile(prior.other, other_rows(prior, data), rows, tile_other)


@base.implements(base.fill_log_density, PairPrior, inline=True, uncounted=True)
def _fill_log_density(prior, tile, params, out, scratch):
    size_first, size_other = base.tile_size(prior.first) * TILE, base.tile_size(prior.other) * TILE
    n_first, n_other = base.params_size(prior.first), base.params_size(prior.other)
    tile_first, tile_other = part_of(tile, 0, size_first), part_of(tile, size_first, size_other)
    params_first, params_other = part_of(params, 0, n_first), part_of(params, n_first, n_other)
    densities = part_of(tile, size_first + size_other, TILE)
    base.fill_log_density(prior.first, tile_first, params_first, out, scratch)
    base.fill_log_density(prior.other, tile_other, params_other, densities, scratch)
    for t in range(TILE):
        out[t] += densities[t]


def _add_row(prior, data, i, stats):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    base.add_row(prior.first, first_rows(prior, data), i, part_of(stats, 0, size_first))
    stats_other = part_of(stats, size_first, size_other)
    base.add_row(prior.other, other_rows(prior, data), i, stats_other)


def _add_groups(prior, data, members, bounds, stats):
    """Add the columns of each family by its own operation, or row by row if its sums are long."""
    n_clusters = stats.shape[0]
    if stats.size > _MOST_SUMS_PER_ROW * (bounds[n_clusters] - bounds[0]):
        for k in range(n_clusters):
            for j in range(bounds[k], bounds[k + 1]):
                base.add_row(prior, data, members[j], row_of(stats, k))
        return
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    first, other = np.zeros((n_clusters, size_first)), np.zeros((n_clusters, size_other))
    base.add_groups(prior.first, first_rows(prior, data), members, bounds, first)
    base.add_groups(prior.other, other_rows(prior, data), members, bounds, other)
    for k in range(n_clusters):
        for j in range(size_first):
            stats[k, j] += first[k, j]
        for j in range(size_other):
            stats[k, size_first + j] += other[k, j]


def _log_marginal(prior, stats):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    first = base.log_marginal(prior.first, part_of(stats, 0, size_first))
    return first + base.log_marginal(prior.other, part_of(stats, size_first, size_other))


def _draw_parameters(prior, stats, rng, params):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    n_first, n_other = base.params_size(prior.first), base.params_size(prior.other)
    params_first, params_other = part_of(params, 0, n_first), part_of(params, n_first, n_other)
    base.draw_parameters(prior.first, part_of(stats, 0, size_first), rng, params_first)
    stats_other = part_of(stats, size_first, size_other)
    base.draw_parameters(prior.other, stats_other, rng, params_other)


def _mean_parameters(prior, stats, params):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    n_first, n_other = base.params_size(prior.first), base.params_size(prior.other)
    params_first, params_other = part_of(params, 0, n_first), part_of(params, n_first, n_other)
    base.mean_parameters(prior.first, part_of(stats, 0, size_first), params_first)
    base.mean_parameters(prior.other, part_of(stats, size_first, size_other), params_other)


def _fill_cache(prior, stats, cache):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    n_first, n_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, n_first), part_of(cache, n_first, n_other)
    base.fill_predictive(prior.first, part_of(stats, 0, size_first), cache_first)
    base.fill_predictive(prior.other, part_of(stats, size_first, size_other), cache_other)


def _cache_add(prior, data, i, cache):
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    base.predictive_add(prior.first, first_rows(prior, data), i, cache_first)
    base.predictive_add(prior.other, other_rows(prior, data), i, cache_other)


def _cache_remove(prior, data, i, cache):
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    is_good = base.predictive_remove(prior.first, first_rows(prior, data), i, cache_first)
    return base.predictive_remove(prior.other, other_rows(prior, data), i, cache_other) and is_good


def _log_predictive(prior, data, i, cache):
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    first = base.log_predictive(prior.first, first_rows(prior, data), i, cache_first)
    return first + base.log_predictive(prior.other, other_rows(prior, data), i, cache_other)


def _log_predictive_without(prior, data, i, cache, spare):
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    spare_first, spare_other = part_of(spare, 0, size_first), part_of(spare, size_first, size_other)
    rows_first, rows_other = first_rows(prior, data), other_rows(prior, data)
    first = collapsed.log_predictive_without(prior.first, rows_first, i, cache_first, spare_first)
    return first + collapsed.log_predictive_without(
        prior.other, rows_other, i, cache_other, spare_other
    )


# What a pair does without a tile, whatever the form of its rows.
WITHOUT_TILES: dict[Callable[..., Any], Callable[..., Any]] = {
    base.stats_size: _stats_size,
    base.params_size: _params_size,
    base.predictive_size: _cache_size,
    base.add_row: _add_row,
    base.add_groups: _add_groups,
    base.log_marginal: _log_marginal,
    base.draw_parameters: _draw_parameters,
    base.mean_parameters: _mean_parameters,
    base.fill_predictive: _fill_cache,
    base.predictive_add: _cache_add,
    base.predictive_remove: _cache_remove,
    base.log_predictive: _log_predictive,
    collapsed.log_predictive_without: _log_predictive_without,
}

for _operation, _implementation in WITHOUT_TILES.items():
    base.implements(_operation, PairPrior, uncounted=_operation is not base.add_groups)(
        _implementation
    )
