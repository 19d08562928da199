"""Gaussian clusters with one variance for all features and a normal-inverse-gamma prior.

sigma^2 ~ InvGamma(a0, b0) and mu | sigma^2 ~ N(mu0, sigma^2 / kappa0 I); see Murphy (2007),
"Conjugate Bayesian analysis of the Gaussian distribution", section 6, with n D squares instead of
n, and docs/method.md, eq. (7.29)-(7.30).

Layout.  stats: n, sums (D), sum of squares over all features.  params: log normaliser, mu (D),
1 / sigma repeated for each feature (D), the form that `fill_log_independent` reads.  cache: log
normaliser, n, b_n, the relative precision of b_n left after removals, mean (D).
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.by_column import ByColumn
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.doubtful_rows import warn_of_rows
from pymc_dpsplit.components.hyperparameters import POSITIVE_NUMBER, REAL_PER_COLUMN, Requirements
from pymc_dpsplit.components.parameter_laws import draw_gamma
from pymc_dpsplit.components.prior_choice.partitions import share_given
from pymc_dpsplit.components.prior_choice.variances import choose_variances, shape_with_mean
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.cluster_blocks import fill_student
from pymc_dpsplit.kernels.cluster_table import WIDE, place_of
from pymc_dpsplit.kernels.diagonal import fill_log_independent
from pymc_dpsplit.kernels.digits import keeps_digits
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import log_rising_by_halves, positive_exp
from pymc_dpsplit.kernels.squares import add_squares
from pymc_dpsplit.kernels.tiles import load_dense_tile
from pymc_dpsplit.kernels.views import part_of, row_of

_LOG_2PI = math.log(2.0 * math.pi)


class SphericalNormalPrior(NamedTuple):
    """Hyperparameters for kernels; `mu0` (D,) is relative to the shift of the data."""

    shift: np.ndarray
    mu0: np.ndarray
    kappa0: float
    a0: float
    b0: float


class SphericalNormal(ByColumn):
    """Normal-inverse-gamma clusters of vectors, with one variance for all features.

    ``sigma^2 ~ InvGamma(a0, b0)``, ``mu | sigma^2 ~ N(mu0, sigma^2 / kappa0 I)`` and observations
    of the cluster are ``N(mu, sigma^2 I)`` [1]_, with density
    ``exp(-|x - mu|^2 / (2 sigma^2)) / (2 pi sigma^2)^(D / 2)``.

    Parameters
    ----------
    mu0 : float or array of shape (D,)
        Mean of the cluster means, in the units of the data.
    kappa0 : float
        Prior precision of the mean, in units of observations; positive.
    a0 : float
        Shape of the inverse gamma; positive.
    b0 : float
        Scale of the inverse gamma, in squared units of the data; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_mu`` (K, D), the means, and ``x_sigma`` (K,), the
    standard deviations.  `from_data` chooses ``mu0``, ``kappa0``, ``a0`` and ``b0`` by the data.

    Features should share one unit and scale, as clusters are spherical; otherwise use `DiagNormal`.

    References
    ----------
    .. [1] Murphy (2007), Conjugate Bayesian analysis of the Gaussian distribution, section 6, where
       a row counts as D observations of the variance.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.SphericalNormal(mu0=[0.0, 5.0], kappa0=0.1, a0=2.0, b0=1.0)
    SphericalNormal(mu0=[0.0, 5.0], kappa0=0.1, a0=2.0, b0=1.0)
    """

    requirements: ClassVar[Requirements] = {
        "mu0": REAL_PER_COLUMN,
        "kappa0": POSITIVE_NUMBER,
        "a0": POSITIVE_NUMBER,
        "b0": POSITIVE_NUMBER,
    }
    row_ndim: ClassVar[int] = 1
    parameters: ClassVar[dict[str, int]] = {"mu": 1, "sigma": 0}
    graph_ndims: ClassVar[dict[str, int]] = parameters

    @classmethod
    def from_data(
        cls, observed: Any, *, within: float | None = None, a0: float | None = None
    ) -> "SphericalNormal":
        """Return hyperparameters chosen by the data, which decide how many clusters there are.

        ``mu0`` is the mean of the data.  ``b0 / (a0 - 1)``, the prior mean of a cluster's variance,
        is a share `within` of the variance of a feature, averaged over features.  The share,
        ``a0`` and ``kappa0`` are those under which one cluster, or another partition that is found
        quickly, has the highest log joint density.  Without evidence for others they are weakly
        informative: ``within = 0.1``, ``a0 = 2``, ``kappa0 = 0.1``.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Finite numbers; NaN or masked entries are ignored.
        within : float, optional
            Guess of the share of the variances that is left within clusters, above 0 and at most 1.
        a0 : float, optional
            Shape of the inverse gamma; larger than 1.  The larger, the more alike are the variances
            of clusters.

        Returns
        -------
        SphericalNormal

        Raises
        ------
        ValueError
            If the data are empty, not numeric or infinite, all entries of a column are missing, or
            an argument is out of range.

        Warns
        -----
        UserWarning
            If a column does not vary, or there are more columns than rows.

        Notes
        -----
        The choice is deterministic and looks at no more than 2000 rows, see
        docs/method.md, eq. (7.42).

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.SphericalNormal.from_data([[0.0, 1.0], [2.0, 3.0]]).hyperparameters["mu0"]
        array([1., 2.])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        warn_of_rows(rows)
        mu0, variance = moments_of(rows)
        average = float(variance.mean())
        scale = np.full(len(mu0), np.sqrt(average))
        shape = None if a0 is None else shape_with_mean(a0)
        chosen = choose_variances(rows, mu0, scale, share_given(within), shape, spherical=True)
        return cls(mu0=mu0, kappa0=chosen.kappa0, a0=chosen.a0, b0=chosen.b0 * average)

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> SphericalNormalPrior:
        kappa0, a0, b0 = (float(values[name]) for name in ("kappa0", "a0", "b0"))
        return SphericalNormalPrior(shift, values["mu0"] - shift, kappa0, a0, b0)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        d = shift.shape[0]
        return {"mu": params[:, 1 : 1 + d] + shift, "sigma": 1.0 / params[:, 1 + d]}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        d, sigma = shift.shape[0], parameters["sigma"]
        params = np.empty((sigma.shape[0], 1 + 2 * d))
        params[:, 0] = -d * (np.log(sigma) + 0.5 * _LOG_2PI)
        params[:, 1 : 1 + d] = parameters["mu"] - shift
        params[:, 1 + d :] = 1.0 / sigma[:, None]
        return params

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"mu": values["mu0"], "sigma": np.sqrt(values["b0"] / values["a0"])}

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of mu and sigma, eq. (7.29)."""
        mu, sigma = graph_parameters["mu"], graph_parameters["sigma"]
        mu0, kappa0, a0, b0 = (values[name] for name in ("mu0", "kappa0", "a0", "b0"))
        d, variance = mu.shape[1], sigma**2
        squared = ((mu - mu0) ** 2).sum(axis=1)
        log_mu = 0.5 * (d * (pt.log(kappa0) - _LOG_2PI - pt.log(variance)))
        log_mu = log_mu - 0.5 * kappa0 * squared / variance
        # The prior is on sigma^2, the density of sigma: the Jacobian is 2 sigma.
        log_sigma = a0 * pt.log(b0) - pt.gammaln(a0) - (a0 + 1.0) * pt.log(variance) - b0 / variance
        return log_mu + log_sigma + math.log(2.0) + pt.log(sigma)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        mu, sigma = graph_parameters["mu"], graph_parameters["sigma"]
        squared = ((rows - mu) ** 2).sum(axis=1)
        return -0.5 * squared / sigma**2 - rows.shape[1] * (pt.log(sigma) + 0.5 * _LOG_2PI)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        sigma = np.sqrt(values["b0"] / draw_gamma(rng, values["a0"], size))
        noise = rng.standard_normal((size, len(values["mu0"])))
        width = sigma / np.sqrt(values["kappa0"])
        return {"mu": values["mu0"] + width[:, None] * noise, "sigma": sigma}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        mu, sigma = parameters["mu"][labels], parameters["sigma"][labels]
        return mu + sigma[:, None] * rng.standard_normal(mu.shape)


@jitted
def _posterior(prior, stats):
    """Return kappa_n, a_n and b_n, eq. (7.30)."""
    d, n = prior.mu0.shape[0], stats[0]
    kappa_n, a_n = prior.kappa0 + n, prior.a0 + 0.5 * n * d
    if n == 0.0:
        return kappa_n, a_n, prior.b0
    scatter, gaps = stats[1 + d], 0.0
    for j in range(d):
        mean = stats[1 + j] / n
        scatter -= stats[1 + j] * mean
        gaps += (mean - prior.mu0[j]) ** 2
    # Rounding must not make the scatter negative, so that b_n >= b0 > 0.
    return kappa_n, a_n, prior.b0 + 0.5 * (max(scatter, 0.0) + prior.kappa0 * n / kappa_n * gaps)


@jitted
def _posterior_mean(prior, stats, j):
    return (prior.kappa0 * prior.mu0[j] + stats[1 + j]) / (prior.kappa0 + stats[0])


@base.implements(base.stats_size, SphericalNormalPrior)
def _stats_size(prior):
    return 2 + prior.mu0.shape[0]


@base.implements(base.params_size, SphericalNormalPrior)
def _params_size(prior):
    return 1 + 2 * prior.mu0.shape[0]


@base.implements(base.tile_size, SphericalNormalPrior)
def _tile_size(prior):
    return prior.mu0.shape[0]


@base.implements(base.predictive_size, SphericalNormalPrior)
def _cache_size(prior):
    return 4 + prior.mu0.shape[0]


@base.implements(base.load_tile, SphericalNormalPrior)
def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)


@base.implements(base.fill_log_density, SphericalNormalPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    d = prior.mu0.shape[0]
    mu, precision = part_of(params, 1, d), part_of(params, 1 + d, d)
    fill_log_independent(tile, mu, precision, params[0], out)


@base.implements(base.add_row, SphericalNormalPrior, uncounted=True)
def _add_row(prior, data, i, stats):
    d, squares = data.shape[1], 0.0
    stats[0] += 1.0
    for j in range(d):
        x = data[i, j] - prior.shift[j]
        stats[1 + j] += x
        squares += x * x
    stats[1 + d] += squares


@base.implements(base.add_groups, SphericalNormalPrior)
def _add_groups(prior, data, members, bounds, stats):
    n_features, shift = data.shape[1], prior.shift
    squares = np.empty(n_features)
    for k in range(stats.shape[0]):
        n = bounds[k + 1] - bounds[k]
        if n > 0:
            squares[:] = 0.0
            group, cluster = part_of(members, bounds[k], n), row_of(stats, k)
            cluster[0] += n
            add_squares(data, shift, group, part_of(cluster, 1, n_features), squares)
            for j in range(n_features):
                cluster[1 + n_features] += squares[j]


@base.implements(base.log_marginal, SphericalNormalPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.30)."""
    d = prior.mu0.shape[0]
    kappa_n, a_n, b_n = _posterior(prior, stats)
    total = 0.5 * d * (math.log(prior.kappa0 / kappa_n) - stats[0] * _LOG_2PI)
    total += math.lgamma(a_n) - math.lgamma(prior.a0)
    return total + prior.a0 * math.log(prior.b0) - a_n * math.log(b_n)


