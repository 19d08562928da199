"""Predictive density of one observation under `family`, updated as observations come and go.

Layout of a cache: log predictive normaliser, n, log of the factor by which removals since the last
`fill_predictive` have reduced the determinant of the Cholesky factor, posterior mean (D), Cholesky
factor of psi_n (D x D), scratch (D).

Layout of the table, per cluster: posterior mean (D); inverse diagonal of the Cholesky factor (D);
its elements below the diagonal as `fill_triangle` writes them; then c, f and h of the log
predictive c - h log(1 + f q), q the squared distance under the factor; and the c that the cluster
would have with its determinant and one observation less.
"""

import math

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.mv_normal.family import MvNormalPrior
from pymc_dpsplit.kernels.cluster_blocks import fill_student
from pymc_dpsplit.kernels.cluster_solves import fill_squared_solves, fill_triangle
from pymc_dpsplit.kernels.cluster_table import WIDE, place_of
from pymc_dpsplit.kernels.digits import LEAST_KEPT
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted
from pymc_dpsplit.kernels.linalg import (
    add_rank_one,
    invert_lower,
    log_diagonal_sum,
    remove_rank_one,
    squared_solve,
)
from pymc_dpsplit.kernels.logarithm import log_one_plus
from pymc_dpsplit.kernels.normal_wishart import fill_posterior, set_density
from pymc_dpsplit.kernels.special import log_rising_by_halves
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch, new_tile
from pymc_dpsplit.kernels.views import part_of, row_of, square_of

_LOG_PI = math.log(math.pi)
# If downdates reduce the determinant of the factor by more than this, half of its digits are lost.
_LOG_DIGITS = 0.5 * math.log(LEAST_KEPT)


@base.implements(base.predictive_size, MvNormalPrior)
def _cache_size(prior):
    n_features = prior.mu0.shape[0]
    return 3 + 2 * n_features + n_features * n_features


@jitted_inlined_uncounted
def _after_factor(n_features):
    """Return where the scratch of a cache begins."""
    return 3 + n_features + n_features * n_features


@base.implements(collapsed.log_norm_of_size, MvNormalPrior, uncounted=True)
def _log_norm_of_size(prior, n):
    n_features = prior.mu0.shape[0]
    kappa_n = prior.kappa0 + n
    freedom = prior.nu0 + n - n_features + 1.0
    log_scale = _LOG_PI + math.log((kappa_n + 1.0) / kappa_n)
    return log_rising_by_halves(0.5 * freedom, n_features) - 0.5 * n_features * log_scale


@jitted
def _refresh_normaliser(prior, cache):
    """Recompute the normaliser of the Student t predictive from n and the factor of psi_n."""
    n_features = prior.mu0.shape[0]
    factor = square_of(cache, 3 + n_features, n_features)
    cache[0] = collapsed.log_norm_of_size(prior, cache[1]) - log_diagonal_sum(factor)


@base.implements(base.fill_predictive, MvNormalPrior)
def _fill_cache(prior, stats, cache):
    n_features = prior.mu0.shape[0]
    cache[1] = stats[0]
    cache[2] = 0.0
    factor = square_of(cache, 3 + n_features, n_features)
    fill_posterior(prior, stats, cache[3 : 3 + n_features], factor)
    _refresh_normaliser(prior, cache)


@jitted_inlined_uncounted
def _take_in(prior, data, i, cache):
    """Update mean and factor of psi_n by a rank-one matrix, O(D^2); Das (2014), eq. 15."""
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    gap = part_of(cache, _after_factor(n_features), n_features)
    scale = math.sqrt(kappa_n / (kappa_n + 1.0))
    for d in range(n_features):
        difference = data[i, d] - prior.shift[d] - cache[3 + d]
        cache[3 + d] += difference / (kappa_n + 1.0)
        gap[d] = scale * difference
    add_rank_one(square_of(cache, 3 + n_features, n_features), gap)
    cache[1] += 1.0


@jitted_inlined_uncounted
def _take_out(prior, data, i, cache, before):
    """Downdate mean and factor of psi_n by a rank-one matrix, O(D^2); Das (2014), eq. 16.

    `before` is the sum of the logarithms of the diagonal of the factor as it is.  Returns that
    of the new factor, NaN if it must be computed anew.
    """
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    gap = part_of(cache, _after_factor(n_features), n_features)
    scale = math.sqrt(kappa_n / (kappa_n - 1.0))
    for d in range(n_features):
        difference = data[i, d] - prior.shift[d] - cache[3 + d]
        cache[3 + d] -= difference / (kappa_n - 1.0)
        gap[d] = scale * difference
    cache[1] -= 1.0
    factor = square_of(cache, 3 + n_features, n_features)
    if not remove_rank_one(factor, gap):
        return math.nan
    log_diagonal = log_diagonal_sum(factor)
    # Cancellation accumulates: a later removal can amplify an earlier rounding error.
    cache[2] += log_diagonal - before
    return log_diagonal if cache[2] > _LOG_DIGITS else math.nan


@base.implements(base.predictive_add, MvNormalPrior, uncounted=True)
def _cache_add(prior, data, i, cache):
    _take_in(prior, data, i, cache)
    _refresh_normaliser(prior, cache)


@base.implements(base.predictive_remove, MvNormalPrior, uncounted=True)
def _cache_remove(prior, data, i, cache):
    n_features = data.shape[1]
    before = log_diagonal_sum(square_of(cache, 3 + n_features, n_features))
    log_diagonal = _take_out(prior, data, i, cache, before)
    if math.isnan(log_diagonal):
        return False
    cache[0] = collapsed.log_norm_of_size(prior, cache[1]) - log_diagonal
    return True


