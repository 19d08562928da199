"""Predictive density of one observation under `diag_normal`, updated as they come and go.

Layout of a cache: log normaliser, n, per feature the posterior mean (D) and b_n (D), then the
relative precision of b_n that is left after removals.

Layout of the table, per cluster: posterior mean (D), and s and h (D each) of the log predictive
c - sum_d h_d log(1 + s_d gap_d^2); then c, and the c that the cluster would have with its b_n and
one observation less.
"""

import math

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.diag_normal import DiagNormalPrior, posterior_of_column
from pymc_dpsplit.kernels.cluster_blocks import fill_student_columns
from pymc_dpsplit.kernels.cluster_table import WIDE, place_of
from pymc_dpsplit.kernels.digits import keeps_digits
from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted
from pymc_dpsplit.kernels.logarithm import log_one_plus, log_plainly
from pymc_dpsplit.kernels.special import log_half_step
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch, new_tile
from pymc_dpsplit.kernels.views import part_of, row_of

_LOG_2PI = math.log(2.0 * math.pi)
# A product of numbers between them and one more b_n is in the range of float64.
_SMALL, _LARGE = 1e-60, 1e60


@base.implements(base.predictive_size, DiagNormalPrior)
def _cache_size(prior):
    return 3 + 2 * prior.mu0.shape[0]


@base.implements(collapsed.log_norm_of_size, DiagNormalPrior, uncounted=True)
def _log_norm_of_size(prior, n):
    total, of_column = 0.0, 0.0
    for d in range(prior.mu0.shape[0]):
        is_like_last = d > 0 and prior.a0[d] == prior.a0[d - 1]
        if not is_like_last or prior.kappa0[d] != prior.kappa0[d - 1]:
            kappa_n, a_n = prior.kappa0[d] + n, prior.a0[d] + 0.5 * n
            log_scale = _LOG_2PI + math.log((kappa_n + 1.0) / kappa_n)
            of_column = log_half_step(a_n) - 0.5 * log_scale
        total += of_column
    return total


@jitted_inlined_uncounted
def _log_of_b(prior, cache):
    """Sum of the logarithms of b_n."""
    n_features, total, product = prior.mu0.shape[0], 0.0, 1.0
    for d in range(n_features):
        product *= cache[2 + n_features + d]
        if not _SMALL < product < _LARGE:
            total += math.log(product)
            product = 1.0
    return total + log_plainly(product)


@jitted
def _refresh_normaliser(prior, cache):
    """Recompute the normaliser of the Student t predictive from n and b_n."""
    cache[0] = collapsed.log_norm_of_size(prior, cache[1]) - 0.5 * _log_of_b(prior, cache)


@base.implements(base.fill_predictive, DiagNormalPrior)
def _fill_cache(prior, stats, cache):
    n_features = prior.mu0.shape[0]
    cache[1] = stats[0]
    for d in range(n_features):
        mean, _, _, b_n = posterior_of_column(
            prior, stats[0], stats[1 + d], stats[1 + n_features + d], d
        )
        cache[2 + d] = mean
        cache[2 + n_features + d] = b_n
    cache[-1] = 1.0
    _refresh_normaliser(prior, cache)


@jitted_inlined_uncounted
def _take_in(prior, data, i, cache):
    """Add an observation to n, the means and b_n."""
    n_features = data.shape[1]
    n = cache[1]
    for d in range(n_features):
        kappa_n = prior.kappa0[d] + n
        gap = data[i, d] - prior.shift[d] - cache[2 + d]
        step = gap / (kappa_n + 1.0)
        cache[2 + n_features + d] += 0.5 * kappa_n * gap * step
        cache[2 + d] += step
    cache[1] = n + 1.0


@jitted_inlined_uncounted
def _take_out(prior, data, i, cache):
    """Remove an observation from n, the means and b_n; return whether enough digits are left."""
    n_features = data.shape[1]
    n = cache[1]
    kept = 1.0
    for d in range(n_features):
        kappa_n = prior.kappa0[d] + n
        gap = data[i, d] - prior.shift[d] - cache[2 + d]
        step = gap / (kappa_n - 1.0)
        before = cache[2 + n_features + d]
        after = before - 0.5 * kappa_n * gap * step
        cache[2 + d] -= step
        cache[2 + n_features + d] = after
        kept = min(kept, after / before)
    cache[1] = n - 1.0
    return keeps_digits(cache, -1, kept)


@base.implements(base.predictive_add, DiagNormalPrior, uncounted=True)
def _cache_add(prior, data, i, cache):
    _take_in(prior, data, i, cache)
    _refresh_normaliser(prior, cache)


@base.implements(base.predictive_remove, DiagNormalPrior, uncounted=True)
def _cache_remove(prior, data, i, cache):
    if not _take_out(prior, data, i, cache):
        return False
    _refresh_normaliser(prior, cache)
    return True