@jitted
def _set_precision(log_precision, d, params):
    params[0] = d * (log_precision - 0.5 * _LOG_2PI)
    precision = positive_exp(log_precision)
    for j in range(d):
        params[1 + d + j] = precision
    return precision


@base.implements(base.draw_parameters, SphericalNormalPrior)
def _draw_parameters(prior, stats, rng, params):
    d = prior.mu0.shape[0]
    kappa_n, a_n, b_n = _posterior(prior, stats)
    precision = _set_precision(0.5 * (draw_log_gamma(rng, a_n) - math.log(b_n)), d, params)
    width = 1.0 / (precision * math.sqrt(kappa_n))
    for j in range(d):
        params[1 + j] = _posterior_mean(prior, stats, j) + width * rng.standard_normal()


@base.implements(base.mean_parameters, SphericalNormalPrior)
def _mean_parameters(prior, stats, params):
    d = prior.mu0.shape[0]
    _, a_n, b_n = _posterior(prior, stats)
    _set_precision(0.5 * math.log(a_n / b_n), d, params)
    for j in range(d):
        params[1 + j] = _posterior_mean(prior, stats, j)


@base.implements(collapsed.log_norm_of_size, SphericalNormalPrior, uncounted=True)
def _log_norm_of_size(prior, n):
    d, kappa_n = prior.mu0.shape[0], prior.kappa0 + n
    log_scale = _LOG_2PI + math.log((kappa_n + 1.0) / kappa_n)
    return log_rising_by_halves(prior.a0 + 0.5 * n * d, d) - 0.5 * d * log_scale


