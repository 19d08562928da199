"""Categorical clusters of vectors of codes, with Dirichlet priors.

Per column, p ~ Dirichlet(a0) and P(x = c) = p_c; see Gelman et al. (2013), "Bayesian Data
Analysis", 3rd edition, section 3.4, and docs/method.md, eq. (7.17)-(7.18).

Columns may differ in their number of categories.  Arrays have one element for each of C
categories, the largest number; a0 and p are 0 for categories that a column does not have.

Layout, with category c of column d at d * C + c.  stats: n, counts of the categories (D * C).
params: 0, log p (D * C).  tile: the index of each entry in params, then 0, or `LOG_ZERO` for rows
outside the support.  cache: constant of the predictive, n, counts (D * C), log(a0 + count) (D * C).
"""

import copy
import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import base, collapsed
from pymc_dpsplit.components.arguments import refuse_where, rows_of
from pymc_dpsplit.components.by_column import DiscreteByColumn
from pymc_dpsplit.components.category_weights import (
    counts_of_categories,
    shape_of_weights,
    weights_by_column,
    without_absent,
)
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.parameter_laws import TINY, log_power
from pymc_dpsplit.data.blocks import highest_of
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.lookup import fill_log_lookup
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import (
    LOG_ZERO,
    log_of_ratio,
    log_rising_over,
    log_sum_of_two,
)
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.kernels.views import part_of, row_of

# Larger codes are refused as implausible: each cluster stores a table of size D times C.
_MOST_CATEGORIES = 10_000


class CategoricalPrior(NamedTuple):
    """`a0` is float64 of shape (D, C), 0 for absent categories; `shift` is not used."""

    shift: np.ndarray
    a0: np.ndarray


