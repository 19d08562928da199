"""Univariate Gaussian clusters of one known standard deviation, with a normal prior on the mean.

mu ~ N(mu0, sigma0^2) and x ~ N(mu, sigma^2); see Gelman et al. (2013), "Bayesian Data Analysis",
3rd edition, section 2.5, and docs/method.md, eq. (7.20)-(7.21).

Layout.  stats: n, sum, sum of squares.  params: log normaliser, mu, 1 / sigma.  cache: log
normaliser, n, sum, mean and inverse standard deviation of the predictive.
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
from pymc_dpsplit.components.hyperparameters import POSITIVE_NUMBER, REAL_NUMBER, Requirements
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.diagonal import fill_log_independent
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.overrelaxation import overrelax_normal
from pymc_dpsplit.kernels.squares import add_groups_of_squares, add_scalars_by_label
from pymc_dpsplit.kernels.tiles import load_dense_tile
from pymc_dpsplit.kernels.views import part_of

_LOG_2PI = math.log(2.0 * math.pi)


class NormalKnownSigmaPrior(NamedTuple):
    """Hyperparameters for kernels; `mu0` is relative to the shift (1,) of the data."""

    shift: np.ndarray
    mu0: float
    sigma0: float
    sigma: float


class NormalKnownSigma(ByColumn):
    """Normal clusters of scalars that differ only in their mean.

    ``mu ~ N(mu0, sigma0^2)`` and observations of the cluster are ``N(mu, sigma^2)`` [1]_, with
    density ``exp(-(x - mu)^2 / (2 sigma^2)) / (sigma sqrt(2 pi))``.  All clusters share `sigma`.

    Parameters
    ----------
    mu0 : float
        Mean of the cluster means, in the units of the data.
    sigma0 : float
        Standard deviation of the cluster means; positive.
    sigma : float
        Standard deviation of the observations of a cluster; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_mu`` (K,), the means.  `from_data` sets ``mu0`` and
    ``sigma0`` to the mean and standard deviation of the data, and ``sigma^2`` to a tenth of
    their variance.

    If `sigma` is a variable of the model, such as ``pm.HalfNormal("sigma", 1)``, NUTS samples it
    given the labels, and the posterior contains the labels as ``{name}_labels``.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.5.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.NormalKnownSigma(mu0=20.0, sigma0=10.0, sigma=1.5)
    NormalKnownSigma(mu0=20.0, sigma0=10.0, sigma=1.5)
    """

    requirements: ClassVar[Requirements] = {
        "mu0": REAL_NUMBER,
        "sigma0": POSITIVE_NUMBER,
        "sigma": POSITIVE_NUMBER,
    }
    row_ndim: ClassVar[int] = 0
    parameters: ClassVar[dict[str, int]] = {"mu": 0}
    graph_ndims: ClassVar[dict[str, int]] = parameters
    likelihood_arguments = ("sigma",)

    @classmethod
    def from_data(cls, observed: Any) -> "NormalKnownSigma":
        """Return weakly informative hyperparameters on the scale of the data.

        ``mu0`` and ``sigma0`` are the mean and the standard deviation of the data, and ``sigma^2``
        is a tenth of their variance.

        Parameters
        ----------
        observed : array-like of shape (N,)
            Finite numbers; NaN or masked entries are ignored.

        Returns
        -------
        NormalKnownSigma

        Raises
        ------
        ValueError
            If the data are empty, not numeric or infinite, or all are missing.

        Warns
        -----
        UserWarning
            If all numbers are the same.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> float(dps.NormalKnownSigma.from_data([0.0, 2.0]).hyperparameters["sigma0"])
        1.0
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        warn_of_rows(rows)
        mu0, variance = moments_of(rows)
        return cls(mu0[0], math.sqrt(variance[0]), math.sqrt(0.1 * variance[0]))

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> NormalKnownSigmaPrior:
        mu0, sigma0, sigma = (float(values[name]) for name in ("mu0", "sigma0", "sigma"))
        return NormalKnownSigmaPrior(shift, mu0 - float(shift[0]), sigma0, sigma)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return {"mu": params[:, 1] + shift[0]}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        mu, sigma = parameters["mu"], np.asarray(self.hyperparameters["sigma"], np.float64)
        params = np.empty((len(mu), 3))
        params[:, 0] = -np.log(sigma) - 0.5 * _LOG_2PI
        params[:, 1] = mu - shift[0]
        params[:, 2] = 1.0 / sigma
        return params

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"mu": values["mu0"]}

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of mu, eq. (7.20)."""
        scaled = (graph_parameters["mu"] - values["mu0"]) / values["sigma0"]
        return -0.5 * (scaled**2 + _LOG_2PI) - pt.log(values["sigma0"])

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        sigma = self.hyperparameters["sigma"]
        scaled = (rows - graph_parameters["mu"]) / sigma
        return -0.5 * (scaled**2 + _LOG_2PI) - pt.log(sigma)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        return {"mu": values["mu0"] + values["sigma0"] * rng.standard_normal(size)}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        noise = rng.standard_normal(len(labels))
        return parameters["mu"][labels] + self.hyperparameters["sigma"] * noise


@jitted
def _posterior(prior, n, total):
    """Return the posterior mean and precision of mu, eq. (7.21)."""
    precision0, precision = prior.sigma0**-2, prior.sigma**-2
    precision_n = precision0 + n * precision
    return (precision0 * prior.mu0 + precision * total) / precision_n, precision_n


@jitted
def _set_density(prior, mu, params):
    params[0] = -math.log(prior.sigma) - 0.5 * _LOG_2PI
    params[1] = mu
    params[2] = 1.0 / prior.sigma


@base.implements(base.stats_size, NormalKnownSigmaPrior)
def _stats_size(prior):
    return 3


@base.implements(base.params_size, NormalKnownSigmaPrior)
def _params_size(prior):
    return 3


@base.implements(base.tile_size, NormalKnownSigmaPrior)
def _tile_size(prior):
    return 1


@base.implements(base.predictive_size, NormalKnownSigmaPrior)
def _cache_size(prior):
    return 5


@base.implements(base.load_tile, NormalKnownSigmaPrior)
def _load_tile(prior, data, rows, tile):
    load_dense_tile(data, prior.shift, rows, tile)


@base.implements(base.fill_log_density, NormalKnownSigmaPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    fill_log_independent(tile, part_of(params, 1, 1), part_of(params, 2, 1), params[0], out)


@base.implements(base.add_row, NormalKnownSigmaPrior, uncounted=True)
def _add_row(prior, data, i, stats):
    x = data[i, 0] - prior.shift[0]
    stats[0] += 1.0
    stats[1] += x
    stats[2] += x * x


@base.implements(base.add_groups, NormalKnownSigmaPrior)
def _add_groups(prior, data, members, bounds, stats):
    add_groups_of_squares(data, prior.shift, members, bounds, stats)


@base.implements(base.add_labelled, NormalKnownSigmaPrior)
def _add_labelled(prior, data, labels, start, stop, stats):
    add_scalars_by_label(data, prior.shift[0], labels, start, stop, stats)
    return True


@base.implements(base.log_marginal, NormalKnownSigmaPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.21)."""
    n = stats[0]
    if n == 0.0:
        return 0.0
    mean = stats[1] / n
    scatter = max(stats[2] - stats[1] * mean, 0.0)
    variance, gap = prior.sigma**2, mean - prior.mu0
    spread = variance + n * prior.sigma0**2
    total = -0.5 * n * _LOG_2PI - (n - 1.0) * math.log(prior.sigma) - 0.5 * math.log(spread)
    return total - 0.5 * (scatter / variance + n * gap * gap / spread)


