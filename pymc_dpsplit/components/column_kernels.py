"""Kernels of families with independent columns, generated from their functions of one column.

`implement_by_column` implements all operations of `components.base` that a family has not
implemented itself, by those of `column_functions`.

Layout.  stats: n, t (D), then, if the family implements `measure_statistic`, sums of it: one per
column (D) if it implements `sum_log_measures`, otherwise one over all columns.  params: sum of the
constants, slopes (D).  tile: T of the entries, then the sum of log h over a row.  cache: the part
of the log predictive that does not depend on the row, the relative precision of t that is
left after removals, n, t (D), a number for each column (D).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.column_functions import (
    draw_natural,
    finish_predictive,
    log_measure,
    log_partition,
    mean_natural,
    measure_statistic,
    prepare_predictive,
    share_kept,
    statistic,
    sum_log_measures,
)
from pymc_dpsplit.components.dispatch import implemented, implements, whether_implemented
from pymc_dpsplit.kernels.digits import LEAST_KEPT, keeps_digits
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.linear import fill_log_linear
from pymc_dpsplit.kernels.special import LOG_ZERO
from pymc_dpsplit.kernels.tiles import TILE, load_dense_tile
from pymc_dpsplit.kernels.views import part_of, row_of

_has_measure = whether_implemented(measure_statistic)
_sums_by_column = whether_implemented(sum_log_measures)


def _stats_size(prior):
    n_columns = prior.shift.shape[0]
    if _sums_by_column(prior):
        return 1 + 2 * n_columns
    return 2 + n_columns if _has_measure(prior) else 1 + n_columns


def _params_size(prior):
    return 1 + prior.shift.shape[0]


def _cache_size(prior):
    return 3 + 2 * prior.shift.shape[0]


def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)
    n_columns = prior.shift.shape[0]
    extra = part_of(tile, n_columns * TILE, TILE)
    extra[:] = 0.0
    for d in range(n_columns):
        column = part_of(tile, d * TILE, TILE)
        for t in range(TILE):
            x = column[t]
            measure = log_measure(prior, d, x)
            column[t] = statistic(prior, d, x) if measure != LOG_ZERO else 0.0
            # LOG_ZERO is finite, and so are sums of several of them.
            extra[t] += measure


def _fill_log_density(prior, tile, params, out, scratch):
    slopes = part_of(params, 1, prior.shift.shape[0])
    fill_log_linear(tile, slopes, params[0], out)


def _add_row(prior, data, i, stats):
    n_columns = prior.shift.shape[0]
    stats[0] += 1.0
    for d in range(n_columns):
        x = np.float64(data[i, d])
        stats[1 + d] += statistic(prior, d, x)
        if _has_measure(prior):
            at = 1 + n_columns + d if _sums_by_column(prior) else 1 + n_columns
            stats[at] += measure_statistic(prior, d, x)


def _add_groups(prior, data, members, bounds, stats):
    """Sum in registers, column by column."""
    n_columns = prior.shift.shape[0]
    for k in range(stats.shape[0]):
        stats[k, 0] += bounds[k + 1] - bounds[k]
        for d in range(n_columns):
            total, measures = 0.0, 0.0
            for j in range(bounds[k], bounds[k + 1]):
                x = np.float64(data[members[j], d])
                total += statistic(prior, d, x)
                if _has_measure(prior):
                    measures += measure_statistic(prior, d, x)
            stats[k, 1 + d] += total
            if _has_measure(prior):
                at = 1 + n_columns + d if _sums_by_column(prior) else 1 + n_columns
                stats[k, at] += measures


def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.37)."""
    n, n_columns, total = stats[0], prior.shift.shape[0], 0.0
    for d in range(n_columns):
        total += log_partition(prior, d, n, stats[1 + d]) - log_partition(prior, d, 0.0, 0.0)
        if _sums_by_column(prior):
            total += sum_log_measures(prior, d, n, stats[1 + n_columns + d])
    if _has_measure(prior) and not _sums_by_column(prior):
        total -= stats[1 + n_columns]
    return total


def _draw_parameters(prior, stats, rng, params):
    params[0] = 0.0
    for d in range(prior.shift.shape[0]):
        slope, constant = draw_natural(prior, d, stats[0], stats[1 + d], rng)
        params[0] += constant
        params[1 + d] = slope


def _mean_parameters(prior, stats, params):
    params[0] = 0.0
    for d in range(prior.shift.shape[0]):
        slope, constant = mean_natural(prior, d, stats[0], stats[1 + d])
        params[0] += constant
        params[1 + d] = slope


