"""Zeros and ones that a mixture depends on, or that stand beside it, against enumeration."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.pymc_hooks import refusals
from tests.reference.families import Normal
from tests.reference.franchise import log_likelihood_by_blocks, states_of_groups
from tests.support.partitions import enumerate_partitions
from tests.support.quadrature import fixed, posterior, table_of
from tests.support.runs import labels_test, run, run_in_groups, scalar_test
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

ROWS = np.array([-0.4, 0.1, 0.5, 0.2])
GROUPS = np.array([0, 1, 0, 1])
GIVEN = {"kappa0": 0.5, "a0": 2.0, "b0": 0.6}
MEANS = np.array([-1.5, 0.0])
HALVES = np.log([0.5, 0.5])
# Of latent rows: the spread of clusters and within them, and the noise of observations.
SIGMA0, SIGMA, NOISE = 1.5, 0.4, 0.5


def in_groups(log_likelihoods: list[Callable[[np.ndarray], float]]) -> np.ndarray:
    """Joint law (2, Bell(n)) of a binary variable and the partition of rows in groups."""
    every = enumerate_partitions(len(GROUPS))
    log_law = np.full((2, len(every)), -np.inf)
    for k, log_likelihood in enumerate(log_likelihoods):
        for i, _, log_term in states_of_groups(GROUPS, log_likelihood, 1.0, 1.0):
            log_law[k, i] = np.logaddexp(log_law[k, i], log_term)
    return np.exp(log_law - logsumexp(log_law))


def law_test(idata: Any, name: str, law: np.ndarray) -> float:
    """P-value of the partition and of the binary variable, given their joint law (2, Bell(n))."""
    return combine(
        labels_test(idata, name, law.sum(axis=0)),
        scalar_test(idata, "k", law.sum(axis=1), np.array([0.0, 1.0])),
    )


def above_a_mixture() -> float:
    twins = [Normal(mu0=mean, **GIVEN) for mean in MEANS]
    tables = np.stack([table_of(twin.log_marginal, ROWS[:, None]) for twin in twins])
    exact = posterior(tables, HALVES, fixed(1.0))
    with pm.Model():
        k = pm.Bernoulli("k", 0.5)
        component = dps.Normal(mu0=1.5 * k - 1.5, **GIVEN)
        dps.DPMixture("x", 1.0, component, observed=ROWS)
        return law_test(run(3000), "x", exact.joint)


def above_rows_in_groups() -> float:
    twins = [Normal(mu0=mean, **GIVEN) for mean in MEANS]
    law = in_groups([log_likelihood_by_blocks(twin, ROWS[:, None]) for twin in twins])
    with pm.Model():
        k = pm.Bernoulli("k", 0.5)
        component = dps.Normal(mu0=1.5 * k - 1.5, **GIVEN)
        dps.HDPMixture("x", 1.0, 1.0, component, groups=GROUPS, observed=ROWS)
        return law_test(run_in_groups(3000), "x", law)


def log_normal(shift: float) -> Callable[[np.ndarray], float]:
    """Log density of noisy latent rows less a shift, given labels."""

    def log_likelihood(labels: np.ndarray) -> float:
        together = labels[:, None] == labels
        cov = (SIGMA**2 + NOISE**2) * np.eye(len(ROWS)) + SIGMA0**2 * together
        return float(stats.multivariate_normal(np.zeros(len(ROWS)), cov).logpdf(ROWS - shift))

    return log_likelihood


def beside_latent_rows_in_groups() -> float:
    law = in_groups([log_normal(0.0), log_normal(1.0)])
    with pm.Model():
        k = pm.Bernoulli("k", 0.5)
        component = dps.NormalKnownSigma(0.0, SIGMA0, SIGMA)
        b = dps.HDPMixture("b", 1.0, 1.0, component, groups=GROUPS, shape=4)
        pm.Normal("y", b + k, NOISE, observed=ROWS)
        return law_test(run_in_groups(3000), "b", law)


CASES = {
    "above a mixture": above_a_mixture,
    "above rows in groups": above_rows_in_groups,
    "beside latent rows in groups": beside_latent_rows_in_groups,
}


@pytest.mark.parametrize("name", CASES)
def test_binary_variable_is_exact(name: str) -> None:
    assert CASES[name]() > LEVEL


@pytest.mark.control
def test_step_that_sums_the_labels_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_holding_others", lambda selected, model: selected)
    assert above_a_mixture() < LEVEL
