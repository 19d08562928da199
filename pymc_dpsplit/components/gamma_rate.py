"""Families of positive numbers with a known shape and a gamma prior on a rate.

Each entry x of a cluster adds `shape` to a0 and a statistic T(x) to b0: x for `Gamma`, 1 / x for
`InverseGamma`; docs/method.md, eq. (7.34)-(7.35).
"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.by_column import OneParameterByColumn
from pymc_dpsplit.components.dispatch import implements
from pymc_dpsplit.components.hyperparameters import A0_B0, POSITIVE_PER_COLUMN, Requirements
from pymc_dpsplit.components.parameter_laws import TINY
from pymc_dpsplit.components.support import POSITIVE
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import log_growth, log_rising_over


class KnownShape(OneParameterByColumn):
    """A family of positive numbers that share a known shape."""

    requirements: ClassVar[Requirements] = {"shape": POSITIVE_PER_COLUMN, **A0_B0}
    is_bounded: ClassVar[bool] = True
    examples: ClassVar[tuple[float, float]] = (1.0, 2.0)
    likelihood_arguments: tuple[str, ...] = ("shape",)
    support = POSITIVE

    def _shape(self) -> Any:
        """Return the hyperparameter `shape`."""
        return self.hyperparameters["shape"]

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        # If a rate underflowed to 0, `pack` would compute log 0.
        return {self.law.parameter: np.maximum(-params[:, 1:], TINY)}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        rate = parameters[self.law.parameter]
        return np.column_stack([(self._shape() * np.log(rate)).sum(1), -rate])


def implement_gamma_rate(prior_class: type) -> None:
    """Implement the operations that follow from the gamma prior on the rate.

    Parameters
    ----------
    prior_class : type
        NamedTuple class with the fields `shape`, `a0` and `b0`.
    """
    for of, function in _OF_RATE.items():
        implements(of, prior_class)(function)


def _share_kept(prior, d, before, after):
    return (prior.b0[d] + after) / (prior.b0[d] + before)


def _log_partition(prior, d, n, t):
    a0, b0 = prior.a0[d], prior.b0[d]
    return log_rising_over(a0, n * prior.shape[d], b0 + t) - a0 * log_growth(b0, t)


def _draw_natural(prior, d, n, t, rng):
    log_gamma = draw_log_gamma(rng, prior.a0[d] + n * prior.shape[d])
    log_rate = log_gamma - math.log(prior.b0[d] + t)
    return -math.exp(log_rate), prior.shape[d] * log_rate


def _mean_natural(prior, d, n, t):
    rate = (prior.a0[d] + n * prior.shape[d]) / (prior.b0[d] + t)
    return -rate, prior.shape[d] * math.log(rate)


def _prepare_predictive(prior, d, n, t):
    """Compute the log gammas once for all entries."""
    shape, a_n, b_n = prior.shape[d], prior.a0[d] + n * prior.shape[d], prior.b0[d] + t
    return log_rising_over(a_n, shape, b_n), b_n


def _finish_predictive(prior, d, n, t, b_n, statistic_of_x):
    a_n = prior.a0[d] + n * prior.shape[d]
    return -(a_n + prior.shape[d]) * log_growth(b_n, statistic_of_x)


_OF_RATE: dict[Any, Any] = {
    columns.share_kept: _share_kept,
    columns.log_partition: _log_partition,
    columns.draw_natural: _draw_natural,
    columns.mean_natural: _mean_natural,
    columns.prepare_predictive: _prepare_predictive,
    columns.finish_predictive: _finish_predictive,
}