@jitted
def _refresh_normaliser(prior, cache):
    """Recompute the normaliser of the Student t predictive from n and b_n."""
    log_b = prior.mu0.shape[0] * math.log(cache[2])
    cache[0] = collapsed.log_norm_of_size(prior, cache[1]) - 0.5 * log_b


@base.implements(base.fill_predictive, SphericalNormalPrior)
def _fill_cache(prior, stats, cache):
    _, _, cache[2] = _posterior(prior, stats)
    cache[1] = stats[0]
    cache[3] = 1.0
    for j in range(prior.mu0.shape[0]):
        cache[4 + j] = _posterior_mean(prior, stats, j)
    _refresh_normaliser(prior, cache)


@jitted
def _squared_gap(prior, data, i, cache):
    squared = 0.0
    for j in range(data.shape[1]):
        gap = data[i, j] - prior.shift[j] - cache[4 + j]
        squared += gap * gap
    return squared


@jitted
def _move_mean(prior, data, i, weight, cache):
    for j in range(data.shape[1]):
        cache[4 + j] += weight * (data[i, j] - prior.shift[j] - cache[4 + j])


@base.implements(base.predictive_add, SphericalNormalPrior, uncounted=True)
def _cache_add(prior, data, i, cache):
    kappa_n = prior.kappa0 + cache[1]
    cache[2] += 0.5 * kappa_n / (kappa_n + 1.0) * _squared_gap(prior, data, i, cache)
    _move_mean(prior, data, i, 1.0 / (kappa_n + 1.0), cache)
    cache[1] += 1.0
    _refresh_normaliser(prior, cache)


