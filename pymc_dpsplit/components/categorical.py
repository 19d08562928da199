"""Categorical clusters of vectors of codes, with Dirichlet priors.

Per column, p ~ Dirichlet(beta) and P(x = c) = p_c; see Gelman et al. (2013), "Bayesian Data
Analysis", 3rd edition, section 3.4, and docs/method.md, eq. (44)-(45).

Columns may differ in their number of categories: arrays have room for the largest number C, and
beta and p are 0 where a column has no such category.

Layout, with entry c of column d at d * C + c.  stats: n, numbers of each category (D * C).
params: 0, log p (D * C).  tile: the position in params of each entry, then 0.  cache: constant
of the predictive, n, numbers (D * C), log(beta + number) (D * C).
"""

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.components.arguments import refuse_where, rows_of
from pymc_dpsplit.components.by_column import DiscreteByColumn
from pymc_dpsplit.components.category_weights import (
    counts_of_categories,
    weights_by_column,
    without_absent,
)
from pymc_dpsplit.components.declaration import Values
from pymc_dpsplit.data.blocks import highest_of
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.lookup import fill_log_lookup
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import LOG_NOTHING, log_sum_of_two
from pymc_dpsplit.kernels.tiles import TILE

_TINY = np.finfo(np.float64).tiny
# More are hardly categories: a table of them is kept for every column and cluster.
_MOST_CATEGORIES = 10_000


class CategoricalPrior(NamedTuple):
    """`beta` is float64 of shape (D, C), 0 where there is no such category; `shift` is not used."""

    shift: np.ndarray
    beta: np.ndarray


