"""Gaussian clusters that share one known covariance matrix, with a normal prior on the mean.

mu ~ N(mu0, cov / kappa0) and x ~ N(mu, cov); see Gelman et al. (2013), "Bayesian Data Analysis",
3rd edition, section 3.5, and docs/method.md, eq. (7.31)-(7.33).

All clusters share the whitening matrix W, cov^-1 = W' W.  An observation is therefore whitened once
for all clusters, when its tile is loaded, and a density costs as much as with independent features.

Layout.  stats: n, sums (D), lower triangle of the sum of outer products, by rows; they do not
depend on the covariance.  params: log normaliser, c = W mu (D).  tile: W x.  cache: log
normaliser, n, sum of W x (D), posterior mean of c (D).
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.component_family import ComponentFamily, Values
from pymc_dpsplit.components.conditional_rows import complete_rows
from pymc_dpsplit.components.doubtful_rows import warn_of_rows
from pymc_dpsplit.components.hyperparameters import (
    COVARIANCE,
    POSITIVE_NUMBER,
    REAL_PER_COLUMN,
    Requirements,
)
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.cluster_table import WIDE, place_of
from pymc_dpsplit.kernels.diagonal import fill_log_independent
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.scatter import add_outer, add_outer_groups
from pymc_dpsplit.kernels.tiles import TILE, load_dense_tile
from pymc_dpsplit.kernels.views import part_of, row_of

_LOG_2PI = math.log(2.0 * math.pi)


class MvNormalKnownCovPrior(NamedTuple):
    """Hyperparameters for kernels.

    `whitening` (D, D) is W, lower triangular, and `precision` is W' W; `centre` (D,) is
    W (mu0 - shift), `unit` (D,) contains ones, and `log_norm` is the log normalising constant of
    the density of an observation.
    """

    shift: np.ndarray
    kappa0: float
    whitening: np.ndarray
    precision: np.ndarray
    centre: np.ndarray
    unit: np.ndarray
    log_norm: float


class MvNormalKnownCov(ComponentFamily):
    """Normal clusters of vectors that differ only in their mean.

    ``mu ~ N(mu0, cov / kappa0)`` and observations of the cluster are ``N(mu, cov)`` [1]_, with
    density ``exp(-(x - mu)' cov^-1 (x - mu) / 2) / sqrt(det(2 pi cov))``.  All clusters share
    `cov`.

    Parameters
    ----------
    mu0 : float or array of shape (D,)
        Mean of the cluster means, in the units of the data.
    kappa0 : float
        Prior precision of the mean, in units of observations; positive.
    cov : array of shape (D, D)
        Covariance of the observations of a cluster; symmetric and positive definite.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_mu`` (K, D), the means.  `from_data` sets ``mu0`` to
    the mean of the data and ``cov`` to a tenth of their variances.

    If `cov` is a variable of the model, such as an expression of ``pm.LKJCholeskyCov``, NUTS
    samples it given the labels, and the posterior contains the labels as ``{name}_labels``.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.5.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.MvNormalKnownCov(mu0=0.0, kappa0=0.1, cov=[[1.0, 0.5], [0.5, 2.0]])
    MvNormalKnownCov(mu0=0.0, kappa0=0.1, cov=[[1.0, 0.5], [0.5, 2.0]])
    """

    requirements: ClassVar[Requirements] = {
        "mu0": REAL_PER_COLUMN,
        "kappa0": POSITIVE_NUMBER,
        "cov": COVARIANCE,
    }
    row_ndim: ClassVar[int] = 1
    parameters: ClassVar[dict[str, int]] = {"mu": 1}
    graph_ndims: ClassVar[dict[str, int]] = parameters
    likelihood_arguments = ("cov",)

    @classmethod
    def from_data(cls, observed: Any) -> "MvNormalKnownCov":
        """Return weakly informative hyperparameters on the scale of the data.

        ``mu0`` is the mean of the data, ``kappa0 = 0.1``, and ``cov`` is diagonal with a tenth of
        the variance of each feature.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Finite numbers; NaN or masked entries are ignored.

        Returns
        -------
        MvNormalKnownCov

        Raises
        ------
        ValueError
            If the data are empty, not numeric or infinite, or all entries of a column are missing.

        Warns
        -----
        UserWarning
            If a column does not vary, or there are more columns than rows.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.MvNormalKnownCov.from_data([[0.0, 1.0], [2.0, 3.0]]).hyperparameters["cov"]
        array([[0.1, 0. ],
               [0. , 0.1]])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        warn_of_rows(rows)
        mu0, variance = moments_of(rows)
        return cls(mu0=mu0, kappa0=0.1, cov=np.diag(0.1 * variance))

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> MvNormalKnownCovPrior:
        whitening = np.tril(np.linalg.inv(np.linalg.cholesky(values["cov"])))
        log_norm = float(np.log(np.diag(whitening)).sum() - 0.5 * len(whitening) * _LOG_2PI)
        return MvNormalKnownCovPrior(
            shift,
            float(values["kappa0"]),
            np.ascontiguousarray(whitening),
            np.ascontiguousarray(whitening.T @ whitening),
            whitening @ (values["mu0"] - shift),
            np.ones(len(whitening)),
            log_norm,
        )

    def _root(self) -> np.ndarray:
        """Return the Cholesky factor of the hyperparameter `cov`."""
        return np.linalg.cholesky(np.atleast_2d(self.hyperparameters["cov"]))

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # Not a matrix product, which rounds a row differently beside other rows.
        return {"mu": np.einsum("kp,dp->kd", params[:, 1:], self._root()) + shift}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        root, mu = self._root(), parameters["mu"]
        params = np.empty((mu.shape[0], 1 + mu.shape[1]))
        params[:, 0] = -np.log(np.diag(root)).sum() - 0.5 * mu.shape[1] * _LOG_2PI
        params[:, 1:] = np.linalg.solve(root, (mu - shift).T).T
        return params

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"mu": values["mu0"]}

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(parameters)

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of mu, eq. (7.31)."""
        mu, kappa0 = graph_parameters["mu"], values["kappa0"]
        log_scale = 0.5 * mu.shape[1] * pt.log(kappa0)
        return log_scale + _log_normal(mu - values["mu0"], values["cov"], kappa0, pt)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        return _log_normal(rows - graph_parameters["mu"], self.hyperparameters["cov"], 1.0, pt)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        root = np.linalg.cholesky(values["cov"]) / np.sqrt(values["kappa0"])
        return {"mu": values["mu0"] + rng.standard_normal((size, len(root))) @ root.T}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        mu = parameters["mu"][labels]
        return mu + rng.standard_normal(mu.shape) @ self._root().T

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw from the conditional normal distribution, eq. (7.41)."""
        mu, cov = parameters["mu"], np.atleast_2d(self.hyperparameters["cov"])
        covs = np.broadcast_to(cov, (len(mu), *cov.shape))
        return complete_rows(rng, rows, is_missing, mu, covs, labels)