@base.implements(base.log_predictive, MvNormalPrior, uncounted=True)
def _log_predictive(prior, data, i, cache):
    """Return the Student t log predictive density, eq. (7.8)."""
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    gap = part_of(cache, _after_factor(n_features), n_features)
    for d in range(n_features):
        gap[d] = data[i, d] - prior.shift[d] - cache[3 + d]
    factor = square_of(cache, 3 + n_features, n_features)
    squared = squared_solve(factor, gap) * kappa_n / (kappa_n + 1.0)
    return cache[0] - 0.5 * (prior.nu0 + cache[1] + 1.0) * math.log1p(squared)


@base.implements(base.fill_log_predictive_of_rows, MvNormalPrior)
def _fill_log_predictive_of_rows(prior, data, rows, cache, out):
    """Write the densities of `log_predictive` tile by tile."""
    n_features = data.shape[1]
    kappa_n = prior.kappa0 + cache[1]
    half = 0.5 * (prior.nu0 + cache[1] + 1.0)
    whitening = np.empty((n_features, n_features))
    invert_lower(square_of(cache, 3 + n_features, n_features), whitening)
    params = np.empty(base.params_size(prior))
    set_density(whitening, part_of(cache, 3, n_features), params)
    params[0] = 0.0
    of_tile, tile = new_rows(), new_tile(n_features)
    minus_half, scratch = new_scratch(1), new_scratch(1)
    for first in range(0, rows.shape[0], TILE):
        fill_members(of_tile, rows, first)
        base.load_tile(prior, data, of_tile, tile)
        base.fill_log_density(prior, tile, params, minus_half, scratch)
        for t in range(TILE):
            grown = -2.0 * minus_half[t] * (kappa_n / (kappa_n + 1.0))
            scratch[t] = cache[0] - half * log_one_plus(grown)
        for t in range(min(TILE, rows.shape[0] - first)):
            out[first + t] = scratch[t]


@base.implements(collapsed.table_height, MvNormalPrior)
def _table_height(prior):
    n_features = prior.mu0.shape[0]
    return 4 + 2 * n_features + n_features * (n_features - 1) // 2


@base.implements(collapsed.add_to_cluster, MvNormalPrior, inline=True, uncounted=True)
def _add_to_cluster(prior, data, i, clusters, p):
    cache = row_of(clusters.caches, p)
    _take_in(prior, data, i, cache)
    norm = collapsed.kept_norm_of_size(prior, clusters, cache[1])
    cache[0] = norm - log_diagonal_sum(square_of(cache, 3 + data.shape[1], data.shape[1]))


@base.implements(collapsed.remove_from_cluster, MvNormalPrior, inline=True, uncounted=True)
def _remove_from_cluster(prior, data, i, clusters, p):
    cache = row_of(clusters.caches, p)
    before = collapsed.kept_norm_of_size(prior, clusters, cache[1]) - cache[0]
    log_diagonal = _take_out(prior, data, i, cache, before)
    if math.isnan(log_diagonal):
        return False
    cache[0] = collapsed.kept_norm_of_size(prior, clusters, cache[1]) - log_diagonal
    return True


@base.implements(collapsed.tabulate, MvNormalPrior, inline=True, uncounted=True)
def _tabulate(prior, clusters, p):
    cache, table = row_of(clusters.caches, p), clusters.table
    n_features, n = prior.mu0.shape[0], cache[1]
    factor = square_of(cache, 3 + n_features, n_features)
    at = place_of(collapsed.table_height(prior), p)
    for d in range(n_features):
        table[at + d * WIDE] = cache[3 + d]
        table[at + (n_features + d) * WIDE] = 1.0 / factor[d, d]
    fill_triangle(factor, n_features, table, at + 2 * n_features * WIDE)
    at += (collapsed.table_height(prior) - 4) * WIDE
    kappa_n = prior.kappa0 + n
    table[at] = cache[0]
    table[at + WIDE] = kappa_n / (kappa_n + 1.0)
    table[at + 2 * WIDE] = 0.5 * (prior.nu0 + n + 1.0)
    norm = collapsed.kept_norm_of_size(prior, clusters, n)
    norm_without = collapsed.kept_norm_of_size(prior, clusters, n - 1.0)
    table[at + 3 * WIDE] = cache[0] + (norm_without - norm)


@base.implements(collapsed.fill_log_predictives, MvNormalPrior, inline=True, uncounted=True)
def _fill_log_predictives(prior, data, i, clusters, n, own, least, drop, out):
    """Write the log predictives; that given the rest of a cluster is by eq. (4.2).

    The determinant lemma gives the determinant without the observation.
    """
    d, height, table = prior.mu0.shape[0], collapsed.table_height(prior), clusters.table
    solved, row = part_of(clusters.scratch, 0, d * WIDE), part_of(clusters.scratch, d * WIDE, d)
    for j in range(d):
        row[j] = data[i, j] - prior.shift[j]
    kappa_n = prior.kappa0 + (clusters.sizes[own] if own >= 0 else 1.0)
    ratio = (kappa_n + 1.0) / (kappa_n - 1.0)
    fill_squared_solves(table, height, row, n, own, ratio, least, drop, clusters.sizes, solved, out)
    return fill_student(table, height, height - 4, out, n, own, ratio, 1.0, out)
