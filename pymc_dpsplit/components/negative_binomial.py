"""Negative binomial clusters of counts: p ~ Beta(a0, b0), x ~ NegativeBinomial(r, p), r known.

See Fink (1997), "A compendium of conjugate priors", section 1.3, and docs/method.md, eq.
(7.13)-(7.14).  `column_kernels` generates the kernels.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.beta_probability import (
    KNOWN_NUMBER,
    WithProbability,
    beta_counts,
    implement_beta_probability,
    natural_of,
)
from pymc_dpsplit.components.column_kernels import implement_by_column
from pymc_dpsplit.components.component_family import Values
from pymc_dpsplit.components.dispatch import implements
from pymc_dpsplit.components.graph_functions import log_gamma
from pymc_dpsplit.components.hyperparameters import A0_B0, Requirements
from pymc_dpsplit.components.parameter_laws import inside
from pymc_dpsplit.components.support import COUNTS
from pymc_dpsplit.data.blocks import moments_of
from pymc_dpsplit.kernels.special import LOG_ZERO, log_choose_failures, log_sum_of_two

_MOST = 1e18  # NumPy cannot draw larger counts
# Counts of a column whose binomial coefficients are tabulated, and those of all columns, at most.
_TABULATED, _OF_ALL_COLUMNS = 256, 65_536


class NegativeBinomialPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,), and a table; `shift` is zero.

    Attributes
    ----------
    log_choose : ndarray of float64, shape (D, T)
        Logarithms of the binomial coefficients of the counts 0 .. T - 1.
    """

    shift: np.ndarray
    r: np.ndarray
    a0: np.ndarray
    b0: np.ndarray
    log_choose: np.ndarray


class NegativeBinomial(WithProbability):
    """Negative binomial clusters of counts, overdispersed relative to `Poisson`.

    Per column, ``p ~ Beta(a0, b0)`` and counts of the cluster are the failures before success
    number r, with mean ``m = r (1 - p) / p`` and variance ``m + m^2 / r`` [1]_; they are geometric
    if ``r = 1``.  The columns are independent given the cluster; all clusters share `r`.

    Parameters
    ----------
    r : float or array of shape (D,)
        Number of successes, known; positive, not necessarily an integer.
    a0 : float or array of shape (D,)
        First parameter of the beta, a pseudo-count of successes; positive.
    b0 : float or array of shape (D,)
        Second parameter of the beta, a pseudo-count of failures; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_p`` (K, D), the probabilities of a success.

    Data are whole numbers from 0, of shape (N, D), as for `Poisson`.  If `r` is not known, use
    ``Component(pm.NegativeBinomial, mu=..., alpha=...)``, which samples it.

    `from_data` sets `r`, between 1 and 100, so that a cluster has a tenth of the overdispersion of
    the data; ``a0 = 2``, and ``b0`` is such that the prior mean of ``m`` is the mean of the data.

    References
    ----------
    .. [1] Fink (1997), A compendium of conjugate priors, section 1.3.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.NegativeBinomial(r=2.0, a0=1.0, b0=[0.5, 2.0])
    NegativeBinomial(r=2.0, a0=1.0, b0=[0.5, 2.0])
    """

    requirements: ClassVar[Requirements] = {"r": KNOWN_NUMBER, **A0_B0}
    likelihood_arguments: tuple[str, ...] = ("r",)
    support = COUNTS
    prior_class = NegativeBinomialPrior

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        mean, variance = moments_of(rows)
        mean = np.maximum(mean, 0.5 / len(rows))
        r = np.clip(10.0 * mean**2 / np.maximum(variance - mean, 0.1 * mean**2), 1.0, 100.0)
        return {"r": r, "a0": 2.0, "b0": mean / r}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        table = _log_choose_table(values["r"].tobytes())
        return super().prior({**values, "log_choose": table}, shift)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return {"p": inside(-np.expm1(params[:, 1:]))}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        p, r = parameters["p"], self._number("r")
        return np.column_stack([(r * np.log(p)).sum(1), np.log1p(-p)])

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        p, r = graph_parameters["p"], self.hyperparameters["r"]
        terms = log_gamma(rows + r, pt) - log_gamma(r, pt) - log_gamma(rows + 1.0, pt)
        return (terms + r * pt.log(p) + rows * pt.log1p(-p)).sum(axis=1)

    def draw_rows(
        self, rng: np.random.Generator, parameters: Mapping[str, np.ndarray], labels: np.ndarray
    ) -> np.ndarray:
        p, r = parameters["p"][labels], self._number("r")
        rate = rng.standard_gamma(r, p.shape) * (1.0 - p) / p
        return rng.poisson(np.minimum(rate, _MOST)).astype(np.float64)


# The prior is made anew in every draw if a0 or b0 is a variable, and r never is.
@lru_cache(maxsize=8)
def _log_choose_table(numbers: bytes) -> np.ndarray:
    """Logs of the binomial coefficients of counts from 0, (D, T), for the bytes of r (D,)."""
    r = np.frombuffer(numbers)
    n_columns = len(r)
    table = np.zeros((n_columns, max(1, min(_TABULATED, _OF_ALL_COLUMNS // n_columns))))
    x = np.arange(1.0, table.shape[1])
    table[:, 1:] = np.log((r[:, None] + (x - 1.0)) / x).cumsum(axis=1)
    return table


@implements(columns.log_measure, NegativeBinomialPrior)
def _log_measure(prior, d, x):
    """Return the log of the binomial coefficient."""
    if not (x >= 0.0 and x == np.floor(x)):
        return LOG_ZERO
    if x < prior.log_choose.shape[1]:
        return prior.log_choose[d, int(x)]
    return log_choose_failures(prior.r[d], x)


@implements(beta_counts, NegativeBinomialPrior)
def _beta_counts(prior, d, n, t):
    return n * prior.r[d], t


@implements(natural_of, NegativeBinomialPrior)
def _natural_of(prior, d, log_p, log_q):
    log_odds = log_p - log_q
    return -log_sum_of_two(0.0, log_odds), -prior.r[d] * log_sum_of_two(0.0, -log_odds)


implement_beta_probability(NegativeBinomialPrior)
implement_by_column(NegativeBinomialPrior, keeps_log_measure=True)