def _log_normal(gap: Any, cov: Any, scale: Any, pt: Any) -> Any:
    """Return N(0, cov) log densities (n,) of deviations (n, D), quadratic forms times `scale`."""
    squared = ((gap @ pt.linalg.inv(cov)) * gap).sum(axis=1)
    log_det = pt.linalg.slogdet(cov)[1]
    return -0.5 * (gap.shape[1] * _LOG_2PI + log_det + scale * squared)


@jitted
def _whitened(whitening, x, r):
    """Return element r of W x."""
    total = 0.0
    for j in range(r + 1):
        total += whitening[r, j] * x[j]
    return total


@jitted
def _whitened_entry(prior, data, i, r):
    """Return element r of W (x - shift) for observation i."""
    total = 0.0
    for j in range(r + 1):
        total += prior.whitening[r, j] * (data[i, j] - prior.shift[j])
    return total


@base.implements(base.stats_size, MvNormalKnownCovPrior)
def _stats_size(prior):
    d = prior.centre.shape[0]
    return 1 + d + d * (d + 1) // 2


@base.implements(base.params_size, MvNormalKnownCovPrior)
def _params_size(prior):
    return 1 + prior.centre.shape[0]


@base.implements(base.tile_size, MvNormalKnownCovPrior)
def _tile_size(prior):
    return prior.centre.shape[0]


