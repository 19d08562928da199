"""Gamma clusters of one known shape, with gamma priors on the rates.

Per column, rate ~ Gamma(shape a, rate b) and x ~ Gamma(shape, rate); see Fink (1997), "A compendium
of conjugate priors", section 2.2.2, and docs/method.md, eq. (72)-(73).

Layout.  stats: n, sums (D), sums of logarithms (D).  params: sum of shape log rate, - rate (D).
tile: the entries, then what of the density of a row no rate multiplies.  cache: what of the
predictive does not depend on the row, n, sums (D), the log of what removals since it was filled
have left of b plus a sum.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import special

from pymc_dpsplit.components import base
from pymc_dpsplit.components.arguments import positive_vector, refuse_where, rows_of
from pymc_dpsplit.components.by_column import ByColumn
from pymc_dpsplit.components.declaration import Values
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.linear import fill_log_linear
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import LOG_NOTHING
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of

_TINY = np.finfo(np.float64).tiny
# Removals that leave less than this of some b + sum, all in all, have lost half the digits.
_LEAST_KEPT = 1e-8
_LOG_LEAST_KEPT = math.log(_LEAST_KEPT)


class GammaPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is not used."""

    shift: np.ndarray
    shape: np.ndarray
    a: np.ndarray
    b: np.ndarray


class Gamma(ByColumn):
    """Gamma clusters of vectors of positive numbers that differ in their rates alone.

    Per column, ``rate ~ Gamma(a, b)`` with shape a and rate b, and observations of the cluster are
    ``Gamma(shape, rate)``, with density ``rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape)``
    [1]_.  Given the cluster the columns are independent; all clusters share `shape`.

    Parameters
    ----------
    shape : float or array of shape (D,)
        Shape of the observations: their relative variance in a cluster is ``1 / shape``; positive.
    a : float or array of shape (D,)
        Shape of the prior of a rate; positive.
    b : float or array of shape (D,)
        Rate of the prior of a rate, in the units of the data; positive.

    Notes
    -----
    Data are positive numbers of shape (N, D), a single column as ``observed[:, None]``.  A latent
    mixture, or data less a mean, is refused: other steps would leave the positive numbers.

    A `shape` that is a variable of the model, such as ``pm.Exponential("shape", 1)``, is sampled by
    NUTS given the labels, which then are in the posterior as ``{name}_labels``.

    References
    ----------
    .. [1] Fink (1997), A compendium of conjugate priors, section 2.2.2.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Gamma(shape=2.0, a=1.0, b=[0.5, 2.0])
    Gamma(shape=2.0, a=1.0, b=[0.5, 2.0])
    """

    row_ndim: ClassVar[int] = 1
    is_bounded: ClassVar[bool] = True
    examples: ClassVar[tuple[float, float]] = (1.0, 2.0)
    parameters: ClassVar[dict[str, int]] = {"rate": 1}
    natural_ndims: ClassVar[dict[str, int]] = parameters
    likelihood_arguments: tuple[str, ...] = ("shape",)

    def __init__(self, shape: Any, a: Any, b: Any) -> None:
        super().__init__({"shape": shape, "a": a, "b": b})

    @classmethod
    def from_data(cls, observed: Any) -> "Gamma":
        """Weakly informative hyperparameters on the scale of the data.

        ``shape`` is such that the relative variance of a cluster is a tenth of that of the data,
        and at least 1; ``a = 2`` and ``b`` such that clusters of the mean rate have their mean.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Positive numbers; entries that are NaN or masked are left out.

        Returns
        -------
        Gamma

        Raises
        ------
        ValueError
            If the data are empty or not positive, or all entries of a column are missing.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Gamma.from_data([[1.0], [3.0]]).hyperparameters["shape"]
        array([40.])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        cls(1.0, 1.0, 1.0).suited_to(rows)
        mean, variance = moments_of(rows)
        shape = np.maximum(10.0 * mean**2 / variance, 1.0)
        return cls(shape=shape, a=2.0, b=2.0 * mean / shape)

    def suited_to(self, rows: np.ndarray) -> "Gamma":
        refuse_where(lambda x: x <= 0, rows, "give positive numbers, or another component")
        return self

    def hyperparameter_ndims(self) -> dict[str, int]:
        return dict.fromkeys(self.hyperparameters, 1)

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        names = self.hyperparameters
        return {name: positive_vector(name, values[name], n_features) for name in names}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> GammaPrior:
        return GammaPrior(shift, values["shape"], values["a"], values["b"])

    def _shape(self) -> Any:
        """Shape of the observations that is given."""
        return self.hyperparameters["shape"]

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # A rate that underflows would have the logarithm -inf when it is packed again.
        return {"rate": np.maximum(-params[:, 1:], _TINY)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        rate = parameters["rate"]
        return np.column_stack([(self._shape() * np.log(rate)).sum(1), -rate])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {"rate": values["a"] / values["b"]}

    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the rates, eq. (72)."""
        rate, a, b = natural["rate"], values["a"], values["b"]
        terms = a * pt.log(b) - pt.gammaln(a) + (a - 1.0) * pt.log(rate) - b * rate
        return terms.sum(axis=1)

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        rate, shape = natural["rate"], self._shape()
        log_gamma = getattr(pt, "gammaln", special.gammaln)  # NumPy itself has none
        terms = shape * pt.log(rate) - log_gamma(shape) + (shape - 1.0) * pt.log(rows) - rate * rows
        return terms.sum(axis=1)

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
        rate = parameters["rate"][labels]
        return np.maximum(rng.standard_gamma(self._shape(), rate.shape) / rate, _TINY)


