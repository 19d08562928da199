"""Kernels of the Multinomial family, docs/method.md, eq. (7.22)-(7.26).

Rows are compressed: the time of an operation on a row is proportional to its number of non-zero
entries.  An operation on a cluster passes through all V columns once.

Layout.  stats: n, sum of the log coefficients of the rows, sums (V).  params: 0, log p (V).
cache: total, sums (V).  Sums of counts are exact in float64.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components import base, collapsed, optional
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.lines import zeros_on_lines
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.sparse_sums import WIDTH, fill_sums, sum_entries
from pymc_dpsplit.kernels.special import FEW, log_rising, log_rising_over
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.kernels.transposition import transpose_rows
from pymc_dpsplit.kernels.views import part_of


class MultinomialPrior(NamedTuple):
    """`a0` is float64 of shape (V,), `total` its sum; `shift` is not used."""

    shift: np.ndarray
    a0: np.ndarray
    total: float


class CountRows(NamedTuple):
    """Rows (N, V) of counts as kernels read them.

    Attributes
    ----------
    indptr, indices, values : ndarrays of int64, int32, int32
        See `data.sparse_rows.SparseRows`.
    log_coefficients : ndarray of float64, shape (N,)
        Log multinomial coefficient of each row, or `LOG_ZERO` for rows that are not counts.
    shape : tuple of int
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    log_coefficients: np.ndarray
    shape: tuple[int, int]


class RowsInTile(NamedTuple):
    """A tile: the data and the indices (TILE,) of its rows."""

    data: CountRows
    rows: np.ndarray


class Table(NamedTuple):
    """Log probabilities of all atoms, interleaved in blocks of WIDTH atoms.

    Attributes
    ----------
    constants : ndarray of float64, shape (B * WIDTH,)
        Constant term of the log density of each atom.
    logs : ndarray of float64, shape (B, V, WIDTH)
    """

    constants: np.ndarray
    logs: np.ndarray


@base.implements(base.stats_size, MultinomialPrior)
def _stats_size(prior):
    return 2 + prior.a0.shape[0]


@base.implements(base.params_size, MultinomialPrior)
def _params_size(prior):
    return 1 + prior.a0.shape[0]


@base.implements(base.predictive_size, MultinomialPrior)
def _cache_size(prior):
    return 1 + prior.a0.shape[0]


@base.implements(optional.begin_tile, MultinomialPrior)
def _begin_tile(prior, data):
    return RowsInTile(data, new_rows())


@base.implements(optional.entry_of, MultinomialPrior)
def _entry_of(prior, data, i, j):
    return np.nan


@base.implements(base.load_tile, MultinomialPrior)
def _load_tile(prior, data, rows, tile):
    for t in range(TILE):
        tile.rows[t] = rows[t]


@base.implements(base.fill_log_density, MultinomialPrior)
def _fill_log_density(prior, tile, params, out, scratch):
    data = tile.data
    logs = part_of(params, 1, prior.a0.shape[0])
    for t in range(TILE):
        i = tile.rows[t]
        total = sum_entries(data.indices, data.values, data.indptr[i], data.indptr[i + 1], logs)
        out[t] = (params[0] + data.log_coefficients[i]) + total


