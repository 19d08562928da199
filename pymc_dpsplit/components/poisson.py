"""Poisson clusters of counts with gamma priors on the rates, docs/method.md, eq. (7.9)-(7.10).

`column_kernels` generates the kernels; sums of counts are exact in float64.
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.by_column import OneParameterByColumn
from pymc_dpsplit.components.column_kernels import implement_by_column
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.dispatch import implements
from pymc_dpsplit.components.graph_functions import log_gamma
from pymc_dpsplit.components.hyperparameters import A0_B0, Requirements
from pymc_dpsplit.components.lost_digits import PRECISE_POISSON_COUNT
from pymc_dpsplit.components.parameter_laws import TINY, GammaLaw
from pymc_dpsplit.components.support import COUNTS
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import LOG_ZERO, log_factorial, log_growth, log_rising_over


class PoissonPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is zero."""

    shift: np.ndarray
    a0: np.ndarray
    b0: np.ndarray


class Poisson(OneParameterByColumn):
    """Poisson clusters of vectors of counts, with a gamma prior on the rate of each column.

    Per column, ``rate ~ Gamma(a0, b0)`` with shape a0 and rate b0, and counts of the cluster are
    ``Poisson(rate)`` [1]_.  The columns are independent given the cluster.

    Parameters
    ----------
    a0 : float or array of shape (D,)
        Shape of the gamma; positive.
    b0 : float or array of shape (D,)
        Rate of the gamma; positive.  The prior mean of a rate is ``a0 / b0``.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_rate`` (K, D), the rates.  Data are whole numbers from
    0, of shape (N, D); give a single column as ``observed[:, None]``.  Missing entries (NaN) are
    imputed.  A latent mixture of counts is refused, as no step method moves discrete rows.

    `from_data` uses ``a0 = 1``, and ``b0`` the inverse of the mean of each column, so that rates
    have an exponential prior with that mean; the total of a column is taken for half or more.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.6.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Poisson(a0=1.0, b0=[0.5, 2.0])
    Poisson(a0=1.0, b0=[0.5, 2.0])
    """

    requirements: ClassVar[Requirements] = A0_B0
    is_discrete: ClassVar[bool] = True
    most_precise_count: ClassVar[float] = PRECISE_POISSON_COUNT
    law = GammaLaw("rate")
    support = COUNTS
    prior_class = PoissonPrior

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        return {"a0": 1.0, "b0": 1.0 / np.maximum(moments_of(rows)[0], 0.5 / len(rows))}

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # If a rate underflowed to 0, `pack` would compute log 0.
        return {"rate": np.maximum(np.exp(params[:, 1:]), TINY)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        return np.column_stack([-parameters["rate"].sum(1), np.log(parameters["rate"])])

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        rate = graph_parameters["rate"]
        return (rows * pt.log(rate) - rate - log_gamma(rows + 1.0, pt)).sum(axis=1)

    def draw_rows(
        self, rng: np.random.Generator, parameters: Mapping[str, np.ndarray], labels: np.ndarray
    ) -> np.ndarray:
        return rng.poisson(parameters["rate"][labels]).astype(np.float64)


@implements(columns.log_measure, PoissonPrior)
def _log_measure(prior, d, x):
    return -log_factorial(x) if x >= 0.0 and x == np.floor(x) else LOG_ZERO


@implements(columns.log_partition, PoissonPrior)
def _log_partition(prior, d, n, t):
    """Return log Z(n, t) / Z(0, 0), eq. (7.10)."""
    a0, b0 = prior.a0[d], prior.b0[d]
    return log_rising_over(a0, t, b0 + n) - a0 * log_growth(b0, n)


@implements(columns.prepare_predictive, PoissonPrior)
def _prepare_predictive(prior, d, n, t):
    b_n = prior.b0[d] + n
    return -(prior.a0[d] + t) * math.log1p(1.0 / b_n), b_n


@implements(columns.finish_predictive, PoissonPrior)
def _finish_predictive(prior, d, n, t, b_n, x):  # log negative binomial probability, but for x!
    return log_rising_over(prior.a0[d] + t, x, b_n + 1.0)


@implements(columns.draw_natural, PoissonPrior)
def _draw_natural(prior, d, n, t, rng):
    log_rate = draw_log_gamma(rng, prior.a0[d] + t) - math.log(prior.b0[d] + n)
    return log_rate, -math.exp(log_rate)


@implements(columns.mean_natural, PoissonPrior)
def _mean_natural(prior, d, n, t):
    rate = (prior.a0[d] + t) / (prior.b0[d] + n)
    return math.log(rate), -rate


implement_by_column(PoissonPrior, keeps_log_measure=True)
