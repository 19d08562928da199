"""Inverse gamma clusters of one known shape, with gamma priors on the scales.

Per column, scale ~ Gamma(shape a0, rate b0) and x ~ InvGamma(shape, scale), so that 1 / x has a
gamma distribution; see Fink (1997), "A compendium of conjugate priors", section 2.2.2, and
docs/method.md, eq. (7.36).  `column_kernels` and `gamma_rate` generate the kernels.
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


class InverseGammaPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is zero."""

    shift: np.ndarray
    shape: np.ndarray
    a0: np.ndarray
    b0: np.ndarray


class InverseGamma(KnownShape):
    """Inverse gamma clusters of vectors of positive numbers with heavy tails.

    Per column, ``scale ~ Gamma(a0, b0)`` with shape a0 and rate b0, and observations of the cluster
    are ``InverseGamma(shape, scale)``, with density
    ``scale^shape x^(-shape - 1) exp(-scale / x) / Gamma(shape)`` [1]_.  It suits variances, waiting
    times and incomes.  The columns are independent given the cluster; all clusters share `shape`.

    Parameters
    ----------
    shape : float or array of shape (D,)
        Shape of the observations, whose density has the tail ``x^(-shape - 1)``; positive.
    a0 : float or array of shape (D,)
        Shape of the prior of a scale; positive.
    b0 : float or array of shape (D,)
        Rate of the prior of a scale, in inverse units of the data; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_scale`` (K, D), the scales.

    Data are positive numbers of shape (N, D), and `shape` may be a variable, as for `Gamma`.

    `from_data` sets `shape` so that the relative variance of a cluster, ``1 / (shape - 2)``, is a
    tenth of that of the data; ``a0 = 2``, and ``b0`` is such that a cluster with the prior mean
    scale has the mean of the data.

    References
    ----------
    .. [1] Fink (1997), A compendium of conjugate priors, section 2.2.2.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.InverseGamma(shape=3.0, a0=1.0, b0=[0.5, 2.0])
    InverseGamma(shape=3.0, a0=1.0, b0=[0.5, 2.0])
    """

    law = GammaLaw("scale")
    prior_class = InverseGammaPrior

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        mean, variance = moments_of(rows)
        shape = 2.0 + 10.0 * mean**2 / variance
        return {"shape": shape, "a0": 2.0, "b0": 2.0 / (mean * (shape - 1.0))}

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        scale, shape = graph_parameters["scale"], self._shape()
        terms = shape * pt.log(scale) - log_gamma(shape, pt) - (shape + 1.0) * pt.log(rows)
        return (terms - scale / rows).sum(axis=1)

    def draw_rows(
        self, rng: np.random.Generator, parameters: Mapping[str, np.ndarray], labels: np.ndarray
    ) -> np.ndarray:
        scale = parameters["scale"][labels]
        return scale / np.maximum(rng.standard_gamma(self._shape(), scale.shape), TINY)


@implements(columns.statistic, InverseGammaPrior)
def _statistic(prior, d, x):
    return 1.0 / x


@implements(columns.log_measure, InverseGammaPrior)
def _log_measure(prior, d, x):
    """Return log(x^(-shape - 1) / Gamma(shape))."""
    shape = prior.shape[d]
    return -(shape + 1.0) * math.log(x) - math.lgamma(shape) if x > 0.0 else LOG_ZERO


@implements(columns.measure_statistic, InverseGammaPrior)
def _measure_statistic(prior, d, x):
    return math.log(x)


@implements(columns.sum_log_measures, InverseGammaPrior)
def _sum_log_measures(prior, d, n, s):
    return -(prior.shape[d] + 1.0) * s - n * math.lgamma(prior.shape[d])


implement_gamma_rate(InverseGammaPrior)
implement_by_column(InverseGammaPrior)
