"""Mixtures of the errors of a regression, against enumeration and quadrature over the slope."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.variables import rows as rows_module
from tests.support.datasets import DATASETS
from tests.support.families import HYPERPARAMETERS, twin_of
from tests.support.quadrature import (
    block_average,
    fixed,
    grid_of,
    holes_table,
    posterior,
    table_of,
)
from tests.support.rolled import roll_labels
from tests.support.runs import draws_of, labels_test, run, scalar_test
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

ALPHA = 1.2
N = 7
X = np.array([0.9, -1.1, 0.4, -0.3, 1.6, -0.8, 0.2])
SLOPES = grid_of(stats.norm(0.0, 1.0), 120)
Y = DATASETS["overlapping"](1)[:N, 0] + 0.7 * X


def errors(n_features: int, shape: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Errors (G, N, D) at each slope, features having slopes in the proportion of `shape`."""
    assert rows.shape == (N, n_features)
    return rows - SLOPES.nodes[:, None, None] * X[:, None] * shape


def p_value(**options: Any) -> float:
    """P-value of partition and slope for scalars."""
    twin = twin_of("Normal", 1)
    tables = [table_of(twin.log_marginal, rows) for rows in errors(1, np.ones(1), Y[:, None])]
    exact = posterior(np.stack(tables), SLOPES.log_weights, fixed(ALPHA))
    with pm.Model():
        slope = pm.Normal("slope", 0.0, 1.0)
        component = dps.Normal(**HYPERPARAMETERS["Normal"](1))
        dps.DPMixture("e", ALPHA, component, observed=Y - X * slope)
        idata = run(**options)
    return combine(
        labels_test(idata, "e", exact.partitions),
        scalar_test(idata, "slope", exact.nodes, SLOPES.nodes),
    )


def test_errors_are_exact() -> None:
    assert p_value() > LEVEL


@pytest.mark.slow
def test_errors_are_exact_with_the_collapsed_kernel() -> None:
    assert p_value(kernel="collapsed") > LEVEL


@pytest.mark.slow
def test_errors_of_vectors_are_exact() -> None:
    twin, shape = twin_of("MvNormal", 2), np.array([1.0, -0.6])
    rows = DATASETS["overlapping"](2)[:N] + 0.7 * X[:, None] * shape
    tables = [table_of(twin.log_marginal, residual) for residual in errors(2, shape, rows)]
    exact = posterior(np.stack(tables), SLOPES.log_weights, fixed(ALPHA))
    with pm.Model():
        slopes = pm.Normal("slope", 0.0, 1.0) * shape
        component = dps.MvNormal(**HYPERPARAMETERS["MvNormal"](2))
        dps.DPMixture("e", ALPHA, component, observed=rows - X[:, None] * slopes)
        idata = run()
    assert labels_test(idata, "e", exact.partitions) > LEVEL
    assert scalar_test(idata, "slope", exact.nodes, SLOPES.nodes) > LEVEL


def test_a_missing_outcome_is_exact() -> None:
    hole = 2
    y = np.where(np.arange(N) == hole, np.nan, Y)
    twin = twin_of("Normal", 1)
    found = [
        # What is missing is the outcome: the error at this slope, and the mean.
        holes_table(twin, rows, lambda e, mean=X[hole] * slope: np.tanh(e + mean))
        for slope, rows in zip(SLOPES.nodes, errors(1, np.ones(1), y[:, None]), strict=True)
    ]
    exact = posterior(np.stack([at.table for at in found]), SLOPES.log_weights, fixed(ALPHA))
    values = np.stack([at.values for at in found])
    first, second = block_average(exact.joint, values)[hole, 0]
    with pm.Model():
        slope = pm.Normal("slope", 0.0, 1.0)
        component = dps.Normal(**HYPERPARAMETERS["Normal"](1))
        dps.DPMixture("e", ALPHA, component, observed=y - X * slope)
        idata = run()
    assert labels_test(idata, "e", exact.partitions) > LEVEL
    assert scalar_test(idata, "slope", exact.nodes, SLOPES.nodes) > LEVEL
    imputed = np.tanh(draws_of(idata, "e_unobserved"))
    assert mean_test(imputed, first, second - first**2) > LEVEL


@pytest.mark.control
def test_errors_given_the_labels_of_others_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    roll_labels(monkeypatch)
    assert p_value() < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_slope_that_sees_no_errors_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(free: Any, fixed: Any, deciding: Any) -> Any:
        return conditional_term(free, 0.0 * fixed, deciding)

    conditional_term = rows_module.conditional_term
    monkeypatch.setattr(rows_module, "conditional_term", broken)
    assert p_value() < LEVEL
