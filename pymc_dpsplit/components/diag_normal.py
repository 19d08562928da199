"""Gaussian clusters with a diagonal covariance and normal-inverse-gamma priors.

Per feature, sigma^2 ~ InvGamma(a0, b0) and mu | sigma^2 ~ N(mu0, sigma^2 / kappa0); see
Murphy (2007), "Conjugate Bayesian analysis of the Gaussian distribution", section 6, and
docs/method.md, eq. (7.1)-(7.3).

Layout.  stats: n, sums (D), sums of squares (D).  params: log normaliser, mu (D),
1 / sigma (D).  `diag_normal_predictive` describes the predictive cache.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.by_column import ByColumn
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.doubtful_rows import warn_of_rows
from pymc_dpsplit.components.hyperparameters import (
    POSITIVE_PER_COLUMN,
    REAL_PER_COLUMN,
    Requirements,
)
from pymc_dpsplit.components.parameter_laws import draw_gamma
from pymc_dpsplit.components.prior_choice.partitions import share_given
from pymc_dpsplit.components.prior_choice.variances import choose_variances, shape_with_mean
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.diagonal import fill_log_independent
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.overrelaxation import overrelax_log_gamma, overrelax_normal
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import positive_exp
from pymc_dpsplit.kernels.squares import add_groups_of_squares, add_scalars_by_label
from pymc_dpsplit.kernels.tiles import load_dense_tile
from pymc_dpsplit.kernels.views import part_of

_LOG_2PI = math.log(2.0 * math.pi)


class DiagNormalPrior(NamedTuple):
    """Hyperparameters per feature, each float64 of shape (D,); `mu0` is relative to the shift."""

    shift: np.ndarray
    mu0: np.ndarray
    kappa0: np.ndarray
    a0: np.ndarray
    b0: np.ndarray


class DiagNormal(ByColumn):
    """Normal-inverse-gamma clusters, independent over features.

    Per feature, ``sigma^2 ~ InvGamma(a0, b0)``, ``mu | sigma^2 ~ N(mu0, sigma^2 / kappa0)`` and
    observations of the cluster are ``N(mu, sigma^2)`` [1]_.

    Parameters
    ----------
    mu0 : float or array of shape (D,)
        Mean of the cluster means, in the units of the data.
    kappa0 : float or array of shape (D,)
        Prior precision of the mean, in units of observations; positive.
    a0 : float or array of shape (D,)
        Shape of the inverse gamma; positive.
    b0 : float or array of shape (D,)
        Scale of the inverse gamma, in squared units of the data; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_mu`` (K, D), the means, and ``x_sigma`` (K, D), the
    standard deviations.  `from_data` chooses ``mu0``, ``kappa0``, ``a0`` and ``b0`` by the data.

    References
    ----------
    .. [1] Murphy (2007), Conjugate Bayesian analysis of the Gaussian distribution, section 6.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.DiagNormal(mu0=[0.0, 5.0], kappa0=0.1, a0=2.0, b0=1.0)
    DiagNormal(mu0=[0.0, 5.0], kappa0=0.1, a0=2.0, b0=1.0)
    """

    requirements: ClassVar[Requirements] = {
        "mu0": REAL_PER_COLUMN,
        "kappa0": POSITIVE_PER_COLUMN,
        "a0": POSITIVE_PER_COLUMN,
        "b0": POSITIVE_PER_COLUMN,
    }
    row_ndim: ClassVar[int] = 1
    parameters: ClassVar[dict[str, int]] = {"mu": 1, "sigma": 1}
    graph_ndims: ClassVar[dict[str, int]] = parameters

    @classmethod
    def from_data(
        cls, observed: Any, *, within: float | None = None, a0: float | None = None
    ) -> "DiagNormal":
        """Return hyperparameters chosen by the data, which decide how many clusters there are.

        ``mu0`` is the mean of the data.  ``b0 / (a0 - 1)``, the prior mean of a cluster's variance,
        is a share of the variance of each feature.  The shares, ``a0`` and ``kappa0`` are those
        under which one cluster, or another partition that is found quickly, has the highest log
        joint density.  Without evidence for others they are weakly informative: shares of 0.1,
        ``a0 = 2``, ``kappa0 = 0.1``.

        Parameters
        ----------
        observed : array-like of shape (N, D), or (N,) for `Normal`
            Finite numbers; NaN or masked entries are ignored.
        within : float, optional
            Guess of the share of the variances that is left within clusters, above 0 and at most 1;
            that of all features.
        a0 : float, optional
            Shape of the inverse gamma; larger than 1.  The larger, the more alike are the variances
            of clusters.

        Returns
        -------
        DiagNormal

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
        >>> dps.DiagNormal.from_data([[0.0], [2.0]]).hyperparameters["mu0"]
        array([1.])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        warn_of_rows(rows)
        mu0, variance = moments_of(rows)
        shape = None if a0 is None else shape_with_mean(a0)
        chosen = choose_variances(rows, mu0, np.sqrt(variance), share_given(within), shape)
        b0 = chosen.b0 * variance
        if cls.row_ndim == 0:
            mu0, b0 = mu0[0], b0[0]
        return cls(mu0=mu0, kappa0=chosen.kappa0, a0=chosen.a0, b0=b0)

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> DiagNormalPrior:
        return DiagNormalPrior(
            shift, values["mu0"] - shift, *(values[name] for name in ("kappa0", "a0", "b0"))
        )

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        d = shift.shape[0]
        return {"mu": params[:, 1 : 1 + d] + shift, "sigma": 1.0 / params[:, 1 + d :]}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        d = shift.shape[0]
        sigma = parameters["sigma"].reshape(-1, d)
        params = np.empty((sigma.shape[0], 1 + 2 * d))
        params[:, 0] = -np.log(sigma).sum(1) - 0.5 * d * _LOG_2PI
        params[:, 1 : 1 + d] = parameters["mu"].reshape(-1, d) - shift
        params[:, 1 + d :] = 1.0 / sigma
        return params

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"mu": values["mu0"], "sigma": np.sqrt(values["b0"] / values["a0"])}

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of mu and sigma, eq. (7.38)."""
        mu, sigma = graph_parameters["mu"], graph_parameters["sigma"]
        mu0, kappa0, a0, b0 = (values[name] for name in ("mu0", "kappa0", "a0", "b0"))
        variance = sigma**2
        log_mu = 0.5 * (pt.log(kappa0) - _LOG_2PI - pt.log(variance)) - (
            0.5 * kappa0 * (mu - mu0) ** 2 / variance
        )
        # The prior is on sigma^2, the density of sigma: the Jacobian is 2 sigma.
        log_sigma = (
            a0 * pt.log(b0)
            - pt.gammaln(a0)
            - (a0 + 1.0) * pt.log(variance)
            - b0 / variance
            + math.log(2.0)
            + pt.log(sigma)
        )
        return (log_mu + log_sigma).reshape((mu.shape[0], -1)).sum(axis=1)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        scaled = (rows - graph_parameters["mu"]) / graph_parameters["sigma"]
        terms = -0.5 * (scaled**2 + _LOG_2PI) - pt.log(graph_parameters["sigma"])
        return terms.reshape((rows.shape[0], -1)).sum(axis=1)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        shape = (size, *values["mu0"].shape)
        sigma = np.sqrt(values["b0"] / draw_gamma(rng, values["a0"], shape))
        mu = values["mu0"] + sigma / np.sqrt(values["kappa0"]) * rng.standard_normal(shape)
        return {"mu": mu, "sigma": sigma}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        mu, sigma = parameters["mu"][labels], parameters["sigma"][labels]
        return mu + sigma * rng.standard_normal(mu.shape)


@jitted
def posterior_of_column(prior, n, total, squares, d):
    """Return the posterior mean, kappa_n, a_n and b_n of feature d, eq. (7.2).

    Parameters
    ----------
    prior : NamedTuple
    n, total, squares : float
        Number of entries, their sum and that of their squares.
    d : int

    Returns
    -------
    mean, kappa_n, a_n, b_n : float
    """
    kappa_n = prior.kappa0[d] + n
    a_n = prior.a0[d] + 0.5 * n
    if n == 0.0:
        return prior.mu0[d], kappa_n, a_n, prior.b0[d]
    mean = total / n
    # Rounding must not make the scatter negative, so that b_n >= b0 > 0.
    scatter = max(squares - total * mean, 0.0)
    gap = mean - prior.mu0[d]
    b_n = prior.b0[d] + 0.5 * (scatter + prior.kappa0[d] * n / kappa_n * gap * gap)
    return prior.mu0[d] + n / kappa_n * gap, kappa_n, a_n, b_n


@base.implements(base.stats_size, DiagNormalPrior)
def _stats_size(prior):
    return 1 + 2 * prior.mu0.shape[0]


@base.implements(base.params_size, DiagNormalPrior)
def _params_size(prior):
    return 1 + 2 * prior.mu0.shape[0]


@base.implements(base.tile_size, DiagNormalPrior)
def _tile_size(prior):
    return prior.mu0.shape[0]


@base.implements(base.load_tile, DiagNormalPrior)
def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)


@base.implements(base.fill_log_density, DiagNormalPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    d = prior.mu0.shape[0]
    mu, precision = part_of(params, 1, d), part_of(params, 1 + d, d)
    fill_log_independent(tile, mu, precision, params[0], out)


@base.implements(base.add_row, DiagNormalPrior, uncounted=True)
def _add_row(prior, data, i, stats):
    n_features = data.shape[1]
    stats[0] += 1.0
    for d in range(n_features):
        x = data[i, d] - prior.shift[d]
        stats[1 + d] += x
        stats[1 + n_features + d] += x * x


@base.implements(base.add_groups, DiagNormalPrior)
def _add_groups(prior, data, members, bounds, stats):
    add_groups_of_squares(data, prior.shift, members, bounds, stats)


@base.implements(base.add_labelled, DiagNormalPrior)
def _add_labelled(prior, data, labels, start, stop, stats):
    if data.shape[1] == 1:
        add_scalars_by_label(data, prior.shift[0], labels, start, stop, stats)
    return data.shape[1] == 1


@base.implements(base.log_marginal, DiagNormalPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.3)."""
    n_features = prior.mu0.shape[0]
    n = stats[0]
    total = -0.5 * n * n_features * _LOG_2PI
    for d in range(n_features):
        _, kappa_n, a_n, b_n = posterior_of_column(
            prior, n, stats[1 + d], stats[1 + n_features + d], d
        )
        total += 0.5 * math.log(prior.kappa0[d] / kappa_n)
        total += math.lgamma(a_n) - math.lgamma(prior.a0[d])
        total += prior.a0[d] * math.log(prior.b0[d]) - a_n * math.log(b_n)
    return total