@base.implements(optional.find_table, MultinomialPrior)
def _find_table(prior, params):
    n_atoms, n_columns = params.shape[0], prior.a0.shape[0]
    n_blocks = (n_atoms + WIDTH - 1) // WIDTH
    constants = np.zeros(n_blocks * WIDTH)
    logs = zeros_on_lines(n_blocks * n_columns * WIDTH).reshape(n_blocks, n_columns, WIDTH)
    for k in range(n_atoms):
        constants[k] = params[k, 0]
        block, a = logs[k // WIDTH], k % WIDTH
        for v in range(n_columns):
            block[v, a] = params[k, 1 + v]
    return Table(constants, logs)


@base.implements(optional.fill_by_table, MultinomialPrior)
def _fill_by_table(prior, data, start, stop, table, out):
    rows, places, nothing = new_rows(), np.arange(TILE), np.zeros(WIDTH)
    sums, own = new_scratch(WIDTH).reshape(TILE, WIDTH), new_scratch(1)
    # Atoms in the outer loop, so that one block stays in the cache while all rows are read.
    for block in range(table.logs.shape[0]):
        logs = table.logs[block]
        for tile in range((stop - start + TILE - 1) // TILE):
            fill_range(rows, start + tile * TILE, stop)
            fill_sums(data.indptr, data.indices, data.values, rows, logs, sums)
            for t in range(TILE):
                own[t] = data.log_coefficients[rows[t]]
            by_atom = out[tile, block * WIDTH : (block + 1) * WIDTH]
            transpose_rows(sums, nothing, places, by_atom.reshape(WIDTH * TILE))
            for a in range(WIDTH):
                constant = table.constants[block * WIDTH + a]
                for t in range(TILE):
                    by_atom[a, t] += constant + own[t]


@base.implements(base.add_row, MultinomialPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0
    stats[1] += data.log_coefficients[i]
    for j in range(data.indptr[i], data.indptr[i + 1]):
        stats[2 + np.uint32(data.indices[j])] += data.values[j]


@base.implements(base.log_marginal, MultinomialPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.24)."""
    n_columns, n_counts, n_single, total = prior.a0.shape[0], 0.0, 0.0, stats[1]
    for v in range(n_columns):
        n_counts += stats[2 + v]
    c = prior.total + n_counts
    for v in range(n_columns):
        n = stats[2 + v]
        if n > FEW:
            total += log_rising_over(prior.a0[v], n, c)
        elif n > 0.0:
            n_single += n
            total += log_rising(prior.a0[v], n)
    return total - log_rising_over(prior.total, n_counts, c) - n_single * math.log(c)


@base.implements(base.draw_parameters, MultinomialPrior)
def _draw_parameters(prior, stats, rng, params):
    n_columns = prior.a0.shape[0]
    highest = -np.inf
    for v in range(n_columns):
        log_gamma = draw_log_gamma(rng, prior.a0[v] + stats[2 + v])
        params[1 + v] = log_gamma
        highest = max(highest, log_gamma)
    total = 0.0
    for v in range(n_columns):
        total += math.exp(params[1 + v] - highest)
    log_total = highest + math.log(total)
    params[0] = 0.0
    for v in range(n_columns):
        params[1 + v] -= log_total


@base.implements(base.mean_parameters, MultinomialPrior)
def _mean_parameters(prior, stats, params):
    total = 0.0
    for v in range(prior.a0.shape[0]):
        total += prior.a0[v] + stats[2 + v]
    log_total = math.log(total)
    params[0] = 0.0
    for v in range(prior.a0.shape[0]):
        params[1 + v] = math.log(prior.a0[v] + stats[2 + v]) - log_total


@base.implements(base.fill_predictive, MultinomialPrior)
def _fill_cache(prior, stats, cache):
    cache[0] = 0.0
    for v in range(prior.a0.shape[0]):
        cache[0] += stats[2 + v]
        cache[1 + v] = stats[2 + v]


@jitted
def _change(data, i, cache, sign):
    """Add the counts of an observation, multiplied by `sign`, to a cache."""
    for j in range(data.indptr[i], data.indptr[i + 1]):
        by = sign * data.values[j]
        cache[0] += by
        cache[1 + np.int64(data.indices[j])] += by


@base.implements(base.predictive_add, MultinomialPrior)
def _cache_add(prior, data, i, cache):
    _change(data, i, cache, 1.0)


@base.implements(base.predictive_remove, MultinomialPrior)
def _cache_remove(prior, data, i, cache):
    _change(data, i, cache, -1.0)
    return True


@base.implements(base.log_predictive, MultinomialPrior)
def _log_predictive(prior, data, i, cache):
    """Return the Dirichlet-multinomial log predictive probability, eq. (7.25)."""
    total, n_counts, n_single = data.log_coefficients[i], 0.0, 0.0
    c = prior.total + cache[0]
    for j in range(data.indptr[i], data.indptr[i + 1]):
        v, n = np.int64(data.indices[j]), np.float64(data.values[j])
        n_counts += n
        if n > FEW:
            total += log_rising_over(prior.a0[v] + cache[1 + v], n, c)
        else:
            n_single += n
            total += log_rising(prior.a0[v] + cache[1 + v], n)
    return total - log_rising_over(c, n_counts, c) - n_single * math.log(c)


@base.implements(collapsed.log_predictive_without, MultinomialPrior)
def _log_predictive_without(prior, data, i, cache, spare):
    """Take the counts out and put them back: they are exact, and the cache is long."""
    _change(data, i, cache, -1.0)
    density = base.log_predictive(prior, data, i, cache)
    _change(data, i, cache, 1.0)
    return density
