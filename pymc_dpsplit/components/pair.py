"""Kernel operations of a pair of families, each with its own columns of a row.

The first columns of a row belong to one family and the rest to another.  They are independent given
the cluster, so log densities and log marginals are sums, docs/method.md, eq. (7.19).  Each family
may itself be a pair; a product of several families nests to the right.

Layout.  stats, params and cache: those of the first family, then those of the other.  tile: that of
the first, that of the other, and space for the densities under the other.
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import columns_of, part_of


class PairPrior(NamedTuple):
    """Priors of the first `n_first` columns and of the rest; `shift` is that of all columns."""

    shift: np.ndarray
    n_first: int
    first: Any
    other: Any


@base.implements(base.stats_size, PairPrior)
def _stats_size(prior):
    return base.stats_size(prior.first) + base.stats_size(prior.other)


@base.implements(base.params_size, PairPrior)
def _params_size(prior):
    return base.params_size(prior.first) + base.params_size(prior.other)


@base.implements(base.tile_size, PairPrior)
def _tile_size(prior):
    return base.tile_size(prior.first) + base.tile_size(prior.other) + 1


@base.implements(base.predictive_size, PairPrior)
def _cache_size(prior):
    return base.predictive_size(prior.first) + base.predictive_size(prior.other)


@base.implements(base.load_tile, PairPrior)
def _load_tile(prior, data, rows, tile):
    n_first, n_other = prior.n_first, data.shape[1] - prior.n_first
    size_first, size_other = base.tile_size(prior.first) * TILE, base.tile_size(prior.other) * TILE
    tile_first, tile_other = part_of(tile, 0, size_first), part_of(tile, size_first, size_other)
    base.load_tile(prior.first, columns_of(data, 0, n_first), rows, tile_first)
    base.load_tile(prior.other, columns_of(data, n_first, n_other), rows, tile_other)


@base.implements(base.fill_log_density, PairPrior)
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


@base.implements(base.add_row, PairPrior)
def _add_row(prior, data, i, stats):
    n_first, n_other = prior.n_first, data.shape[1] - prior.n_first
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    base.add_row(prior.first, columns_of(data, 0, n_first), i, part_of(stats, 0, size_first))
    stats_other = part_of(stats, size_first, size_other)
    base.add_row(prior.other, columns_of(data, n_first, n_other), i, stats_other)


@base.implements(base.log_marginal, PairPrior)
def _log_marginal(prior, stats):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    first = base.log_marginal(prior.first, part_of(stats, 0, size_first))
    return first + base.log_marginal(prior.other, part_of(stats, size_first, size_other))


@base.implements(base.draw_parameters, PairPrior)
def _draw_parameters(prior, stats, rng, params):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    n_first, n_other = base.params_size(prior.first), base.params_size(prior.other)
    params_first, params_other = part_of(params, 0, n_first), part_of(params, n_first, n_other)
    base.draw_parameters(prior.first, part_of(stats, 0, size_first), rng, params_first)
    stats_other = part_of(stats, size_first, size_other)
    base.draw_parameters(prior.other, stats_other, rng, params_other)


@base.implements(base.mean_parameters, PairPrior)
def _mean_parameters(prior, stats, params):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    n_first, n_other = base.params_size(prior.first), base.params_size(prior.other)
    params_first, params_other = part_of(params, 0, n_first), part_of(params, n_first, n_other)
    base.mean_parameters(prior.first, part_of(stats, 0, size_first), params_first)
    base.mean_parameters(prior.other, part_of(stats, size_first, size_other), params_other)


@base.implements(base.fill_predictive, PairPrior)
def _fill_cache(prior, stats, cache):
    size_first, size_other = base.stats_size(prior.first), base.stats_size(prior.other)
    n_first, n_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, n_first), part_of(cache, n_first, n_other)
    base.fill_predictive(prior.first, part_of(stats, 0, size_first), cache_first)
    base.fill_predictive(prior.other, part_of(stats, size_first, size_other), cache_other)


@base.implements(base.predictive_add, PairPrior)
def _cache_add(prior, data, i, cache):
    n_first, n_other = prior.n_first, data.shape[1] - prior.n_first
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    base.predictive_add(prior.first, columns_of(data, 0, n_first), i, cache_first)
    base.predictive_add(prior.other, columns_of(data, n_first, n_other), i, cache_other)


@base.implements(base.predictive_remove, PairPrior)
def _cache_remove(prior, data, i, cache):
    n_first, n_other = prior.n_first, data.shape[1] - prior.n_first
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    is_good = base.predictive_remove(prior.first, columns_of(data, 0, n_first), i, cache_first)
    return (
        base.predictive_remove(prior.other, columns_of(data, n_first, n_other), i, cache_other)
        and is_good
    )


@base.implements(base.log_predictive, PairPrior)
def _log_predictive(prior, data, i, cache):
    n_first, n_other = prior.n_first, data.shape[1] - prior.n_first
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    cache_first, cache_other = part_of(cache, 0, size_first), part_of(cache, size_first, size_other)
    first = base.log_predictive(prior.first, columns_of(data, 0, n_first), i, cache_first)
    other_columns = columns_of(data, n_first, n_other)
    return first + base.log_predictive(prior.other, other_columns, i, cache_other)


@base.implements(collapsed.log_predictive_without, PairPrior)
def _log_predictive_without(prior, data, i, cache, spare):
    n_first, n_other = prior.n_first, data.shape[1] - prior.n_first
    size_first, size_other = base.predictive_size(prior.first), base.predictive_size(prior.other)
    first = collapsed.log_predictive_without(
        prior.first,
        columns_of(data, 0, n_first),
        i,
        part_of(cache, 0, size_first),
        part_of(spare, 0, size_first),
    )
    return first + collapsed.log_predictive_without(
        prior.other,
        columns_of(data, n_first, n_other),
        i,
        part_of(cache, size_first, size_other),
        part_of(spare, size_first, size_other),
    )
