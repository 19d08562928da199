"""Bernoulli clusters of vectors of zeros and ones, with beta priors.

Per column, p ~ Beta(a, b) and x ~ Bernoulli(p); see Gelman et al. (2013), "Bayesian Data
Analysis", 3rd edition, section 2.4, and docs/method.md, eq. (42)-(43).

Layout.  stats: n, ones (D).  params: sum of log(1 - p), log odds (D).  tile: the entries, then 0.
cache: sum of the log probabilities of 0, n, ones (D), log odds of the predictive (D).  Numbers
of ones are exact in float64.
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
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.linear import fill_log_linear
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import LOG_NOTHING, log_sum_of_two
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of

# Neither 0 nor 1, whose logarithms would be infinite when they are packed again.
_LOWEST, _HIGHEST = np.finfo(np.float64).tiny, np.nextafter(1.0, 0.0)


class BernoulliPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is not used."""

    shift: np.ndarray
    a: np.ndarray
    b: np.ndarray


class Bernoulli(DiscreteByColumn):
    """Bernoulli clusters of 0/1 vectors, with a beta prior on the probability of each column.

    Per column, ``p ~ Beta(a, b)`` and entries of the cluster are 1 with probability ``p`` [1]_.
    Given the cluster the columns are independent: a latent class model.

    Parameters
    ----------
    a : float or array of shape (D,)
        First parameter of the beta, in ones; positive.
    b : float or array of shape (D,)
        Second parameter of the beta, in zeros; positive.

    Notes
    -----
    Data are 0 and 1, or truth values, of shape (N, D), a single column as ``observed[:, None]``;
    the observed variable has them as float64.  Missing entries (NaN) are imputed.  A latent
    mixture is refused, as no step moves it.

    In the trace ``p`` is at most ``1 - 1e-16``.  Under the base measure it is closer to 1 with
    probability 6e-4 if ``b = 0.2``, and 2e-5 if ``b = 0.3``; this matters only where ``b`` is a
    variable, which then wants a prior away from 0.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Bernoulli(a=1.0, b=[1.0, 3.0])
    Bernoulli(a=1.0, b=[1.0, 3.0])
    """

    parameters: ClassVar[dict[str, int]] = {"p": 1}
    natural_ndims: ClassVar[dict[str, int]] = parameters

    def __init__(self, a: Any, b: Any) -> None:
        super().__init__({"a": a, "b": b})

    @classmethod
    def from_data(cls, observed: Any) -> "Bernoulli":
        """Weakly informative hyperparameters: ``a = b = 1``, every probability alike.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Zeros and ones; entries may be NaN or masked.

        Returns
        -------
        Bernoulli

        Raises
        ------
        ValueError
            If the data are empty, or not 0 and 1.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Bernoulli.from_data([[0, 1], [1, 1]])
        Bernoulli(a=1.0, b=1.0)
        """
        return cls(a=1.0, b=1.0).suited_to(rows_of(observed, cls.row_ndim, may_miss=True))

    def suited_to(self, rows: np.ndarray) -> "Bernoulli":
        refuse_where(lambda x: (x != 0) & (x != 1), rows, "give 0 and 1, or truth values")
        return self

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {name: positive_vector(name, values[name], n_features) for name in ("a", "b")}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> BernoulliPrior:
        return BernoulliPrior(shift, values["a"], values["b"])

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return {"p": np.clip(special.expit(params[:, 1:]), _LOWEST, _HIGHEST)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        log_zero = np.log1p(-parameters["p"])
        return np.column_stack([log_zero.sum(1), np.log(parameters["p"]) - log_zero])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"p": np.clip(values["a"] / (values["a"] + values["b"]), _LOWEST, _HIGHEST)}

    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the probabilities, eq. (42)."""
        p, a, b = natural["p"], values["a"], values["b"]
        normaliser = pt.gammaln(a + b) - pt.gammaln(a) - pt.gammaln(b)
        terms = normaliser + (a - 1.0) * pt.log(p) + (b - 1.0) * pt.log1p(-p)
        return terms.sum(axis=1)

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        p = natural["p"]
        return (rows * pt.log(p) + (1.0 - rows) * pt.log1p(-p)).sum(axis=1)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        a, b = values["a"], values["b"]
        return {"p": np.clip(rng.beta(a, b, (size, *a.shape)), _LOWEST, _HIGHEST)}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        p = parameters["p"][labels]
        return (rng.random(p.shape) < p).astype(np.float64)


@base.implements(base.stats_size, BernoulliPrior)
def _stats_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.params_size, BernoulliPrior)
def _params_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.tile_size, BernoulliPrior)
def _tile_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.cache_size, BernoulliPrior)
def _cache_size(prior):
    return 2 + 2 * prior.a.shape[0]


@base.implements(base.load_tile, BernoulliPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for t in range(TILE):
        extra = 0.0
        for d in range(n_features):
            x = data[rows[t], d]
            tile[d * TILE + t] = x
            if x != 0.0 and x != 1.0:
                extra = LOG_NOTHING
        tile[n_features * TILE + t] = extra


@base.implements(base.fill_log_density, BernoulliPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    slopes = part_of(params, 1, prior.a.shape[0])
    fill_log_linear(tile, slopes, params[0], out)


@base.implements(base.add_row, BernoulliPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0
    for d in range(data.shape[1]):
        stats[1 + d] += data[i, d]


@base.implements(base.log_marginal, BernoulliPrior)
def _log_marginal(prior, stats):
    """Log marginal likelihood, eq. (43)."""
    total = 0.0
    for d in range(prior.a.shape[0]):
        a, b, ones = prior.a[d], prior.b[d], stats[1 + d]
        total += math.lgamma(a + ones) - math.lgamma(a)
        total += math.lgamma(b + (stats[0] - ones)) - math.lgamma(b)
        total += math.lgamma(a + b) - math.lgamma(a + b + stats[0])
    return total


@base.implements(base.draw_parameters, BernoulliPrior)
def _draw_parameters(prior, stats, rng, params):
    params[0] = 0.0
    for d in range(prior.a.shape[0]):
        ones = stats[1 + d]
        log_one = draw_log_gamma(rng, prior.a[d] + ones)
        log_zero = draw_log_gamma(rng, prior.b[d] + (stats[0] - ones))
        params[0] += log_zero - log_sum_of_two(log_one, log_zero)
        params[1 + d] = log_one - log_zero


@kernel
def _fill_means(prior, counts, odds_at, out):
    """Write the log probabilities of 0, summed, and the log odds at the posterior means."""
    n, total = counts[0], 0.0
    for d in range(prior.a.shape[0]):
        one, zero = prior.a[d] + counts[1 + d], prior.b[d] + (n - counts[1 + d])
        total += math.log(zero / (one + zero))
        out[odds_at + d] = math.log(one / zero)
    out[0] = total


@base.implements(base.mean_parameters, BernoulliPrior)
def _mean_parameters(prior, stats, params):
    _fill_means(prior, stats, 1, params)


@base.implements(base.fill_cache, BernoulliPrior)
def _fill_cache(prior, stats, cache):
    n_features = prior.a.shape[0]
    for d in range(1 + n_features):
        cache[1 + d] = stats[d]
    _fill_means(prior, part_of(cache, 1, 1 + n_features), 2 + n_features, cache)


@base.implements(base.cache_add, BernoulliPrior)
def _cache_add(prior, data, i, cache):
    n_features = data.shape[1]
    cache[1] += 1.0
    for d in range(n_features):
        cache[2 + d] += data[i, d]
    _fill_means(prior, part_of(cache, 1, 1 + n_features), 2 + n_features, cache)


@base.implements(base.cache_remove, BernoulliPrior)
def _cache_remove(prior, data, i, cache):
    n_features = data.shape[1]
    cache[1] -= 1.0
    for d in range(n_features):
        cache[2 + d] -= data[i, d]
    _fill_means(prior, part_of(cache, 1, 1 + n_features), 2 + n_features, cache)
    return True


@base.implements(base.log_predictive, BernoulliPrior)
def _log_predictive(prior, data, i, cache):
    """Log predictive probability, eq. (43) as a ratio of marginals."""
    n_features = data.shape[1]
    total = cache[0]
    for d in range(n_features):
        x = data[i, d]
        if x != 0.0 and x != 1.0:
            return LOG_NOTHING
        if x == 1.0:
            total += cache[2 + n_features + d]
    return total