@base.implements(base.draw_parameters, NormalKnownSigmaPrior)
def _draw_parameters(prior, stats, rng, params):
    mean, precision = _posterior(prior, stats[0], stats[1])
    _set_density(prior, mean + rng.standard_normal() / math.sqrt(precision), params)


@base.implements(base.overrelax_parameters, NormalKnownSigmaPrior)
def _overrelax_parameters(prior, stats, rng, params):
    mean, precision = _posterior(prior, stats[0], stats[1])
    root = math.sqrt(precision)
    x = overrelax_normal(rng, (params[1] - mean) * root)
    _set_density(prior, mean + x / root, params)


@base.implements(base.mean_parameters, NormalKnownSigmaPrior)
def _mean_parameters(prior, stats, params):
    mean, _ = _posterior(prior, stats[0], stats[1])
    _set_density(prior, mean, params)


@jitted
def _refresh_predictive(prior, cache):
    mean, precision = _posterior(prior, cache[1], cache[2])
    variance = prior.sigma**2 + 1.0 / precision
    cache[0] = -0.5 * (_LOG_2PI + math.log(variance))
    cache[3] = mean
    cache[4] = 1.0 / math.sqrt(variance)


@base.implements(base.fill_predictive, NormalKnownSigmaPrior)
def _fill_cache(prior, stats, cache):
    cache[1] = stats[0]
    cache[2] = stats[1]
    _refresh_predictive(prior, cache)


@base.implements(base.predictive_add, NormalKnownSigmaPrior, uncounted=True)
def _cache_add(prior, data, i, cache):
    cache[1] += 1.0
    cache[2] += data[i, 0] - prior.shift[0]
    _refresh_predictive(prior, cache)


@base.implements(base.predictive_remove, NormalKnownSigmaPrior, uncounted=True)
def _cache_remove(prior, data, i, cache):
    cache[1] -= 1.0
    cache[2] -= data[i, 0] - prior.shift[0]
    _refresh_predictive(prior, cache)
    return True


@base.implements(base.log_predictive, NormalKnownSigmaPrior, uncounted=True)
def _log_predictive(prior, data, i, cache):
    """Return the normal log predictive density, eq. (7.21) as a ratio of marginals."""
    scaled = (data[i, 0] - prior.shift[0] - cache[3]) * cache[4]
    return cache[0] - 0.5 * scaled * scaled


@base.implements(collapsed.log_predictive_without, NormalKnownSigmaPrior)
def _log_predictive_without(prior, data, i, cache, spare):
    x = data[i, 0] - prior.shift[0]
    mean, precision = _posterior(prior, cache[1] - 1.0, cache[2] - x)
    variance = prior.sigma**2 + 1.0 / precision
    return -0.5 * (_LOG_2PI + math.log(variance) + (x - mean) ** 2 / variance)
