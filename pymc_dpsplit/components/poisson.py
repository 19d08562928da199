"""Poisson clusters of counts with gamma priors on the rates.

Per column, rate ~ Gamma(shape a, rate b) and x ~ Poisson(rate); see Gelman et al. (2013),
"Bayesian Data Analysis", 3rd edition, section 2.6, and docs/method.md, eq. (40)-(41).

Layout.  stats: n, sums (D), sum of the log factorials of all entries.  params: - sum of the
rates, log rate (D).  tile: the counts, then - sum of the log factorials of a row.  cache: what of
the predictive does not depend on the row, n, sums (D).  Sums of counts are exact in float64.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from pymc_dpsplit.components import base
from pymc_dpsplit.components.arguments import positive_vector, refuse_where, rows_of
from pymc_dpsplit.components.by_column import DiscreteByColumn
from pymc_dpsplit.components.declaration import Values
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.linear import fill_log_linear
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import LOG_NOTHING, log_factorial
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of

_TINY = np.finfo(np.float64).tiny


class PoissonPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is not used."""

    shift: np.ndarray
    a: np.ndarray
    b: np.ndarray


class Poisson(DiscreteByColumn):
    """Poisson clusters of vectors of counts, with a gamma prior on the rate of each column.

    Per column, ``rate ~ Gamma(a, b)`` with shape a and rate b, and counts of the cluster are
    ``Poisson(rate)``, that is ``rate^x exp(-rate) / x!`` [1]_.  Given the cluster the columns are
    independent.

    Parameters
    ----------
    a : float or array of shape (D,)
        Shape of the gamma; positive.
    b : float or array of shape (D,)
        Rate of the gamma, so that the prior mean of a rate is ``a / b``; positive.

    Notes
    -----
    Data are whole numbers from 0, of shape (N, D), a single column as ``observed[:, None]``; the
    observed variable has them as float64.  Missing entries (NaN) are imputed.  A latent mixture
    of counts is refused, as no step moves it.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.6.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Poisson(a=1.0, b=[0.5, 2.0])
    Poisson(a=1.0, b=[0.5, 2.0])
    """

    parameters: ClassVar[dict[str, int]] = {"rate": 1}
    natural_ndims: ClassVar[dict[str, int]] = parameters

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__({"a": a, "b": b})

    @classmethod
    def from_data(cls, observed: Any) -> "Poisson":
        """Weakly informative hyperparameters on the scale of the data.

        ``a = 1``, and ``b`` the inverse of the mean of each column: rates have an exponential law
        with that mean.  A column of zeros is given the mean of half a count in all.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Counts; entries that are NaN or masked are left out.

        Returns
        -------
        Poisson

        Raises
        ------
        ValueError
            If the data are empty or not counts, or all entries of a column are missing.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Poisson.from_data([[0, 3], [4, 7]]).hyperparameters["b"]
        array([0.5, 0.2])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        cls(1.0, 1.0).suited_to(rows)
        mean, _ = moments_of(rows)
        return cls(a=1.0, b=1.0 / np.maximum(mean, 0.5 / len(rows)))

    def suited_to(self, rows: np.ndarray) -> "Poisson":
        refuse_where(
            lambda x: (x < 0) | (x != np.floor(x)), rows, "give counts, whole numbers from 0"
        )
        return self

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {name: positive_vector(name, values[name], n_features) for name in ("a", "b")}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> PoissonPrior:
        return PoissonPrior(shift, values["a"], values["b"])

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # A rate that underflows would have the logarithm -inf when it is packed again.
        return {"rate": np.maximum(np.exp(params[:, 1:]), _TINY)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        rate = parameters["rate"]
        return np.column_stack([-rate.sum(1), np.log(rate)])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"rate": values["a"] / values["b"]}

    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the rates, eq. (40)."""
        rate, a, b = natural["rate"], values["a"], values["b"]
        terms = a * pt.log(b) - pt.gammaln(a) + (a - 1.0) * pt.log(rate) - b * rate
        return terms.sum(axis=1)

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        rate = natural["rate"]
        log_gamma = getattr(pt, "gammaln", special.gammaln)  # NumPy itself has none
        return (rows * pt.log(rate) - rate - log_gamma(rows + 1.0)).sum(axis=1)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        a, b = values["a"], values["b"]
        return {"rate": np.maximum(rng.standard_gamma(a, (size, *a.shape)) / b, _TINY)}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        return rng.poisson(parameters["rate"][labels]).astype(np.float64)


