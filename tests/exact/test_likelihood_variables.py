"""Variables in the density of the rows, moved by NUTS, against enumeration and quadrature."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.variables import rows as rows_module
from tests.reference import shared
from tests.support.families import FAMILIES, HYPERPARAMETERS, as_observed, dataset_of
from tests.support.quadrature import Grid, fixed, grid_of, posterior, table_of
from tests.support.rolled import roll_labels
from tests.support.runs import labels_test, run, scalar_test
from tests.support.statistics import LEVEL, combine

pytestmark = pytest.mark.slow

N = 6
ALPHA = 1.2
COV = np.array([[1.1, 0.3], [0.3, 0.8]])
POSITIVE = stats.gamma(2.0, scale=0.5)


def declared(name: str) -> Any:
    """Variable of a model with the law `POSITIVE`."""
    return pm.Gamma(name, 2.0, 2.0)


class Case(NamedTuple):
    """A family, and the hyperparameters that are made of a positive scalar."""

    family: str
    n_features: int
    made_of: Callable[[Any], dict[str, Any]]

    @property
    def rows(self) -> np.ndarray:
        return dataset_of(self.family, "overlapping", self.n_features)[:N]

    def hyperparameters(self, scalar: Any) -> dict[str, Any]:
        return {**HYPERPARAMETERS[self.family](self.n_features), **self.made_of(scalar)}


CASES = {
    "NormalKnownSigma sigma": Case("NormalKnownSigma", 1, lambda h: {"sigma": h}),
    "MvNormalKnownCov cov": Case("MvNormalKnownCov", 2, lambda h: {"cov": h * COV}),
    "Gamma shape": Case("Gamma", 2, lambda h: {"shape": h * np.array([1.0, 1.5])}),
    "NormalKnownSigma sigma0 too": Case(
        "NormalKnownSigma", 1, lambda h: {"sigma": h, "sigma0": 0.5 + h}
    ),
}
_QUICK = ("NormalKnownSigma sigma",)


def tables_of(case: Case, nodes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Tables (G, 2^n) of rows (n, D); those that are NaN are integrated out."""
    twins = [FAMILIES[case.family].twin(**case.hyperparameters(h)) for h in nodes]

    def log_marginal(twin: Any, some: np.ndarray) -> float:
        return twin.log_marginal(some[~np.isnan(some).any(1)])

    return np.stack([table_of(lambda some, t=t: log_marginal(t, some), rows) for t in twins])


def p_value(
    case: Case,
    alpha: Grid | None = None,
    holes: tuple[int, ...] = (),
    n_draws: int = 1500,
    **options: Any,
) -> float:
    """P-value of the partition, of the scalar, and of alpha if it has a grid."""
    alpha, samples_alpha = alpha or fixed(ALPHA), alpha is not None
    rows = case.rows
    rows[list(holes)] = np.nan
    scalar = grid_of(POSITIVE)
    exact = posterior(tables_of(case, scalar.nodes, rows), scalar.log_weights, alpha)
    with pm.Model():
        concentration = declared("alpha") if samples_alpha else ALPHA
        component = FAMILIES[case.family].component(**case.hyperparameters(declared("h")))
        dps.DPMixture("x", concentration, component, observed=as_observed(case.family, rows))
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
def test_variable_of_the_likelihood_is_exact(name: str) -> None:
    assert p_value(CASES[name]) > LEVEL


@pytest.mark.slow
def test_variable_of_the_likelihood_and_alpha_are_exact() -> None:
    assert p_value(CASES["NormalKnownSigma sigma"], grid_of(POSITIVE)) > LEVEL


@pytest.mark.slow
def test_variable_of_the_likelihood_is_exact_with_the_collapsed_kernel() -> None:
    assert p_value(CASES["NormalKnownSigma sigma"], kernel="collapsed") > LEVEL


def test_variable_of_the_likelihood_is_exact_beside_missing_entries() -> None:
    assert p_value(CASES["NormalKnownSigma sigma"], holes=(1,)) > LEVEL


@pytest.mark.parametrize("exchanges", [pytest.param(0, marks=pytest.mark.slow), 10])
def test_variable_of_a_latent_mixture_is_exact(exchanges: int) -> None:
    """Rows y_i ~ N(b_i, 0.5^2) are those of clusters as much wider."""
    case, noise = CASES["NormalKnownSigma sigma"], 0.5
    scalar = grid_of(POSITIVE)
    wider = [
        shared.NormalKnownSigma(**{**case.hyperparameters(h), "sigma": np.hypot(h, noise)})
        for h in scalar.nodes
    ]
    tables = np.stack([table_of(twin.log_marginal, case.rows) for twin in wider])
    exact = posterior(tables, scalar.log_weights, fixed(ALPHA))
    with pm.Model():
        component = dps.NormalKnownSigma(**case.hyperparameters(declared("h")))
        b = dps.DPMixture("b", ALPHA, component, shape=N)
        pm.Normal("y", b, noise, observed=case.rows[:, 0])
        idata = run(exchanges=exchanges)
    assert labels_test(idata, "b", exact.partitions) > LEVEL
    assert scalar_test(idata, "h", exact.nodes, scalar.nodes) > LEVEL


@pytest.mark.control
def test_variable_given_the_labels_of_others_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    roll_labels(monkeypatch)
    assert p_value(CASES["NormalKnownSigma sigma"]) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_labels_summed_out_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the step goes on from labels that then belong to another value of the variable."""
    case = CASES["NormalKnownSigma sigma"]
    hyperparameters = case.hyperparameters(1.0)
    with_values, conditional_term = rows_module.with_values, rows_module.conditional_term
    seen: dict[str, Any] = {}

    def recorded(component: Any, values: Any) -> Any:
        seen.update(values)
        return with_values(component, values)

    def summed_out(free: Any, fixed: Any, measure: Any) -> Any:
        _, new_weight, weights, mu = measure
        means = pt.concatenate([pt.where(weights > 0, mu, 0.0), [hyperparameters["mu0"]]])
        mass = pt.concatenate([weights, pt.reshape(new_weight, (1,))])
        variance = pt.ones_like(mass) * seen["sigma"] ** 2
        variance = pt.inc_subtensor(variance[-1], hyperparameters["sigma0"] ** 2)
        squares = (pt.constant(case.rows) - means) ** 2 / variance
        terms = pt.log(mass) - 0.5 * (squares + pt.log(2.0 * np.pi * variance))
        return conditional_term(free, pt.logsumexp(terms, axis=1) + 0.0 * fixed, measure)

    monkeypatch.setattr(rows_module, "with_values", recorded)
    monkeypatch.setattr(rows_module, "conditional_term", summed_out)
    assert p_value(case, n_draws=6000) < LEVEL