class Categorical(DiscreteByColumn):
    """Categorical clusters of vectors of codes, with a Dirichlet prior on each column.

    Per column, ``p ~ Dirichlet(beta)`` and an entry of the cluster is category c with probability
    ``p_c`` [1]_.  Given the cluster the columns are independent: a latent class model.

    Parameters
    ----------
    beta : float, list of D vectors, or array of shape (C,) or (D, C)
        Parameters of the Dirichlet, in observations of each category; positive.  A number serves
        all categories; a column then has as many as its largest code in `observed` says.  With
        vectors of different lengths columns have different numbers of categories.

    Notes
    -----
    Data are codes 0, 1, ... of shape (N, D), a single column as ``observed[:, None]``; the
    observed variable has them as float64.  Missing entries (NaN) are imputed.  A latent mixture
    is refused, as no step moves it.  In the trace ``p`` has the dimensions cluster, feature and
    ``{name}_category``; it is 0 where a column has no such category, and positive elsewhere.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Categorical(beta=[[1.0, 1.0], [0.5, 0.5, 0.5]])
    Categorical(beta=[[1.0, 1.0], [0.5, 0.5, 0.5]])
    """

    takes_categories: ClassVar[bool] = True
    parameters: ClassVar[dict[str, int]] = {"p": 1}
    natural_ndims: ClassVar[dict[str, int]] = parameters

    def __init__(self, beta: Any) -> None:
        super().__init__({"beta": beta})
        self.n_categories: np.ndarray | None = None

    @classmethod
    def from_data(cls, observed: Any) -> "Categorical":
        """Weakly informative hyperparameters: ``beta = 1``, every law of a column alike.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            Codes 0, 1, ...; entries may be NaN or masked.

        Returns
        -------
        Categorical

        Raises
        ------
        ValueError
            If the data are empty or not codes.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Categorical.from_data([[0, 2], [1, 0]])
        Categorical(beta=1.0)
        """
        return cls(beta=1.0).suited_to(rows_of(observed, cls.row_ndim, may_miss=True))

    def declared_features(self) -> int | None:
        beta = self.hyperparameters["beta"]
        is_list = isinstance(beta, list | tuple) and np.ndim(beta[0]) == 1
        return len(beta) if is_list or np.ndim(beta) == 2 else None

    def suited_to(self, rows: np.ndarray) -> "Categorical":
        refuse_where(
            lambda x: (x < 0) | (x != np.floor(x)),
            rows,
            "give codes, whole numbers from 0, and NaN where an entry is missing",
        )
        known = self.n_categories
        if known is None:
            known = counts_of_categories(self.hyperparameters["beta"], rows.shape[1])
        if known is None:
            refuse_where(
                lambda x: x >= _MOST_CATEGORIES, rows, "number the categories from 0 without gaps"
            )
            known = np.nan_to_num(highest_of(rows), nan=0.0, neginf=0.0).astype(np.int64) + 1
        suited = copy.copy(self)
        suited.n_categories = limits = known
        refuse_where(
            lambda x: x >= limits, rows, "give codes below the number of categories beta has"
        )
        return suited

    def own_dims(self, name: str) -> dict[str, int]:
        known = self.n_categories
        return {} if known is None else {"category": int(known.max())}

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {"beta": weights_by_column(values["beta"], n_features, self.n_categories)}

    def _beta(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Hyperparameters as `check` returns them, also where they are those of a variable."""
        return without_absent(values["beta"], self.n_categories)

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> CategoricalPrior:
        return CategoricalPrior(shift, self._beta(values))

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        return super().restrict({"beta": self._beta(values)}, features)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # One that underflows would look like that of a category which is not there.
        log_p = params[:, 1:]
        p = np.where(log_p > 0.5 * LOG_NOTHING, np.maximum(np.exp(log_p), _TINY), 0.0)
        n_features = shift.shape[0]
        return {"p": p.reshape(len(p), n_features, p.shape[1] // n_features)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        shape = parameters["p"].shape
        p = parameters["p"].reshape(shape[0], shape[1] * shape[2])
        log_p = np.where(p > 0.0, np.log(np.where(p > 0.0, p, 1.0)), LOG_NOTHING)
        return np.column_stack([np.zeros(len(p)), log_p])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        beta = self._beta(values)
        return {"p": beta / beta.sum(1, keepdims=True)}

    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the probabilities but the last of each column, eq. (44)."""
        p, beta = natural["p"], values["beta"]
        is_there = pt.gt(p, 0.0)
        present = pt.where(is_there, beta, 0.0)
        # Where there is no such category the term is log 1 - log Gamma(1).
        exponent = pt.where(is_there, beta, 1.0)
        terms = (exponent - 1.0) * pt.log(pt.where(is_there, p, 1.0)) - pt.gammaln(exponent)
        return pt.gammaln(present.sum(axis=2)).sum(axis=1) + terms.sum(axis=2).sum(axis=1)

    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        codes = rows.astype("int64").reshape((rows.shape[0], -1, 1))
        return pt.log(pt.take_along_axis(natural["p"], codes, 2)).sum(axis=2).sum(axis=1)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        beta = self._beta(values)
        # Logarithms of gammas, by G(a) = G(a + 1) U^(1/a): the gammas themselves may all be 0.
        shape = (size, *beta.shape)
        with np.errstate(divide="ignore"):
            scaled = rng.standard_exponential(shape) / beta
        log_gamma = np.log(rng.standard_gamma(beta + 1.0, shape)) - scaled
        p = np.exp(log_gamma - log_gamma.max(2, keepdims=True))
        p = np.maximum(p / p.sum(2, keepdims=True), _TINY)
        return {"p": np.where(beta > 0.0, p, 0.0)}

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        p = parameters["p"]
        rows = np.empty((len(labels), p.shape[1]))
        for d in range(p.shape[1]):
            cumulative = np.cumsum(p[:, d], axis=1)
            targets = rng.random(len(labels)) * cumulative[labels, -1]
            codes = (cumulative[labels] <= targets[:, None]).sum(1)
            # A target that was rounded to the whole belongs to the last category there is.
            rows[:, d] = np.minimum(codes, np.count_nonzero(p[:, d], axis=1)[labels] - 1)
        return rows


@base.implements(base.stats_size, CategoricalPrior)
def _stats_size(prior):
    return 1 + prior.beta.size


@base.implements(base.params_size, CategoricalPrior)
def _params_size(prior):
    return 1 + prior.beta.size


@base.implements(base.tile_size, CategoricalPrior)
def _tile_size(prior):
    return 1 + prior.beta.shape[0]


@base.implements(base.cache_size, CategoricalPrior)
def _cache_size(prior):
    return 2 + 2 * prior.beta.size


@kernel
def _place(prior, d, x):
    """Position of category x of column d among all, -1 if there is none."""
    n_categories = prior.beta.shape[1]
    if not (0.0 <= x < n_categories) or x != np.floor(x):
        return -1
    code = np.int64(x)
    return d * n_categories + code if prior.beta[d, code] > 0.0 else -1


@base.implements(base.load_tile, CategoricalPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for t in range(TILE):
        extra = 0.0
        for d in range(n_features):
            place = _place(prior, d, data[rows[t], d])
            tile[d * TILE + t] = 1 + max(place, 0)
            if place < 0:
                extra = LOG_NOTHING
        tile[n_features * TILE + t] = extra


@base.implements(base.fill_log_density, CategoricalPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    fill_log_lookup(tile, params, prior.beta.shape[0], params[0], out)


@base.implements(base.add_row, CategoricalPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0
    for d in range(data.shape[1]):
        stats[1 + d * prior.beta.shape[1] + np.int64(data[i, d])] += 1.0


@base.implements(base.log_marginal, CategoricalPrior)
def _log_marginal(prior, stats):
    """Log marginal likelihood, eq. (45)."""
    n_features, n_categories = prior.beta.shape
    total = 0.0
    for d in range(n_features):
        weight = 0.0
        for c in range(n_categories):
            beta, n = prior.beta[d, c], stats[1 + d * n_categories + c]
            weight += beta
            if n > 0.0:
                total += math.lgamma(beta + n) - math.lgamma(beta)
        total += math.lgamma(weight) - math.lgamma(weight + stats[0])
    return total


@base.implements(base.draw_parameters, CategoricalPrior)
def _draw_parameters(prior, stats, rng, params):
    n_features, n_categories = prior.beta.shape
    params[0] = 0.0
    for d in range(n_features):
        first = 1 + d * n_categories
        total = LOG_NOTHING
        for c in range(n_categories):
            params[first + c] = LOG_NOTHING
            if prior.beta[d, c] > 0.0:
                log_gamma = draw_log_gamma(rng, prior.beta[d, c] + stats[first + c])
                params[first + c] = log_gamma
                total = log_sum_of_two(total, log_gamma)
        for c in range(n_categories):
            if prior.beta[d, c] > 0.0:
                params[first + c] -= total


@base.implements(base.mean_parameters, CategoricalPrior)
def _mean_parameters(prior, stats, params):
    n_features, n_categories = prior.beta.shape
    params[0] = 0.0
    for d in range(n_features):
        first = 1 + d * n_categories
        weight = stats[0]
        for c in range(n_categories):
            weight += prior.beta[d, c]
        for c in range(n_categories):
            share = (prior.beta[d, c] + stats[first + c]) / weight
            params[first + c] = math.log(share) if share > 0.0 else LOG_NOTHING


@kernel
def _refresh_constant(prior, cache):
    total = 0.0
    for d in range(prior.beta.shape[0]):
        weight = cache[1]
        for c in range(prior.beta.shape[1]):
            weight += prior.beta[d, c]
        total -= math.log(weight)
    cache[0] = total


@base.implements(base.fill_cache, CategoricalPrior)
def _fill_cache(prior, stats, cache):
    n_features, n_categories = prior.beta.shape
    cache[1] = stats[0]
    for d in range(n_features):
        for c in range(n_categories):
            at = d * n_categories + c
            weight = prior.beta[d, c] + stats[1 + at]
            cache[2 + at] = stats[1 + at]
            cache[2 + prior.beta.size + at] = math.log(weight) if weight > 0.0 else LOG_NOTHING
    _refresh_constant(prior, cache)


@kernel
def _change(prior, data, i, cache, by):
    """Add `by` to the numbers of an observation's categories."""
    cache[1] += by
    for d in range(data.shape[1]):
        code = np.int64(data[i, d])
        at = d * prior.beta.shape[1] + code
        cache[2 + at] += by
        cache[2 + prior.beta.size + at] = math.log(prior.beta[d, code] + cache[2 + at])
    _refresh_constant(prior, cache)


@base.implements(base.cache_add, CategoricalPrior)
def _cache_add(prior, data, i, cache):
    _change(prior, data, i, cache, 1.0)


@base.implements(base.cache_remove, CategoricalPrior)
def _cache_remove(prior, data, i, cache):
    _change(prior, data, i, cache, -1.0)
    return True


@base.implements(base.log_predictive, CategoricalPrior)
def _log_predictive(prior, data, i, cache):
    """Log predictive probability, eq. (45) as a ratio of marginals."""
    total = cache[0]
    for d in range(data.shape[1]):
        place = _place(prior, d, data[i, d])
        if place < 0:
            return LOG_NOTHING
        total += cache[2 + prior.beta.size + place]
    return total