@jitted
def _prepare_columns(prior, cache):
    n_columns, total = prior.shift.shape[0], 0.0
    for d in range(n_columns):
        constant, prepared = prepare_predictive(prior, d, cache[2], cache[3 + d])
        total += constant
        cache[3 + n_columns + d] = prepared
    cache[0] = total


def _fill_cache(prior, stats, cache):
    cache[1] = 1.0
    for d in range(1 + prior.shift.shape[0]):
        cache[2 + d] = stats[d]
    _prepare_columns(prior, cache)


def _cache_add(prior, data, i, cache):
    cache[2] += 1.0
    for d in range(prior.shift.shape[0]):
        cache[3 + d] += statistic(prior, d, np.float64(data[i, d]))
    _prepare_columns(prior, cache)


def _cache_remove(prior, data, i, cache):
    cache[2] -= 1.0
    kept = 1.0
    for d in range(prior.shift.shape[0]):
        before = cache[3 + d]
        cache[3 + d] -= statistic(prior, d, np.float64(data[i, d]))
        kept = min(kept, share_kept(prior, d, before, cache[3 + d]))
    if not keeps_digits(cache, 1, kept):
        return False
    _prepare_columns(prior, cache)
    return True


def _log_predictive(prior, data, i, cache):
    """Return the log predictive density, a ratio of marginals."""
    n_columns, total = prior.shift.shape[0], cache[0]
    for d in range(n_columns):
        x = np.float64(data[i, d])
        measure = log_measure(prior, d, x)
        if measure == LOG_ZERO:
            return LOG_ZERO
        prepared, t = cache[3 + n_columns + d], statistic(prior, d, x)
        total += measure + finish_predictive(prior, d, cache[2], cache[3 + d], prepared, t)
    return total


def _log_predictive_without(prior, data, i, cache, spare):
    n, total, kept = cache[2] - 1.0, 0.0, 1.0
    for d in range(prior.shift.shape[0]):
        x = np.float64(data[i, d])
        measure = log_measure(prior, d, x)
        if measure == LOG_ZERO:
            return LOG_ZERO
        t = statistic(prior, d, x)
        rest = cache[3 + d] - t
        kept = min(kept, share_kept(prior, d, cache[3 + d], rest))
        constant, prepared = prepare_predictive(prior, d, n, rest)
        total += measure + constant + finish_predictive(prior, d, n, rest, prepared, t)
    return total if kept > LEAST_KEPT else math.nan


def _fill_log_predictives(prior, data, i, clusters, n, own, least, drop, out):
    """Write the log predictives; what depends on the row alone is computed once."""
    n_columns, caches, log_measures = prior.shift.shape[0], clusters.caches, 0.0
    for p in range(n):
        out[p] = caches[p, 0]
    for d in range(n_columns):
        x, at = np.float64(data[i, d]), 3 + n_columns + d
        measure = log_measure(prior, d, x)
        log_measures += measure
        t = statistic(prior, d, x) if measure != LOG_ZERO else 0.0
        for p in range(n):
            if clusters.sizes[p] > 0.0:
                n_p, t_p, prepared = caches[p, 2], caches[p, 3 + d], caches[p, at]
                out[p] += finish_predictive(prior, d, n_p, t_p, prepared, t)
    for p in range(n):
        out[p] += log_measures
    if own < 0:
        return True
    out[own] = collapsed.log_predictive_without(prior, data, i, row_of(caches, own), clusters.spare)
    return not math.isnan(out[own])


_BY_COLUMN: dict[Callable[..., Any], Callable[..., Any]] = {
    base.stats_size: _stats_size,
    base.params_size: _params_size,
    base.tile_size: _params_size,
    base.predictive_size: _cache_size,
    base.load_tile: _load_tile,
    base.fill_log_density: _fill_log_density,
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
    collapsed.fill_log_predictives: _fill_log_predictives,
}


def _minus_log_measure(prior, d, x):
    return -log_measure(prior, d, x)


def implement_by_column(prior_class: type, keeps_log_measure: bool = False) -> None:
    """Generate the kernel operations of a family from its functions of one column.

    Parameters
    ----------
    prior_class : type
        The NamedTuple class of the family's prior, whose `shift` has shape (D,).  Operations
        that the family implemented before the call are kept.
    keeps_log_measure : bool
        Whether the sum of log h is a statistic.  This requires that h does not depend on
        hyperparameters that may be PyMC variables.
    """
    if keeps_log_measure:
        implements(measure_statistic, prior_class)(_minus_log_measure)
    for of, function in _BY_COLUMN.items():
        if not implemented(of, prior_class):
            is_innermost = function is _fill_log_density
            # It reads arrays of the prior for every entry.
            is_uncounted = function in (_load_tile, _add_groups)
            implements(of, prior_class, inline=is_innermost, uncounted=is_uncounted)(function)