@base.implements(base.log_predictive, DiagNormalPrior, uncounted=True)
def _log_predictive(prior, data, i, cache):
    """Return the Student t log predictive density, eq. (7.3) as a ratio of marginals."""
    n_features = data.shape[1]
    n = cache[1]
    total = cache[0]
    for d in range(n_features):
        kappa_n = prior.kappa0[d] + n
        a_n = prior.a0[d] + 0.5 * n
        gap = data[i, d] - prior.shift[d] - cache[2 + d]
        scale = cache[2 + n_features + d] * (kappa_n + 1.0) / kappa_n
        total -= (a_n + 0.5) * math.log1p(0.5 * gap * gap / scale)
    return total


@base.implements(base.fill_log_predictive_of_rows, DiagNormalPrior)
def _fill_log_predictive_of_rows(prior, data, rows, cache, out):
    """Write the densities of `log_predictive` tile by tile."""
    n_features, n = data.shape[1], cache[1]
    of_tile, tile = new_rows(), new_tile(n_features)
    grown, total = new_scratch(1), new_scratch(1)
    for first in range(0, rows.shape[0], TILE):
        fill_members(of_tile, rows, first)
        base.load_tile(prior, data, of_tile, tile)
        for t in range(TILE):
            total[t] = cache[0]
        for d in range(n_features):
            kappa_n = prior.kappa0[d] + n
            half, mean = prior.a0[d] + 0.5 * n + 0.5, cache[2 + d]
            scale = cache[2 + n_features + d] * (kappa_n + 1.0) / kappa_n
            for t in range(TILE):
                gap = tile[d * TILE + t] - mean
                grown[t] = 0.5 * gap * gap / scale
            for t in range(TILE):
                total[t] -= half * log_one_plus(grown[t])
        for t in range(min(TILE, rows.shape[0] - first)):
            out[first + t] = total[t]


@base.implements(collapsed.table_height, DiagNormalPrior)
def _table_height(prior):
    return 2 + 3 * prior.mu0.shape[0]


@base.implements(collapsed.add_to_cluster, DiagNormalPrior, inline=True, uncounted=True)
def _add_to_cluster(prior, data, i, clusters, p):
    cache = row_of(clusters.caches, p)
    _take_in(prior, data, i, cache)
    norm = collapsed.kept_norm_of_size(prior, clusters, cache[1])
    cache[0] = norm - 0.5 * _log_of_b(prior, cache)


@base.implements(collapsed.remove_from_cluster, DiagNormalPrior, inline=True, uncounted=True)
def _remove_from_cluster(prior, data, i, clusters, p):
    cache = row_of(clusters.caches, p)
    if not _take_out(prior, data, i, cache):
        return False
    norm = collapsed.kept_norm_of_size(prior, clusters, cache[1])
    cache[0] = norm - 0.5 * _log_of_b(prior, cache)
    return True


@base.implements(collapsed.tabulate, DiagNormalPrior, inline=True, uncounted=True)
def _tabulate(prior, clusters, p):
    cache, table = row_of(clusters.caches, p), clusters.table
    n_features, n = prior.mu0.shape[0], cache[1]
    at = place_of(collapsed.table_height(prior), p)
    for d in range(n_features):
        kappa_n = prior.kappa0[d] + n
        table[at] = cache[2 + d]
        spread = cache[2 + n_features + d] * (kappa_n + 1.0)
        table[at + n_features * WIDE] = 0.5 * kappa_n / spread
        table[at + 2 * n_features * WIDE] = prior.a0[d] + 0.5 * (n + 1.0)
        at += WIDE
    at += 2 * n_features * WIDE
    table[at] = cache[0]
    norm = collapsed.kept_norm_of_size(prior, clusters, n)
    norm_without = collapsed.kept_norm_of_size(prior, clusters, n - 1.0)
    table[at + WIDE] = cache[0] + (norm_without - norm)


@base.implements(collapsed.fill_log_predictives, DiagNormalPrior, inline=True, uncounted=True)
def _fill_log_predictives(prior, data, i, clusters, n, own, least, drop, out):
    """Write the log predictives; that given the rest of a cluster is by eq. (4.2)."""
    d, height = prior.mu0.shape[0], collapsed.table_height(prior)
    row, ratios = part_of(clusters.scratch, 0, d), part_of(clusters.scratch, d, d)
    n_members = clusters.sizes[own] if own >= 0 else 1.0
    for j in range(d):
        row[j] = data[i, j] - prior.shift[j]
        kappa_n = prior.kappa0[j] + n_members
        ratios[j] = (kappa_n + 1.0) / (kappa_n - 1.0)
    return fill_student_columns(
        clusters.table, height, row, n, own, ratios, least, drop, clusters.sizes, out
    )
