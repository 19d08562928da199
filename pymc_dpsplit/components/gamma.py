"""Gamma clusters of one known shape, with gamma priors on the rates.

Per column, rate ~ Gamma(shape a0, rate b0) and x ~ Gamma(shape, rate); see Fink (1997), "A
compendium of conjugate priors", section 2.2.2, and docs/method.md, eq. (7.34)-(7.35).

`column_kernels` and `gamma_rate` generate the kernels.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.column_kernels import implement_by_column
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.dispatch import implements
from pymc_dpsplit.components.gamma_rate import KnownShape, implement_gamma_rate
from pymc_dpsplit.components.graph_functions import log_gamma
from pymc_dpsplit.components.parameter_laws import TINY, GammaLaw
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.special import LOG_ZERO


class GammaPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is zero."""

    shift: np.ndarray
    shape: np.ndarray
    a0: np.ndarray
    b0: np.ndarray


class Gamma(KnownShape):
    """Gamma clusters of vectors of positive numbers that differ only in their rates.

    Per column, ``rate ~ Gamma(a0, b0)`` with shape a0 and rate b0, and observations of the cluster
    are ``Gamma(shape, rate)``, with density
    ``rate^shape x^(shape - 1) exp(-rate x) / Gamma(shape)`` [1]_.  The columns are independent
    given the cluster; all clusters share `shape`.

    Parameters
    ----------
    shape : float or array of shape (D,)
        Shape of the observations, whose relative variance in a cluster is ``1 / shape``; positive.
    a0 : float or array of shape (D,)
        Shape of the prior of a rate; positive.
    b0 : float or array of shape (D,)
        Rate of the prior of a rate, in the units of the data; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_rate`` (K, D), the rates.

    Data are positive numbers of shape (N, D); give a single column as ``observed[:, None]``.  A
    latent mixture, or data less a mean, is refused, because other step methods would move rows out
    of the support.

    If `shape` is a variable of the model, such as ``pm.Exponential("shape", 1)``, NUTS samples it
    given the labels, and the posterior contains the labels as ``{name}_labels``.

    `from_data` sets `shape` so that the relative variance of a cluster is a tenth of that of the
    data, but `shape` is at least 1; ``a0 = 2``, and ``b0`` is such that a cluster with the prior
    mean rate has the mean of the data.

    References
    ----------
    .. [1] Fink (1997), A compendium of conjugate priors, section 2.2.2.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Gamma(shape=2.0, a0=1.0, b0=[0.5, 2.0])
    Gamma(shape=2.0, a0=1.0, b0=[0.5, 2.0])
    """

    law = GammaLaw("rate")
    prior_class = GammaPrior

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        mean, variance = moments_of(rows)
        shape = np.maximum(10.0 * mean**2 / variance, 1.0)
        return {"shape": shape, "a0": 2.0, "b0": 2.0 * mean / shape}

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        rate, shape = graph_parameters["rate"], self._shape()
        terms = (
            shape * pt.log(rate) - log_gamma(shape, pt) + (shape - 1.0) * pt.log(rows) - rate * rows
        )
        return terms.sum(axis=1)

    def draw_rows(
        self, rng: np.random.Generator, parameters: Mapping[str, np.ndarray], labels: np.ndarray
    ) -> np.ndarray:
        rate = parameters["rate"][labels]
        return np.maximum(rng.standard_gamma(self._shape(), rate.shape) / rate, TINY)


@implements(columns.log_measure, GammaPrior)
def _log_measure(prior, d, x):
    """Return log(x^(shape - 1) / Gamma(shape))."""
    shape = prior.shape[d]
    if shape == 1.0:
        return 0.0 if x >= 0.0 else LOG_ZERO
    return (shape - 1.0) * math.log(x) - math.lgamma(shape) if x > 0.0 else LOG_ZERO


@implements(columns.measure_statistic, GammaPrior)
def _measure_statistic(prior, d, x):
    # Only the exponential family accepts zeros, and its factor shape - 1 = 0 cancels the logarithm.
    return math.log(max(x, TINY))


@implements(columns.sum_log_measures, GammaPrior)
def _sum_log_measures(prior, d, n, s):
    return (prior.shape[d] - 1.0) * s - n * math.lgamma(prior.shape[d])


implement_gamma_rate(GammaPrior)
implement_by_column(GammaPrior)
