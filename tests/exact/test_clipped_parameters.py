"""Hyperparameters near zero, where parameters of clusters are clipped, against quadrature.

The concentration is so small that all rows are one cluster.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import betaln, gammaln

import pymc_dpsplit as dps
from pymc_dpsplit.components import categorical, multinomial, parameter_laws
from tests.support.runs import run, scalar_test
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

N, ALPHA = 10, 1e-6


class Case(NamedTuple):
    """A family with a hyperparameter h, data, the median of h, and the log likelihood of h."""

    component: Callable[[Any], Any]
    rows: np.ndarray
    median: float
    log_likelihood: Callable[[np.ndarray], np.ndarray]


def _one_category(h: np.ndarray) -> np.ndarray:
    """Log likelihood where all entries are of the first of three categories."""
    return gammaln(3 * h) - gammaln(3 * h + N) + gammaln(h + N) - gammaln(h)


CASES = {
    "NegativeBinomial": Case(
        lambda h: dps.NegativeBinomial(r=2.0, a0=2.0, b0=h),
        np.zeros((N, 1)),
        0.03,
        lambda h: betaln(2.0 + 2.0 * N, h) - betaln(2.0, h),
    ),
    "Binomial": Case(
        lambda h: dps.Binomial(n=5, a0=2.0, b0=h),
        np.full((N, 1), 5.0),
        0.03,
        lambda h: betaln(2.0 + 5.0 * N, h) - betaln(2.0, h),
    ),
    "Bernoulli": Case(
        lambda h: dps.Bernoulli(a0=h, b0=2.0),
        np.zeros((N, 1)),
        0.002,
        lambda h: betaln(h, 2.0 + N) - betaln(h, 2.0),
    ),
    "Poisson": Case(
        lambda h: dps.Poisson(a0=h, b0=1.0),
        np.zeros((N, 1)),
        0.002,
        lambda h: -h * np.log(1.0 + N),
    ),
    "Categorical": Case(
        lambda h: dps.Categorical(a0=h * np.ones((1, 3))), np.zeros((N, 1)), 0.002, _one_category
    ),
    "Multinomial": Case(
        lambda h: dps.Multinomial(a0=h * np.ones(3)),
        np.tile([1.0, 0.0, 0.0], (N, 1)),
        0.002,
        _one_category,
    ),
}


def p_value(case: Case) -> float:
    log_median = np.log(case.median)
    nodes = log_median + np.linspace(-8.0, 8.0, 4001)
    logs = stats.norm.logpdf(nodes, log_median, 1.0) + case.log_likelihood(np.exp(nodes))
    law = np.exp(logs - logs.max())
    with pm.Model():
        h = pm.math.exp(pm.Normal("log_h", log_median, 1.0))
        dps.DPMixture("x", ALPHA, case.component(h), observed=case.rows)
        idata = run(5000)
    return scalar_test(idata, "log_h", law / law.sum(), nodes)


@pytest.mark.parametrize("name", CASES)
def test_hyperparameter_of_clipped_parameters_is_exact(name: str) -> None:
    assert p_value(CASES[name]) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("name", ["NegativeBinomial", "Poisson", "Categorical"])
def test_density_of_one_value_at_a_bound_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def power(x: Any, exponent: Any, pt: Any) -> Any:
        return (exponent - 1.0) * pt.log(x)

    for module in (parameter_laws, categorical, multinomial):
        monkeypatch.setattr(module, "log_power", power)
    monkeypatch.setattr(
        parameter_laws, "log_power_of_rest", lambda p, b, pt: (b - 1.0) * pt.log1p(-p)
    )
    assert p_value(CASES[name]) < LEVEL