class Categorical(DiscreteByColumn):
    """Categorical clusters of vectors of codes, with a Dirichlet prior on each column.

    Per column, ``p ~ Dirichlet(a0)``, and an entry of the cluster is category c with probability
    ``p_c`` [1]_.  The columns are independent given the cluster, as in a latent class model.

    Parameters
    ----------
    a0 : float, list of D vectors, or array of shape (C,) or (D, C)
        Parameters of the Dirichlet, pseudo-counts of the categories; positive.  A number applies
        to all categories; the number of categories of a column is then its largest code in
        `observed` plus one.  A list of vectors sets the number of categories of each column.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_p`` (K, D, C), the probabilities of the
    categories.  `from_data` sets ``a0 = 1``, a uniform prior, and reads the numbers of
    categories.

    Data are codes 0, 1, ... of shape (N, D); give a single column as ``observed[:, None]``.  The
    observed variable stores them as float64.  Missing entries (NaN) are imputed.  A latent mixture
    is refused, because no step method moves discrete rows.  In the trace ``p`` has the dimensions
    cluster, feature and ``{name}_category``; it is 0 for categories that a column does not have,
    and positive for others.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 3.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Categorical(a0=[[1.0, 1.0], [0.5, 0.5, 0.5]])
    Categorical(a0=[[1.0, 1.0], [0.5, 0.5, 0.5]])
    """

    takes_categories: ClassVar[bool] = True
    parameters: ClassVar[dict[str, int]] = {"p": 1}
    graph_ndims: ClassVar[dict[str, int]] = parameters

    def __init__(self, a0: Any) -> None:
        self.hyperparameters = {"a0": a0}
        self.n_categories: np.ndarray | None = None

    @classmethod
    def from_data(cls, observed: Any) -> "Categorical":
        """Return weakly informative hyperparameters: ``a0 = 1``, a uniform Dirichlet prior.

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
        Categorical(a0=1.0)
        """
        return cls(a0=1.0).validate_rows(rows_of(observed, cls.row_ndim, may_miss=True))

    def declared_features(self) -> int | None:
        shape = shape_of_weights(self.hyperparameters["a0"])
        return shape[0] if len(shape) == 2 else None

    def validate_rows(self, rows: np.ndarray) -> "Categorical":
        refuse_where(
            lambda x: (x < 0) | (x != np.floor(x)),
            rows,
            "give codes, whole numbers from 0, and NaN where an entry is missing",
        )
        known = self.n_categories
        if known is None:
            known = counts_of_categories(self.hyperparameters["a0"], rows.shape[1])
        if known is None:
            refuse_where(
                lambda x: x >= _MOST_CATEGORIES, rows, "number the categories from 0 without gaps"
            )
            known = np.nan_to_num(highest_of(rows), nan=0.0, neginf=0.0).astype(np.int64) + 1
        suited = copy.copy(self)
        suited.n_categories = limits = known
        refuse_where(
            lambda x: x >= limits, rows, "give codes below the number of categories a0 has"
        )
        return suited

    def own_dims(self, name: str) -> dict[str, int]:
        known = self.n_categories
        return {} if known is None else {"category": int(known.max())}

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {"a0": weights_by_column(values["a0"], n_features, self.n_categories)}

    def _a0(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return `a0` as `check` returns it, with zeros for absent categories."""
        return without_absent(values["a0"], self.n_categories)

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> CategoricalPrior:
        return CategoricalPrior(shift, self._a0(values))

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        return super().restrict({"a0": self._a0(values)}, features)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # An underflow to 0 would mark the category as absent.
        log_p = params[:, 1:]
        p = np.where(log_p > 0.5 * LOG_ZERO, np.maximum(np.exp(log_p), TINY), 0.0)
        n_features = shift.shape[0]
        return {"p": p.reshape(len(p), n_features, p.shape[1] // n_features)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        shape = parameters["p"].shape
        p = parameters["p"].reshape(shape[0], shape[1] * shape[2])
        log_p = np.where(p > 0.0, np.log(np.where(p > 0.0, p, 1.0)), LOG_ZERO)
        return np.column_stack([np.zeros(len(p)), log_p])

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        a0 = self._a0(values)
        return {"p": a0 / a0.sum(1, keepdims=True)}

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of all probabilities but the last of each column, eq. (7.17)."""
        p, a0 = graph_parameters["p"], values["a0"]
        is_there = pt.gt(p, 0.0)
        present = pt.where(is_there, a0, 0.0)
        # For an absent category the term is log 1 - log Gamma(1) = 0.
        exponent = pt.where(is_there, a0, 1.0)
        terms = log_power(pt.where(is_there, p, 1.0), exponent, pt) - pt.gammaln(exponent)
        return pt.gammaln(present.sum(axis=2)).sum(axis=1) + terms.sum(axis=2).sum(axis=1)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        codes = rows.astype("int64").reshape((rows.shape[0], -1, 1))
        return pt.log(pt.take_along_axis(graph_parameters["p"], codes, 2)).sum(axis=2).sum(axis=1)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        a0 = self._a0(values)
        # Log gammas by G(a) = G(a + 1) U^(1/a), since all gammas may underflow to 0.
        shape = (size, *a0.shape)
        with np.errstate(divide="ignore"):
            scaled = rng.standard_exponential(shape) / a0
        log_gamma = np.log(rng.standard_gamma(a0 + 1.0, shape)) - scaled
        p = np.exp(log_gamma - log_gamma.max(2, keepdims=True))
        p = np.maximum(p / p.sum(2, keepdims=True), TINY)
        return {"p": np.where(a0 > 0.0, p, 0.0)}

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
            # A target that is rounded to the total selects the last category of the column.
            rows[:, d] = np.minimum(codes, np.count_nonzero(p[:, d], axis=1)[labels] - 1)
        return rows


@base.implements(base.stats_size, CategoricalPrior)
def _stats_size(prior):
    return 1 + prior.a0.size


@base.implements(base.params_size, CategoricalPrior)
def _params_size(prior):
    return 1 + prior.a0.size


@base.implements(base.tile_size, CategoricalPrior)
def _tile_size(prior):
    return 1 + prior.a0.shape[0]


@base.implements(base.predictive_size, CategoricalPrior)
def _cache_size(prior):
    return 2 + 2 * prior.a0.size


@jitted
def _place(prior, d, x):
    """Return the index of category x of column d in a flat table (D * C), or -1 if it is absent."""
    n_categories = prior.a0.shape[1]
    if not (0.0 <= x < n_categories) or x != np.floor(x):
        return -1
    code = np.int64(x)
    return d * n_categories + code if prior.a0[d, code] > 0.0 else -1


@base.implements(base.load_tile, CategoricalPrior)
def _load_tile(prior, data, rows, tile):
    n_features = data.shape[1]
    for t in range(TILE):
        extra = 0.0
        for d in range(n_features):
            place = _place(prior, d, data[rows[t], d])
            tile[d * TILE + t] = 1 + max(place, 0)
            if place < 0:
                extra = LOG_ZERO
        tile[n_features * TILE + t] = extra


@base.implements(base.fill_log_density, CategoricalPrior, inline=True)
def _fill_log_density(prior, tile, params, out, scratch):
    fill_log_lookup(tile, params, prior.a0.shape[0], params[0], out)


@base.implements(base.add_row, CategoricalPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0
    for d in range(data.shape[1]):
        stats[1 + d * prior.a0.shape[1] + np.int64(data[i, d])] += 1.0


@base.implements(base.add_groups, CategoricalPrior)
def _add_groups(prior, data, members, bounds, stats):
    n_features, n_categories = prior.a0.shape
    for k in range(stats.shape[0]):
        cluster = row_of(stats, k)
        cluster[0] += bounds[k + 1] - bounds[k]
        for d in range(n_features):
            counts = part_of(cluster, 1 + d * n_categories, n_categories)
            for j in range(bounds[k], bounds[k + 1]):
                counts[np.int64(data[members[j], d])] += 1.0


@base.implements(base.log_marginal, CategoricalPrior)
def _log_marginal(prior, stats):
    """Return the log marginal likelihood, eq. (7.18)."""
    n_features, n_categories = prior.a0.shape
    # Any number would do; near the size of the counts it costs no digits.
    total, size = 0.0, stats[0] + 1.0
    for d in range(n_features):
        weight = 0.0
        for c in range(n_categories):
            a0, n = prior.a0[d, c], stats[1 + d * n_categories + c]
            weight += a0
            if n > 0.0:
                total += log_rising_over(a0, n, size)
        total -= log_rising_over(weight, stats[0], size)
    return total


@base.implements(base.draw_parameters, CategoricalPrior)
def _draw_parameters(prior, stats, rng, params):
    n_features, n_categories = prior.a0.shape
    params[0] = 0.0
    for d in range(n_features):
        first = 1 + d * n_categories
        total = LOG_ZERO
        for c in range(n_categories):
            params[first + c] = LOG_ZERO
            if prior.a0[d, c] > 0.0:
                log_gamma = draw_log_gamma(rng, prior.a0[d, c] + stats[first + c])
                params[first + c] = log_gamma
                total = log_sum_of_two(total, log_gamma)
        for c in range(n_categories):
            if prior.a0[d, c] > 0.0:
                params[first + c] -= total


@base.implements(base.mean_parameters, CategoricalPrior)
def _mean_parameters(prior, stats, params):
    n_features, n_categories = prior.a0.shape
    params[0] = 0.0
    for d in range(n_features):
        first = 1 + d * n_categories
        weight = stats[0]
        for c in range(n_categories):
            weight += prior.a0[d, c]
        for c in range(n_categories):
            share = (prior.a0[d, c] + stats[first + c]) / weight
            params[first + c] = math.log(share) if share > 0.0 else LOG_ZERO


@jitted
def _refresh_constant(prior, cache):
    total = 0.0
    for d in range(prior.a0.shape[0]):
        weight = cache[1]
        for c in range(prior.a0.shape[1]):
            weight += prior.a0[d, c]
        total -= math.log(weight)
    cache[0] = total


@base.implements(base.fill_predictive, CategoricalPrior)
def _fill_cache(prior, stats, cache):
    n_features, n_categories = prior.a0.shape
    cache[1] = stats[0]
    for d in range(n_features):
        for c in range(n_categories):
            at = d * n_categories + c
            weight = prior.a0[d, c] + stats[1 + at]
            cache[2 + at] = stats[1 + at]
            cache[2 + prior.a0.size + at] = math.log(weight) if weight > 0.0 else LOG_ZERO
    _refresh_constant(prior, cache)


@jitted
def _change(prior, data, i, cache, by):
    """Add `by` to the counts of the categories of an observation."""
    cache[1] += by
    for d in range(data.shape[1]):
        code = np.int64(data[i, d])
        at = d * prior.a0.shape[1] + code
        cache[2 + at] += by
        cache[2 + prior.a0.size + at] = math.log(prior.a0[d, code] + cache[2 + at])
    _refresh_constant(prior, cache)


@base.implements(base.predictive_add, CategoricalPrior)
def _cache_add(prior, data, i, cache):
    _change(prior, data, i, cache, 1.0)


@base.implements(base.predictive_remove, CategoricalPrior)
def _cache_remove(prior, data, i, cache):
    _change(prior, data, i, cache, -1.0)
    return True


@base.implements(base.log_predictive, CategoricalPrior)
def _log_predictive(prior, data, i, cache):
    """Return the log predictive probability, eq. (7.18) as a ratio of marginals."""
    total = cache[0]
    for d in range(data.shape[1]):
        place = _place(prior, d, data[i, d])
        if place < 0:
            return LOG_ZERO
        total += cache[2 + prior.a0.size + place]
    return total


@base.implements(collapsed.log_predictive_without, CategoricalPrior)
def _log_predictive_without(prior, data, i, cache, spare):
    total = 0.0
    for d in range(data.shape[1]):
        code, n_others = np.int64(data[i, d]), cache[1] - 1.0
        for c in range(prior.a0.shape[1]):
            n_others += prior.a0[d, c]
        weight = prior.a0[d, code] + cache[2 + d * prior.a0.shape[1] + code] - 1.0
        total += log_of_ratio(weight, n_others)
    return total
