"""Kernel operations on groups of rows that share a label, docs/method.md, eq. (7.47)-(7.55).

To the moves a group is one observation.  Any conjugate family provides the law of its rows: a row
adds to the statistics of a cluster, and its log density to that of its group, as many times as it
is counted.  To the Dirichlet process a group is one observation, or as many as it has rows if these
are together because their label is known.

Layout.  stats: number of observations of the process, statistics of the family, of which the
first element is the number of rows.  params: 0, log weight, parameters of the family.  Kernels add
the log weight to the first element; the second holds it for groups that have more factors of it.
The constant of the family thus enters once per row.  cache: log marginal, stats, and the largest
absolute value that each of these has had.
"""

from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components import base, multiplicity, optional
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, new_rows, new_scratch
from pymc_dpsplit.kernels.views import part_of

# If a removal leaves less than this fraction of a sum, the sum is computed anew.
_LEAST_KEPT = 1e-5
# Sums of whole numbers below it are exact.
_MOST_EXACT = 2.0**53
# Elements of params before those of the family.
N_BEFORE = 2


class SharedLabelsPrior(NamedTuple):
    """`rows` is the prior of the family of the rows; `shift` is its shift."""

    shift: np.ndarray
    rows: Any


class GroupedRows(NamedTuple):
    """Groups of rows as kernels read them.

    Attributes
    ----------
    rows : object
        The rows in the form that their family reads.
    members : ndarray of int64, shape (N,)
        Indices of the rows, sorted by group.
    bounds : ndarray of int64, shape (G + 1,)
        Group g has the rows members[bounds[g] : bounds[g + 1]].
    counts : ndarray of float64, shape (N,)
        Number of rows that each row stands for.
    ends : ndarray of int64, shape (G,)
        Running total of the observations of the process that the groups stand for.
    shape : tuple of int
        Number of groups G and of features D.
    """

    rows: Any
    members: np.ndarray
    bounds: np.ndarray
    counts: np.ndarray
    ends: np.ndarray
    shape: tuple[int, int]


class GroupsInTile(NamedTuple):
    """A tile: the data, the indices (TILE,) of its groups, and space for a tile of rows.

    `rows` (TILE,) are the indices of these rows, `owners` (TILE,) the positions of their groups in
    the tile, and `densities` (TILE,) their log densities.
    """

    data: GroupedRows
    groups: np.ndarray
    tile: Any
    rows: np.ndarray
    owners: np.ndarray
    densities: np.ndarray


@base.implements(base.stats_size, SharedLabelsPrior)
def _stats_size(prior):
    return 1 + base.stats_size(prior.rows)


@base.implements(base.params_size, SharedLabelsPrior)
def _params_size(prior):
    return N_BEFORE + base.params_size(prior.rows)


@base.implements(optional.entry_of, SharedLabelsPrior)
def _entry_of(prior, data, i, j):
    return np.nan


@base.implements(multiplicity.multiplicity, SharedLabelsPrior)
def _multiplicity(prior, data, i):
    before = data.ends[i - 1] if i > 0 else 0
    return np.float64(data.ends[i] - before)


@base.implements(multiplicity.observation_at, SharedLabelsPrior)
def _observation_at(prior, data, place):
    return np.searchsorted(data.ends, place, side="right")


@base.implements(multiplicity.note_log_weight, SharedLabelsPrior)
def _note_log_weight(prior, params, log_weight):
    params[1] = log_weight


@base.implements(base.predictive_size, SharedLabelsPrior)
def _cache_size(prior):
    return 1 + 2 * base.stats_size(prior)


@base.implements(optional.begin_tile, SharedLabelsPrior)
def _begin_tile(prior, data):
    tile = optional.begin_tile(prior.rows, data.rows)
    return GroupsInTile(data, new_rows(), tile, new_rows(), new_rows(), new_scratch(1))


@base.implements(base.load_tile, SharedLabelsPrior)
def _load_tile(prior, data, rows, tile):
    for t in range(TILE):
        tile.groups[t] = rows[t]


@jitted
def _add_densities(prior, tile, n_filled, params, out, scratch):
    """Add the log densities of the first `n_filled` rows of a tile to those of their groups."""
    for s in range(n_filled, TILE):
        tile.rows[s] = tile.rows[n_filled - 1]
    base.load_tile(prior, tile.data.rows, tile.rows, tile.tile)
    base.fill_log_density(prior, tile.tile, params, tile.densities, scratch)
    for s in range(n_filled):
        out[tile.owners[s]] += tile.data.counts[tile.rows[s]] * tile.densities[s]


