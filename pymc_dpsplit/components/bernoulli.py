"""Bernoulli clusters of vectors of zeros and ones, with beta priors.

Per column, p ~ Beta(a0, b0) and x ~ Bernoulli(p), see docs/method.md, eq. (7.11)-(7.12).

`column_kernels` generates the kernels; counts of ones are exact in float64.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.beta_probability import (
    WithProbability,
    beta_counts,
    beta_posterior,
    implement_beta_probability,
    natural_of,
)
from pymc_dpsplit.components.column_kernels import implement_by_column
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.dispatch import implements
from pymc_dpsplit.components.hyperparameters import A0_B0, Requirements
from pymc_dpsplit.components.parameter_laws import probability_of
from pymc_dpsplit.components.support import ZERO_ONE
from pymc_dpsplit.kernels.special import LOG_ZERO, log_growth, log_of_ratio, log_sum_of_two


class BernoulliPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is zero."""

    shift: np.ndarray
    a0: np.ndarray
    b0: np.ndarray


class Bernoulli(WithProbability):
    """Bernoulli clusters of 0/1 vectors, with a beta prior on the probability of each column.

    Per column, ``p ~ Beta(a0, b0)``, and entries of the cluster are 1 with probability ``p`` [1]_.
    The columns are independent given the cluster, as in a latent class model.

    Parameters
    ----------
    a0 : float or array of shape (D,)
        First parameter of the beta, a pseudo-count of ones; positive.
    b0 : float or array of shape (D,)
        Second parameter of the beta, a pseudo-count of zeros; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_p`` (K, D), the probabilities of a one.

    Data are 0 and 1, or booleans, of shape (N, D); give a single column as ``observed[:, None]``.
    The observed variable stores them as float64.  Missing entries (NaN) are imputed.  A latent
    mixture is refused, because no step method moves discrete rows.

    `from_data` uses ``a0 = b0 = 1``, a uniform prior on each probability.

    In the trace ``p`` is at most ``1 - 1e-16``.  Under the base measure it would be closer to 1
    with probability 6e-4 if ``b0 = 0.2``, and 2e-5 if ``b0 = 0.3``.  A value there stands for all
    that are closer to 1, also in the density from which hyperparameters that are variables move.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Bernoulli(a0=1.0, b0=[1.0, 3.0])
    Bernoulli(a0=1.0, b0=[1.0, 3.0])
    """

    requirements: ClassVar[Requirements] = A0_B0
    support = ZERO_ONE
    prior_class = BernoulliPrior

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        return {"a0": 1.0, "b0": 1.0}

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return {"p": probability_of(params[:, 1:])}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        log_zero = np.log1p(-parameters["p"])
        return np.column_stack([log_zero.sum(1), np.log(parameters["p"]) - log_zero])

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        p = graph_parameters["p"]
        return (rows * pt.log(p) + (1.0 - rows) * pt.log1p(-p)).sum(axis=1)

    def draw_rows(
        self, rng: np.random.Generator, parameters: Mapping[str, np.ndarray], labels: np.ndarray
    ) -> np.ndarray:
        p = parameters["p"][labels]
        return (rng.random(p.shape) < p).astype(np.float64)


@implements(columns.log_measure, BernoulliPrior)
def _log_measure(prior, d, x):
    return 0.0 if x == 0.0 or x == 1.0 else LOG_ZERO


@implements(beta_counts, BernoulliPrior)
def _beta_counts(prior, d, n, t):
    return t, n - t


@implements(natural_of, BernoulliPrior)
def _natural_of(prior, d, log_p, log_q):
    return log_p - log_q, log_q - log_sum_of_two(log_p, log_q)


@implements(columns.prepare_predictive, BernoulliPrior)
def _prepare_predictive(prior, d, n, t):
    """Compute the logarithms once for all entries; the predictive is Bernoulli at the mean of p."""
    one, zero = beta_posterior(prior, d, n, t)
    return -log_growth(zero, one), log_of_ratio(one, zero)


@implements(columns.finish_predictive, BernoulliPrior)
def _finish_predictive(prior, d, n, t, log_odds, x):
    return log_odds * x


implement_beta_probability(BernoulliPrior)
implement_by_column(BernoulliPrior)