@base.implements(base.stats_size, GammaPrior)
def _stats_size(prior):
    return 1 + 2 * prior.a.shape[0]


@base.implements(base.params_size, GammaPrior)
def _params_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.tile_size, GammaPrior)
def _tile_size(prior):
    return 1 + prior.a.shape[0]


@base.implements(base.cache_size, GammaPrior)
def _cache_size(prior):
    return 3 + prior.a.shape[0]


@kernel
def _log_measure(shape, x):
    """Log x^(shape - 1) / Gamma(shape), or next to -inf where x is not in the support."""
    if shape == 1.0:
        return 0.0 if x >= 0.0 else LOG_NOTHING
    return (shape - 1.0) * math.log(x) - math.lgamma(shape) if x > 0.0 else LOG_NOTHING


@base.implements(base.load_tile, GammaPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for t in range(TILE):
        extra = 0.0
        for d in range(n_features):
            x = np.float64(data[rows[t], d])
            log_measure = _log_measure(prior.shape[d], x)
            is_legal = log_measure != LOG_NOTHING
            tile[d * TILE + t] = x if is_legal else 0.0
            extra = extra + log_measure if is_legal and extra != LOG_NOTHING else LOG_NOTHING
        tile[n_features * TILE + t] = extra


@base.implements(base.fill_log_density, GammaPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    slopes = part_of(params, 1, prior.a.shape[0])
    fill_log_linear(tile, slopes, params[0], out)


@base.implements(base.add_row, GammaPrior)
def _add_row(prior, data, i, stats):
    n_features = data.shape[1]
    stats[0] += 1.0
    for d in range(n_features):
        x = np.float64(data[i, d])
        stats[1 + d] += x
        # Of zeros only the exponential law sees anything, and it multiplies the logarithm by zero.
        stats[1 + n_features + d] += math.log(max(x, _TINY))


@base.implements(base.log_marginal, GammaPrior)
def _log_marginal(prior, stats):
    """Log marginal likelihood, eq. (73)."""
    n, n_features, total = stats[0], prior.a.shape[0], 0.0
    for d in range(n_features):
        shape, a, b = prior.shape[d], prior.a[d], prior.b[d]
        a_n, b_n = a + n * shape, b + stats[1 + d]
        total += math.lgamma(a_n) - math.lgamma(a) + a * math.log(b) - a_n * math.log(b_n)
        total += (shape - 1.0) * stats[1 + n_features + d] - n * math.lgamma(shape)
    return total


@base.implements(base.draw_parameters, GammaPrior)
def _draw_parameters(prior, stats, rng, params):
    params[0] = 0.0
    for d in range(prior.a.shape[0]):
        log_gamma = draw_log_gamma(rng, prior.a[d] + stats[0] * prior.shape[d])
        log_rate = log_gamma - math.log(prior.b[d] + stats[1 + d])
        params[0] += prior.shape[d] * log_rate
        params[1 + d] = -math.exp(log_rate)


@base.implements(base.mean_parameters, GammaPrior)
def _mean_parameters(prior, stats, params):
    params[0] = 0.0
    for d in range(prior.a.shape[0]):
        rate = (prior.a[d] + stats[0] * prior.shape[d]) / (prior.b[d] + stats[1 + d])
        params[0] += prior.shape[d] * math.log(rate)
        params[1 + d] = -rate


@kernel
def _refresh_constant(prior, cache):
    total = 0.0
    for d in range(prior.a.shape[0]):
        shape = prior.shape[d]
        a_n = prior.a[d] + cache[1] * shape
        total += math.lgamma(a_n + shape) - math.lgamma(a_n)
        total -= shape * math.log(prior.b[d] + cache[2 + d])
    cache[0] = total


@base.implements(base.fill_cache, GammaPrior)
def _fill_cache(prior, stats, cache):
    for d in range(1 + prior.a.shape[0]):
        cache[1 + d] = stats[d]
    cache[-1] = 0.0
    _refresh_constant(prior, cache)


@base.implements(base.cache_add, GammaPrior)
def _cache_add(prior, data, i, cache):
    cache[1] += 1.0
    for d in range(data.shape[1]):
        cache[2 + d] += data[i, d]
    _refresh_constant(prior, cache)


@base.implements(base.cache_remove, GammaPrior)
def _cache_remove(prior, data, i, cache):
    cache[1] -= 1.0
    kept = 1.0
    for d in range(data.shape[1]):
        before = prior.b[d] + cache[2 + d]
        cache[2 + d] -= data[i, d]
        kept = min(kept, (prior.b[d] + cache[2 + d]) / before)
    if not kept > _LEAST_KEPT:
        return False
    # Cancellation adds up over removals: what one leaves inexact the next may expose.
    cache[-1] += math.log(kept)
    if cache[-1] < _LOG_LEAST_KEPT:
        return False
    _refresh_constant(prior, cache)
    return True


@base.implements(base.log_predictive, GammaPrior)
def _log_predictive(prior, data, i, cache):
    """Predictive density, eq. (73) as a ratio of marginals."""
    total = cache[0]
    for d in range(data.shape[1]):
        x, shape = np.float64(data[i, d]), prior.shape[d]
        log_measure = _log_measure(shape, x)
        if log_measure == LOG_NOTHING:
            return LOG_NOTHING
        a_n = prior.a[d] + cache[1] * shape
        total += log_measure - (a_n + shape) * math.log1p(x / (prior.b[d] + cache[2 + d]))
    return total
