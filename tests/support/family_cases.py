"""Families with hyperparameters and rows, as declared, as kernels see them, and their twins."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import linalg

from pymc_dpsplit.components.component_family import ComponentFamily
from tests.support.datasets import DATASETS
from tests.support.families import (
    CONTINUOUS,
    DISCRETE,
    FAMILIES,
    GAUSSIAN,
    HYPERPARAMETERS,
    SINGLE,
    target_of,
)
from tests.support.quick import is_quick_family, slow_unless

MANY = 8  # features, more than the small data sets have


class Case(NamedTuple):
    """A family with hyperparameters and rows, as declared, as kernels see it, and its twin."""

    component: ComponentFamily
    values: dict[str, np.ndarray]
    twin: Any
    rows: np.ndarray
    shift: np.ndarray
    prior: Any
    data: np.ndarray


def sizes_of(name: str) -> tuple[int, ...]:
    """Numbers of features to test a family with."""
    if not FAMILIES[name].by_column:
        return (2, 3, MANY)
    return (1,) if FAMILIES[name].component.row_ndim == 0 else (1, 2, 3, MANY)


def may_share_a_variable(name: str) -> bool:
    """Whether the density of rows may hold a variable."""
    component = FAMILIES[name].component
    kinds = [component.requirements[of] for of in component.likelihood_arguments]
    return any(not kind.is_number for kind in kinds)


CASES = [(name, n_features) for name in SINGLE for n_features in sizes_of(name)]
over_cases = pytest.mark.parametrize(("name", "n_features"), CASES)


def of_quick(cases: list[tuple[str, int]]) -> pytest.MarkDecorator:
    """Cases for tests that take thousands of draws: slow but for the quick families."""
    return pytest.mark.parametrize(
        ("name", "n_features"), slow_unless(lambda case: is_quick_family(case[0]), cases)
    )


over_cases_of_quick = of_quick(CASES)
over_continuous = pytest.mark.parametrize(
    ("name", "n_features"), [case for case in CASES if case[0] in CONTINUOUS]
)
GAUSSIAN_CASES = [case for case in CASES if case[0] in GAUSSIAN]
over_gaussian = pytest.mark.parametrize(("name", "n_features"), GAUSSIAN_CASES)
over_gaussian_of_quick = of_quick(GAUSSIAN_CASES)
# Columns that are independent given the cluster, in families other than Gaussians.
over_independent_of_quick = of_quick(
    [case for case in CASES if case[0] not in GAUSSIAN and FAMILIES[case[0]].by_column]
)
over_discrete = pytest.mark.parametrize(
    ("name", "n_features"), [case for case in CASES if case[0] in DISCRETE]
)
over_shared = pytest.mark.parametrize(
    ("name", "n_features"),
    [case for case in CASES if may_share_a_variable(case[0])],
)
CASES_BY_COLUMN = [case for case in CASES if FAMILIES[case[0]].by_column]
over_cases_by_column = pytest.mark.parametrize(("name", "n_features"), CASES_BY_COLUMN)
over_cases_by_column_of_quick = of_quick(CASES_BY_COLUMN)
over_datasets = pytest.mark.parametrize("dataset", DATASETS)


def hyperparameters_of(name: str, n_features: int) -> dict[str, Any]:
    """Test hyperparameters of a family, widened where there are many features."""
    return {
        key: widened(value, n_features) for key, value in HYPERPARAMETERS[name](n_features).items()
    }


def widened(value: Any, n_features: int) -> Any:
    """Continue a vector or a matrix to `n_features` features, not quite periodically.

    A matrix with a zero is one of vectors for each feature, of different lengths.
    """
    if np.ndim(value) == 0 or len(value) == n_features:
        return value
    if np.ndim(value) == 1:
        wide = np.resize(value, n_features)
        is_whole = (value == np.floor(value)).all()
        return wide if is_whole else wide + 0.01 * np.arange(n_features)
    if (value == 0.0).any():
        longer = np.resize(value, (n_features, value.shape[1]))
        return np.where(longer > 0.0, longer + 0.01 * np.arange(n_features)[:, None], 0.0)
    blocks = [value] * (n_features // len(value) + 1)
    return linalg.block_diag(*blocks)[:n_features, :n_features] + 0.05


def rows_of(dataset: str, n_features: int) -> np.ndarray:
    """Rows of a small data set; many features repeat the three it has, rolled."""
    rows = DATASETS[dataset](min(n_features, 3))
    columns = [np.roll(rows[:, j % 3], j // 3) for j in range(n_features)]
    return np.column_stack(columns)


def case_of(name: str, rows: np.ndarray) -> Case:
    """Set up a family for rows (n, D), real ones that become rows of its own."""
    rows = FAMILIES[name].rows_from(rows)
    hyperparameters = hyperparameters_of(name, rows.shape[1])
    component = FAMILIES[name].component(**hyperparameters).validate_rows(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    target = target_of(component, rows, 1.0)
    twin = FAMILIES[name].twin(**hyperparameters)
    if hasattr(twin, "totals"):
        twin.totals = rows.sum(1).astype(int)
    if FAMILIES[name].is_conditional:
        twin.covariates = rows[:, :-1]
    return Case(
        component,
        values,
        twin,
        rows,
        rows.mean(0),
        target.prior,
        target.data,
    )
