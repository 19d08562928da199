"""Binomial clusters of numbers of successes: p ~ Beta(a0, b0), x ~ Binomial(n, p), n known.

See docs/method.md, eq. (7.15)-(7.16).  `column_kernels` generates the kernels.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.arguments import refuse_where
from pymc_dpsplit.components.beta_probability import (
    KNOWN_TRIALS,
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
from pymc_dpsplit.components.parameter_laws import probability_of
from pymc_dpsplit.components.support import COUNTS
from pymc_dpsplit.data.blocks import highest_of
from pymc_dpsplit.kernels.special import LOG_ZERO, log_choose, log_sum_of_two


class BinomialPrior(NamedTuple):
    """Hyperparameters per column, each float64 of shape (D,); `shift` is zero."""

    shift: np.ndarray
    n: np.ndarray
    a0: np.ndarray
    b0: np.ndarray


class Binomial(WithProbability):
    """Binomial clusters of numbers of successes in known numbers of trials.

    Per column, ``p ~ Beta(a0, b0)``, and entries of the cluster are ``Binomial(n, p)`` [1]_.  The
    columns are independent given the cluster; all rows share the numbers of trials `n`.

    Parameters
    ----------
    n : int or array of shape (D,)
        Number of trials of each column, known; whole and positive.
    a0 : float or array of shape (D,)
        First parameter of the beta, a pseudo-count of successes; positive.
    b0 : float or array of shape (D,)
        Second parameter of the beta, a pseudo-count of failures; positive.

    Notes
    -----
    In the trace of a mixture ``x`` are ``x_p`` (K, D), the probabilities of a success.

    Data are whole numbers from 0 to `n`, of shape (N, D); give a single column as
    ``observed[:, None]``.  If the number of trials differs between rows, use `Multinomial` with the
    columns successes and failures.

    `from_data` sets `n` to the largest entry of each column, and uses ``a0 = b0 = 1``.

    References
    ----------
    .. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 2.4.

    Examples
    --------
    >>> import pymc_dpsplit as dps
    >>> dps.Binomial(n=[10, 20], a0=1.0, b0=1.0)
    Binomial(n=[10, 20], a0=1.0, b0=1.0)
    """

    requirements: ClassVar[Requirements] = {"n": KNOWN_TRIALS, **A0_B0}
    likelihood_arguments: tuple[str, ...] = ("n",)
    support = COUNTS
    prior_class = BinomialPrior

    @classmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        highest = np.nan_to_num(highest_of(rows), nan=1.0, neginf=1.0)
        return {"n": np.maximum(highest, 1.0), "a0": 1.0, "b0": 1.0}

    def validate_rows(self, rows: np.ndarray) -> Self:
        n = KNOWN_TRIALS.check("n", self.hyperparameters["n"], rows.shape[1])
        refuse_where(lambda x: x > n, rows, "give numbers of successes up to n")
        return super().validate_rows(rows)

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return {"p": probability_of(params[:, 1:])}

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        log_p, log_q = np.log(parameters["p"]), np.log1p(-parameters["p"])
        return np.column_stack([(self._number("n") * log_q).sum(1), log_p - log_q])

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        p, n = graph_parameters["p"], self.hyperparameters["n"]
        ways = log_gamma(n + 1.0, pt) - log_gamma(rows + 1.0, pt) - log_gamma(n - rows + 1.0, pt)
        return (ways + rows * pt.log(p) + (n - rows) * pt.log1p(-p)).sum(axis=1)

    def draw_rows(
        self, rng: np.random.Generator, parameters: Mapping[str, np.ndarray], labels: np.ndarray
    ) -> np.ndarray:
        n = self._number("n").astype(np.int64)
        return rng.binomial(n, parameters["p"][labels]).astype(np.float64)


@implements(columns.log_measure, BinomialPrior)
def _log_measure(prior, d, x):
    """Return the log of the binomial coefficient."""
    if not (0.0 <= x <= prior.n[d] and x == np.floor(x)):
        return LOG_ZERO
    return log_choose(prior.n[d], x)


@implements(beta_counts, BinomialPrior)
def _beta_counts(prior, d, n, t):
    return t, n * prior.n[d] - t


@implements(natural_of, BinomialPrior)
def _natural_of(prior, d, log_p, log_q):
    log_odds = log_p - log_q
    return log_odds, -prior.n[d] * log_sum_of_two(0.0, log_odds)


implement_beta_probability(BinomialPrior)
implement_by_column(BinomialPrior, keeps_log_measure=True)
