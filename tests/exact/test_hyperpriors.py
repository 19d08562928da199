"""Hyperparameters with priors, sampled by NUTS, against enumeration and quadrature."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.variables import base_density
from tests.support.families import FAMILIES, HYPERPARAMETERS, dataset_of
from tests.support.quadrature import Grid, fixed, grid_of, posterior, table_of
from tests.support.runs import labels_test, run, scalar_test
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

N = 6
ALPHA = 1.2
_REAL = stats.norm(0.0, 1.0)
_POSITIVE = stats.gamma(2.0, scale=0.5)
_BETA = np.array([[1.0, 1.5, 0.7], [1.2, 0.6, 0.0]])
_S0 = np.array([[1.2, 0.4], [0.4, 1.6]])


class Case(NamedTuple):
    """A family, the prior of a scalar, and the hyperparameters that are made of that scalar."""

    family: str
    n_features: int
    prior: Any
    made_of: Callable[[Any], dict[str, Any]]

    @property
    def rows(self) -> np.ndarray:
        return dataset_of(self.family, "overlapping", self.n_features)[:N]

    def hyperparameters(self, scalar: Any) -> dict[str, Any]:
        return {**HYPERPARAMETERS[self.family](self.n_features), **self.made_of(scalar)}


CASES = {
    "Normal mu0": Case("Normal", 1, _REAL, lambda h: {"mu0": h}),
    "Normal kappa0": Case("Normal", 1, _POSITIVE, lambda h: {"kappa0": h}),
    "Normal a0": Case("Normal", 1, _POSITIVE, lambda h: {"a0": h}),
    "Normal b0": Case("Normal", 1, _POSITIVE, lambda h: {"b0": h}),
    "DiagNormal b0": Case("DiagNormal", 2, _POSITIVE, lambda h: {"b0": h * np.array([1.0, 0.6])}),
    "MvNormal mu0": Case("MvNormal", 2, _REAL, lambda h: {"mu0": h * np.array([1.0, -0.5])}),
    "MvNormal kappa0": Case("MvNormal", 2, _POSITIVE, lambda h: {"kappa0": h}),
    "MvNormal nu0": Case("MvNormal", 2, _POSITIVE, lambda h: {"nu0": 1.0 + h}),
    "MvNormal psi0": Case("MvNormal", 2, _POSITIVE, lambda h: {"psi0": h * _S0}),
    "Poisson a0": Case("Poisson", 2, _POSITIVE, lambda h: {"a0": h * np.array([1.0, 0.6])}),
    "Poisson b0": Case("Poisson", 2, _POSITIVE, lambda h: {"b0": h * np.array([1.0, 0.6])}),
    "Bernoulli a0": Case("Bernoulli", 2, _POSITIVE, lambda h: {"a0": h * np.array([1.0, 0.6])}),
    "Bernoulli b0": Case("Bernoulli", 2, _POSITIVE, lambda h: {"b0": 0.3 + h * np.ones(2)}),
    "Categorical a0": Case("Categorical", 2, _POSITIVE, lambda h: {"a0": h * _BETA}),
}
_QUICK = ("DiagNormal b0", "MvNormal psi0", "Categorical a0")


def declared(prior: Any, name: str) -> Any:
    """Declare the variable of a model that has the law of one of SciPy's."""
    if prior is _REAL:
        return pm.Normal(name, 0.0, 1.0)
    return pm.Gamma(name, 2.0, 2.0)


def p_value(case: Case, alpha: Grid, n_draws: int = 1500, **options: Any) -> float:
    """P-value of the partition, the scalar, and alpha if it has a grid."""
    scalar = grid_of(case.prior)
    twins = [FAMILIES[case.family].twin(**case.hyperparameters(h)) for h in scalar.nodes]
    tables = np.stack([table_of(twin.log_marginal, case.rows) for twin in twins])
    exact = posterior(tables, scalar.log_weights, alpha)
    samples_alpha = len(alpha.nodes) > 1
    with pm.Model():
        concentration = declared(_POSITIVE, "alpha") if samples_alpha else alpha.nodes[0]
        hyperparameters = case.hyperparameters(declared(case.prior, "h"))
        component = FAMILIES[case.family].component(**hyperparameters)
        observed = case.rows[:, 0] if case.family == "Normal" else case.rows
        dps.DPMixture("x", concentration, component, observed=observed)
        idata = run(n_draws, **options)
    p_values = [
        labels_test(idata, "x", exact.partitions),
        scalar_test(idata, "h", exact.nodes, scalar.nodes),
    ]
    if samples_alpha:
        p_values.append(scalar_test(idata, "alpha", exact.alpha, alpha.nodes))
    return combine(*p_values)


@pytest.mark.parametrize(
    "name",
    [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_hyperparameter_is_exact(name: str) -> None:
    n_draws = 1500 if name in _QUICK else 5000
    assert p_value(CASES[name], fixed(ALPHA), n_draws) > LEVEL


def test_hyperparameter_and_alpha_are_exact() -> None:
    assert p_value(CASES["Normal b0"], grid_of(_POSITIVE)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Normal mu0", "MvNormal psi0"])
def test_hyperparameter_is_exact_with_the_collapsed_kernel(name: str) -> None:
    assert p_value(CASES[name], fixed(ALPHA), kernel="collapsed") > LEVEL


@pytest.mark.control
def test_base_density_without_the_last_cluster_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(component: Any, n_clusters: Any, *rest: Any) -> Any:
        return base_density.base_log_density(component, n_clusters - 1, *rest)

    monkeypatch.setattr("pymc_dpsplit.variables.measure.base_log_density", broken)
    assert p_value(CASES["Normal mu0"], fixed(ALPHA)) < LEVEL