@base.implements(base.predictive_remove, SphericalNormalPrior, uncounted=True)
def _cache_remove(prior, data, i, cache):
    kappa_n, before = prior.kappa0 + cache[1], cache[2]
    cache[2] -= 0.5 * kappa_n / (kappa_n - 1.0) * _squared_gap(prior, data, i, cache)
    _move_mean(prior, data, i, -1.0 / (kappa_n - 1.0), cache)
    cache[1] -= 1.0
    if not keeps_digits(cache, 3, cache[2] / before):
        return False
    _refresh_normaliser(prior, cache)
    return True


@base.implements(base.log_predictive, SphericalNormalPrior, uncounted=True)
def _log_predictive(prior, data, i, cache):
    """Return the Student t log predictive density, eq. (7.30) as a ratio of marginals."""
    d, kappa_n = data.shape[1], prior.kappa0 + cache[1]
    a_n = prior.a0 + 0.5 * cache[1] * d
    scale = cache[2] * (kappa_n + 1.0) / kappa_n
    squared = _squared_gap(prior, data, i, cache)
    return cache[0] - (a_n + 0.5 * d) * math.log1p(0.5 * squared / scale)


@base.implements(collapsed.table_height, SphericalNormalPrior)
def _table_height(prior):
    return 4 + prior.mu0.shape[0]


@base.implements(collapsed.tabulate, SphericalNormalPrior, uncounted=True)
def _tabulate(prior, clusters, p):
    """Write the mean, then c, s and h of c - h log(1 + s q), and the c of one row less."""
    cache, table = row_of(clusters.caches, p), clusters.table
    d, n = prior.mu0.shape[0], cache[1]
    at, kappa_n = place_of(collapsed.table_height(prior), p), prior.kappa0 + n
    for j in range(d):
        table[at + j * WIDE] = cache[4 + j]
    at += d * WIDE
    table[at] = cache[0]
    table[at + WIDE] = 0.5 * kappa_n / (cache[2] * (kappa_n + 1.0))
    table[at + 2 * WIDE] = prior.a0 + 0.5 * (n + 1.0) * d
    norm = collapsed.kept_norm_of_size(prior, clusters, n)
    norm_without = collapsed.kept_norm_of_size(prior, clusters, n - 1.0)
    table[at + 3 * WIDE] = cache[0] + (norm_without - norm)


@base.implements(collapsed.fill_log_predictives, SphericalNormalPrior)
def _fill_log_predictives(prior, data, i, clusters, n, own, least, drop, out):
    """Write the log predictives; that given the rest of a cluster is by eq. (4.2)."""
    d, height, table = prior.mu0.shape[0], collapsed.table_height(prior), clusters.table
    for first in range(0, n, WIDE):
        at = first * height
        for t in range(WIDE):
            out[first + t] = 0.0
        for j in range(d):
            x = data[i, j] - prior.shift[j]
            for t in range(WIDE):
                gap = x - table[at + t]
                out[first + t] += gap * gap
            at += WIDE
    kappa_n = prior.kappa0 + (clusters.sizes[own] if own >= 0 else 1.0)
    ratio, shift = (kappa_n + 1.0) / (kappa_n - 1.0), np.float64(d)
    return fill_student(table, height, d, out, n, own, ratio, shift, out)
