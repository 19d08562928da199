"""Families of whole numbers with a beta prior on a probability.

A family implements `beta_counts`, what entries add to the parameters of the beta, and `natural_of`,
the dependence of the density on p; docs/method.md, eq. (7.13)-(7.16).
"""

import math
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components import column_functions as columns
from pymc_dpsplit.components.arguments import as_floats, positive_vector, shown
from pymc_dpsplit.components.by_column import OneParameterByColumn
from pymc_dpsplit.components.dispatch import implemented, implements, operation
from pymc_dpsplit.components.hyperparameters import Requirement
from pymc_dpsplit.components.lost_digits import PRECISE_POISSON_COUNT, warning_of_lost_digits
from pymc_dpsplit.components.parameter_laws import BetaLaw
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.special import log_beta_rising


def _whole_vector(name: str, value: Any, n_features: int) -> np.ndarray:
    vector = positive_vector(name, value, n_features)
    if (vector != np.floor(vector)).any():
        raise ValueError(f"{name}={shown(value)} must be whole; give numbers of trials.")
    return vector


# With larger numbers the law is nearly that of `Poisson`, and terms of its density cancel alike.
_LARGE = 1e7

# The sufficient statistics contain log h, which depends on this number: it cannot be a variable.
KNOWN_NUMBER = Requirement(1, positive_vector, is_number=True)
KNOWN_TRIALS = Requirement(1, _whole_vector, is_number=True)


class WithProbability(OneParameterByColumn):
    """A family of whole numbers whose parameter is a probability for each column."""

    is_discrete: ClassVar[bool] = True
    law = BetaLaw("p")

    def warning_for(self, rows: np.ndarray) -> str | None:
        """Warn as by default, and sooner if the known number is large."""
        is_large = any((self._number(name) > _LARGE).any() for name in self.likelihood_arguments)
        most = PRECISE_POISSON_COUNT if is_large else self.most_precise_count
        return warning_of_lost_digits(rows, most)

    def _number(self, name: str) -> Any:
        """Return a known number among the hyperparameters as an array."""
        return as_floats(name, self.hyperparameters[name])


@operation
def beta_counts(prior, d, n, t):
    """Return what entries of one column add to the parameters of the beta.

    Parameters
    ----------
    prior : NamedTuple
    d : int
        Column.
    n, t : float
        Number of entries, and their sum.

    Returns
    -------
    successes, failures : float
    """


@operation
def natural_of(prior, d, log_p, log_q):
    """Return slope and constant of the density at probability p / (p + q).

    Parameters
    ----------
    prior : NamedTuple
    d : int
        Column.
    log_p, log_q : float
        Logarithms of p and q, which need not sum to 1.

    Returns
    -------
    slope, constant : float
    """


def implement_beta_probability(prior_class: type) -> None:
    """Implement the operations that follow from the beta prior on the probability."""
    implements(columns.log_partition, prior_class)(_log_partition)
    implements(columns.draw_natural, prior_class)(_draw_natural)
    implements(columns.mean_natural, prior_class)(_mean_natural)
    if not implemented(columns.prepare_predictive, prior_class):
        implements(columns.prepare_predictive, prior_class)(_prepare_predictive)
        implements(columns.finish_predictive, prior_class)(_finish_predictive)


@jitted
def beta_posterior(prior, d, n, t):
    """Return the parameters a_n and b_n of the beta posterior of p in one column.

    Parameters
    ----------
    prior : NamedTuple
        With the fields `a0` and `b0`.
    d : int
        Column.
    n, t : float
        Number of entries, and their sum.

    Returns
    -------
    a_n, b_n : float
    """
    successes, failures = beta_counts(prior, d, n, t)
    return prior.a0[d] + successes, prior.b0[d] + failures


def _log_partition(prior, d, n, t):
    """Return log Z(n, t) / Z(0, 0)."""
    successes, failures = beta_counts(prior, d, n, t)
    return log_beta_rising(prior.a0[d], prior.b0[d], successes, failures)


def _prepare_predictive(prior, d, n, t):
    return 0.0, 0.0


def _finish_predictive(prior, d, n, t, prepared, x):
    """Return a ratio of beta functions, whose difference of logarithms would lose digits."""
    a_n, b_n = beta_posterior(prior, d, n, t)
    successes, failures = beta_counts(prior, d, 1.0, x)
    return log_beta_rising(a_n, b_n, successes, failures)


def _draw_natural(prior, d, n, t, rng):
    a_n, b_n = beta_posterior(prior, d, n, t)
    log_p = draw_log_gamma(rng, a_n)
    return natural_of(prior, d, log_p, draw_log_gamma(rng, b_n))


def _mean_natural(prior, d, n, t):
    a_n, b_n = beta_posterior(prior, d, n, t)
    return natural_of(prior, d, math.log(a_n), math.log(b_n))