@base.implements(base.stats_size, PoissonPrior)
def _stats_size(prior):
    return 2 + prior.a.shape[0]


@base.implements(base.params_size, PoissonPrior)
def _params_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.tile_size, PoissonPrior)
def _tile_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.cache_size, PoissonPrior)
def _cache_size(prior):
    return 2 + prior.a.shape[0]


@kernel
def _log_measure(x):
    """- log x!, or next to -inf where x is no count."""
    return -log_factorial(x) if x >= 0.0 and x == np.floor(x) else LOG_NOTHING


@base.implements(base.load_tile, PoissonPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for t in range(TILE):
        extra = 0.0
        for d in range(n_features):
            x = np.float64(data[rows[t], d])
            tile[d * TILE + t] = x
            extra += _log_measure(x)
        tile[n_features * TILE + t] = extra


@base.implements(base.fill_log_density, PoissonPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    slopes = part_of(params, 1, prior.a.shape[0])
    fill_log_linear(tile, slopes, params[0], out)


@base.implements(base.add_row, PoissonPrior)
def _add_row(prior, data, i, stats):
    n_features = data.shape[1]
    stats[0] += 1.0
    for d in range(n_features):
        x = np.float64(data[i, d])
        stats[1 + d] += x
        stats[1 + n_features] += log_factorial(x)


@base.implements(base.log_marginal, PoissonPrior)
def _log_marginal(prior, stats):
    """Log marginal likelihood, eq. (41)."""
    n_features = prior.a.shape[0]
    total = -stats[1 + n_features]
    for d in range(n_features):
        a_n, b_n = prior.a[d] + stats[1 + d], prior.b[d] + stats[0]
        total += math.lgamma(a_n) - math.lgamma(prior.a[d])
        total += prior.a[d] * math.log(prior.b[d]) - a_n * math.log(b_n)
    return total


@base.implements(base.draw_parameters, PoissonPrior)
def _draw_parameters(prior, stats, rng, params):
    params[0] = 0.0
    for d in range(prior.a.shape[0]):
        log_rate = draw_log_gamma(rng, prior.a[d] + stats[1 + d]) - math.log(prior.b[d] + stats[0])
        params[0] -= math.exp(log_rate)
        params[1 + d] = log_rate


@base.implements(base.mean_parameters, PoissonPrior)
def _mean_parameters(prior, stats, params):
    params[0] = 0.0
    for d in range(prior.a.shape[0]):
        rate = (prior.a[d] + stats[1 + d]) / (prior.b[d] + stats[0])
        params[0] -= rate
        params[1 + d] = math.log(rate)


@kernel
def _refresh_constant(prior, cache):
    total = 0.0
    for d in range(prior.a.shape[0]):
        a_n, b_n = prior.a[d] + cache[2 + d], prior.b[d] + cache[1]
        total -= math.lgamma(a_n) + a_n * math.log1p(1.0 / b_n)
    cache[0] = total


@base.implements(base.fill_cache, PoissonPrior)
def _fill_cache(prior, stats, cache):
    for d in range(1 + prior.a.shape[0]):
        cache[1 + d] = stats[d]
    _refresh_constant(prior, cache)


@base.implements(base.cache_add, PoissonPrior)
def _cache_add(prior, data, i, cache):
    cache[1] += 1.0
    for d in range(data.shape[1]):
        cache[2 + d] += data[i, d]
    _refresh_constant(prior, cache)


@base.implements(base.cache_remove, PoissonPrior)
def _cache_remove(prior, data, i, cache):
    cache[1] -= 1.0
    for d in range(data.shape[1]):
        cache[2 + d] -= data[i, d]
    _refresh_constant(prior, cache)
    return True


@base.implements(base.log_predictive, PoissonPrior)
def _log_predictive(prior, data, i, cache):
    """Negative binomial predictive probability, eq. (41) as a ratio of marginals."""
    total = cache[0]
    for d in range(data.shape[1]):
        x = np.float64(data[i, d])
        log_measure = _log_measure(x)
        if log_measure == LOG_NOTHING:
            return LOG_NOTHING
        b_n = prior.b[d] + cache[1]
        total += math.lgamma(prior.a[d] + cache[2 + d] + x) + log_measure
        total -= x * math.log(b_n + 1.0)
    return total