@base.implements(base.fill_log_density, SharedLabelsPrior)
def _fill_log_density(prior, tile, params, out, scratch):
    data, groups = tile.data, tile.groups
    params_of_rows = part_of(params, N_BEFORE, base.params_size(prior.rows))
    # A short tile is padded with copies of its last group, which may have many rows.
    n_groups = TILE
    while n_groups > 1 and groups[n_groups - 1] == groups[n_groups - 2]:
        n_groups -= 1
    n_filled = 0
    for t in range(n_groups):
        out[t] = params[0]
        n_more = multiplicity.multiplicity(prior, data, groups[t]) - 1.0
        if n_more > 0.0:
            out[t] += n_more * params[1]
        for j in range(data.bounds[groups[t]], data.bounds[groups[t] + 1]):
            tile.rows[n_filled] = data.members[j]
            tile.owners[n_filled] = t
            n_filled += 1
            if n_filled == TILE:
                _add_densities(prior.rows, tile, n_filled, params_of_rows, out, scratch)
                n_filled = 0
    if n_filled > 0:
        _add_densities(prior.rows, tile, n_filled, params_of_rows, out, scratch)
    for t in range(n_groups, TILE):
        out[t] = out[n_groups - 1]


@base.implements(base.add_row, SharedLabelsPrior)
def _add_row(prior, data, i, stats):
    size = base.stats_size(prior.rows)
    of_rows = part_of(stats, 1, size)
    stats[0] += multiplicity.multiplicity(prior, data, i)
    for j in range(data.bounds[i], data.bounds[i + 1]):
        row = data.members[j]
        count = data.counts[row]
        if count == 1.0:
            base.add_row(prior.rows, data.rows, row, of_rows)
        else:
            one = np.zeros(size)
            base.add_row(prior.rows, data.rows, row, one)
            for s in range(size):
                of_rows[s] += count * one[s]


@base.implements(base.log_marginal, SharedLabelsPrior)
def _log_marginal(prior, stats):
    return base.log_marginal(prior.rows, part_of(stats, 1, base.stats_size(prior.rows)))


@base.implements(base.draw_parameters, SharedLabelsPrior)
def _draw_parameters(prior, stats, rng, params):
    n_stats, n_params = base.stats_size(prior.rows), base.params_size(prior.rows)
    of_rows = part_of(stats, 1, n_stats)
    base.draw_parameters(prior.rows, of_rows, rng, part_of(params, N_BEFORE, n_params))
    params[:N_BEFORE] = 0.0


@base.implements(base.overrelax_parameters, SharedLabelsPrior)
def _overrelax_parameters(prior, stats, rng, params):
    n_stats, n_params = base.stats_size(prior.rows), base.params_size(prior.rows)
    of_rows = part_of(stats, 1, n_stats)
    base.overrelax_parameters(prior.rows, of_rows, rng, part_of(params, N_BEFORE, n_params))
    params[:N_BEFORE] = 0.0


@base.implements(base.mean_parameters, SharedLabelsPrior)
def _mean_parameters(prior, stats, params):
    n_stats, n_params = base.stats_size(prior.rows), base.params_size(prior.rows)
    base.mean_parameters(
        prior.rows, part_of(stats, 1, n_stats), part_of(params, N_BEFORE, n_params)
    )
    params[:N_BEFORE] = 0.0


@jitted
def _refresh(prior, cache, size):
    """Compute the log marginal of the statistics of a cache, and note how large they have been."""
    for s in range(size):
        cache[1 + size + s] = max(cache[1 + size + s], abs(cache[1 + s]))
    cache[0] = base.log_marginal(prior, part_of(cache, 1, size))


@base.implements(base.fill_predictive, SharedLabelsPrior)
def _fill_cache(prior, stats, cache):
    size = base.stats_size(prior)
    for s in range(size):
        cache[1 + s] = stats[s]
        cache[1 + size + s] = 0.0
    _refresh(prior, cache, size)


@base.implements(base.predictive_add, SharedLabelsPrior)
def _cache_add(prior, data, i, cache):
    size = base.stats_size(prior)
    base.add_row(prior, data, i, part_of(cache, 1, size))
    _refresh(prior, cache, size)


@base.implements(base.predictive_remove, SharedLabelsPrior)
def _cache_remove(prior, data, i, cache):
    size = base.stats_size(prior)
    removed = np.zeros(size)
    base.add_row(prior, data, i, removed)
    for s in range(size):
        cache[1 + s] -= removed[s]
        most = cache[1 + size + s]
        # Sums of counts are exact, and often become zero.
        is_whole = most < _MOST_EXACT and most == np.floor(most) and cache[1 + s] == 0.0
        if abs(cache[1 + s]) < _LEAST_KEPT * most and not is_whole:
            return False
    _refresh(prior, cache, size)
    return True


@base.implements(base.log_predictive, SharedLabelsPrior)
def _log_predictive(prior, data, i, cache):
    """Return the log predictive density of a group, eq. (7.50), a difference of log marginals."""
    size = base.stats_size(prior)
    joined = np.empty(size)
    for s in range(size):
        joined[s] = cache[1 + s]
    base.add_row(prior, data, i, joined)
    return base.log_marginal(prior, joined) - cache[0]