@base.implements(base.predictive_size, MvNormalKnownCovPrior)
def _cache_size(prior):
    return 2 + 2 * prior.centre.shape[0]


@base.implements(base.load_tile, MvNormalKnownCovPrior)
def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)
    # In place from the last feature down: element r of W x reads features up to r only.
    for r in range(prior.centre.shape[0] - 1, -1, -1):
        scale = prior.whitening[r, r]
        for t in range(TILE):
            tile[r * TILE + t] *= scale
        for j in range(r):
            w = prior.whitening[r, j]
            for t in range(TILE):
                tile[r * TILE + t] += w * tile[j * TILE + t]


@base.implements(base.fill_log_density, MvNormalKnownCovPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    d = prior.centre.shape[0]
    fill_log_independent(tile, part_of(params, 1, d), prior.unit, params[0], out)


@base.implements(base.add_row, MvNormalKnownCovPrior, uncounted=True)
def _add_row(prior, data, i, stats):
    add_outer(prior.shift, data, i, stats)


@base.implements(base.add_groups, MvNormalKnownCovPrior)
def _add_groups(prior, data, members, bounds, stats):
    add_outer_groups(prior.shift, data, members, bounds, stats)


@jitted
def _squares(precision, stats):
    """Return the sum of |W x|^2 over rows: the trace of precision times outer products."""
    d = precision.shape[0]
    total, at = 0.0, 1 + d
    for a in range(d):
        total += precision[a, a] * stats[at + a]
        for b in range(a):
            total += 2.0 * precision[a, b] * stats[at + b]
        at += a + 1
    return total


@base.implements(base.log_marginal, MvNormalKnownCovPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.33)."""
    n, d = stats[0], prior.centre.shape[0]
    if n == 0.0:
        return 0.0
    kappa_n = prior.kappa0 + n
    scatter, gaps = _squares(prior.precision, stats), 0.0
    for r in range(d):
        total = _whitened(prior.whitening, part_of(stats, 1, d), r)
        scatter -= total * total / n
        gaps += (total / n - prior.centre[r]) ** 2
    squares = max(scatter, 0.0) + prior.kappa0 * n / kappa_n * gaps
    return n * prior.log_norm + 0.5 * (d * math.log(prior.kappa0 / kappa_n) - squares)


@jitted
def _set_mean(prior, stats, params):
    """Write the normaliser and the posterior mean of c, eq. (7.32)."""
    d, kappa_n = prior.centre.shape[0], prior.kappa0 + stats[0]
    params[0] = prior.log_norm
    for r in range(d):
        total = _whitened(prior.whitening, part_of(stats, 1, d), r)
        params[1 + r] = (prior.kappa0 * prior.centre[r] + total) / kappa_n


@base.implements(base.draw_parameters, MvNormalKnownCovPrior)
def _draw_parameters(prior, stats, rng, params):
    _set_mean(prior, stats, params)
    width = 1.0 / math.sqrt(prior.kappa0 + stats[0])
    for r in range(prior.centre.shape[0]):
        params[1 + r] += width * rng.standard_normal()


@base.implements(base.mean_parameters, MvNormalKnownCovPrior)
def _mean_parameters(prior, stats, params):
    _set_mean(prior, stats, params)


@jitted
def _refresh_predictive(prior, cache):
    d, kappa_n = prior.centre.shape[0], prior.kappa0 + cache[1]
    cache[0] = prior.log_norm - 0.5 * d * math.log1p(1.0 / kappa_n)
    for r in range(d):
        cache[2 + d + r] = (prior.kappa0 * prior.centre[r] + cache[2 + r]) / kappa_n


@base.implements(base.fill_predictive, MvNormalKnownCovPrior)
def _fill_cache(prior, stats, cache):
    d = prior.centre.shape[0]
    cache[1] = stats[0]
    for r in range(d):
        cache[2 + r] = _whitened(prior.whitening, part_of(stats, 1, d), r)
    _refresh_predictive(prior, cache)


@base.implements(base.predictive_add, MvNormalKnownCovPrior, uncounted=True)
def _cache_add(prior, data, i, cache):
    cache[1] += 1.0
    for r in range(data.shape[1]):
        cache[2 + r] += _whitened_entry(prior, data, i, r)
    _refresh_predictive(prior, cache)


@base.implements(base.predictive_remove, MvNormalKnownCovPrior, uncounted=True)
def _cache_remove(prior, data, i, cache):
    cache[1] -= 1.0
    for r in range(data.shape[1]):
        cache[2 + r] -= _whitened_entry(prior, data, i, r)
    _refresh_predictive(prior, cache)
    return True


@base.implements(base.log_predictive, MvNormalKnownCovPrior, uncounted=True)
def _log_predictive(prior, data, i, cache):
    """Return the normal log predictive density, eq. (7.33) as a ratio of marginals."""
    d, kappa_n = data.shape[1], prior.kappa0 + cache[1]
    squared = 0.0
    for r in range(d):
        gap = _whitened_entry(prior, data, i, r) - cache[2 + d + r]
        squared += gap * gap
    return cache[0] - 0.5 * kappa_n / (kappa_n + 1.0) * squared


@base.implements(collapsed.table_height, MvNormalKnownCovPrior)
def _table_height(prior):
    return 2 + prior.centre.shape[0]


@base.implements(collapsed.tabulate, MvNormalKnownCovPrior)
def _tabulate(prior, clusters, p):
    """Write the posterior mean of c, then the two numbers of a log predictive c - h q."""
    cache, table = row_of(clusters.caches, p), clusters.table
    d, kappa_n = prior.centre.shape[0], prior.kappa0 + cache[1]
    at = place_of(collapsed.table_height(prior), p)
    for r in range(d):
        table[at] = cache[2 + d + r]
        at += WIDE
    table[at] = cache[0]
    table[at + WIDE] = 0.5 * kappa_n / (kappa_n + 1.0)


@base.implements(collapsed.fill_log_predictives, MvNormalKnownCovPrior)
def _fill_log_predictives(prior, data, i, clusters, n, own, least, drop, out):
    """Write the log predictives, the row whitened once for all clusters."""
    d, height, table = prior.centre.shape[0], collapsed.table_height(prior), clusters.table
    row = clusters.scratch
    for r in range(d):
        row[WIDE + r] = _whitened_entry(prior, data, i, r)
    for first in range(0, n, WIDE):
        at = first * height
        for t in range(WIDE):
            row[t] = 0.0
        for r in range(d):
            x = row[WIDE + r]
            for t in range(WIDE):
                gap = x - table[at + t]
                row[t] += gap * gap
            at += WIDE
        for t in range(WIDE):
            out[first + t] = table[at + t] - table[at + WIDE + t] * row[t]
        if first <= own < first + WIDE:
            # Without the row, the mean is farther from it by the factor kappa_n / (kappa_n - 1).
            kappa_n = prior.kappa0 + clusters.sizes[own]
            density = prior.log_norm - 0.5 * d * math.log1p(1.0 / (kappa_n - 1.0))
            out[own] = density - 0.5 * kappa_n / (kappa_n - 1.0) * row[own - first]
    return True