@base.implements(base.draw_parameters, DiagNormalPrior)
def _draw_parameters(prior, stats, rng, params):
    n_features = prior.mu0.shape[0]
    params[0] = -0.5 * n_features * _LOG_2PI
    for d in range(n_features):
        mean, kappa_n, a_n, b_n = posterior_of_column(
            prior, stats[0], stats[1 + d], stats[1 + n_features + d], d
        )
        log_precision = 0.5 * (draw_log_gamma(rng, a_n) - math.log(b_n))
        precision = positive_exp(log_precision)
        params[0] += log_precision
        params[1 + d] = mean + rng.standard_normal() / (precision * math.sqrt(kappa_n))
        params[1 + n_features + d] = precision


@base.implements(base.overrelax_parameters, DiagNormalPrior)
def _overrelax_parameters(prior, stats, rng, params):
    n_features = prior.mu0.shape[0]
    params[0] = -0.5 * n_features * _LOG_2PI
    for d in range(n_features):
        mean, kappa_n, a_n, b_n = posterior_of_column(
            prior, stats[0], stats[1 + d], stats[1 + n_features + d], d
        )
        precision, log_b = params[1 + n_features + d], math.log(b_n)
        x = (params[1 + d] - mean) * precision * math.sqrt(kappa_n)
        y = overrelax_log_gamma(rng, a_n, 2.0 * math.log(precision) + log_b)
        log_precision = 0.5 * (y - log_b)
        precision = positive_exp(log_precision)
        params[0] += log_precision
        params[1 + d] = mean + overrelax_normal(rng, x) / (precision * math.sqrt(kappa_n))
        params[1 + n_features + d] = precision


@base.implements(base.mean_parameters, DiagNormalPrior)
def _mean_parameters(prior, stats, params):
    n_features = prior.mu0.shape[0]
    params[0] = -0.5 * n_features * _LOG_2PI
    for d in range(n_features):
        mean, _, a_n, b_n = posterior_of_column(
            prior, stats[0], stats[1 + d], stats[1 + n_features + d], d
        )
        precision = math.sqrt(a_n / b_n)
        params[0] += math.log(precision)
        params[1 + d] = mean
        params[1 + n_features + d] = precision
