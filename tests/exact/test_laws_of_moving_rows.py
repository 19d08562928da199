"""Latent rows, and rows with missing entries, under every law of the partition.

The joint law of the partition, of what determines its law and of the rows is enumerated, through
`pm.sample`; level 1e-5 each.  Rows and missing entries are integrated out by quadrature.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from tests.exact.test_laws_through_pymc import CASES, Case, declared, joint_of, joint_test
from tests.reference import families as naive
from tests.support.datasets import DATASETS
from tests.support.families import component_of, twin_of
from tests.support.quadrature import Holes, Latent, block_average, holes_table, noisy_table
from tests.support.runs import draws_of, run
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

N = 5
HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
ROWS = DATASETS["overlapping"](1)[:N, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 3.0, 0.5])
# Row and column of each missing entry.
HOLES = ([1, 3], [0, 1])
LAWS = ("Pitman-Yor, discount too", "finite", "MFM", "MFM, gamma too")
KERNELS = ("exact", "collapsed")


def found_values(joint: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances of what depends on a row and its cluster."""
    first, second = np.moveaxis(block_average(joint.sum(axis=(0, 1))[None], values[None]), -1, 0)
    return first, second - first**2


def latent_p_value(name: str, n_draws: int, law: Case, **options: Any) -> float:
    """P-value of the partition, its numbers and the rows."""
    case = CASES[name]
    table: Latent = noisy_table(naive.Normal(**HYPERPARAMETERS), ROWS, NOISE)
    joint = joint_of(case, table.table, N)
    with pm.Model():
        numbers = [declared(*number) for number in (case.first, case.second)]
        x = law.declare(*numbers, dps.Normal(**HYPERPARAMETERS), shape=N)
        pm.Normal("y", x, NOISE, observed=ROWS)
        idata = run(n_draws, **options)
    rows = mean_test(draws_of(idata, "x"), *found_values(joint, table.values))
    return combine(joint_test(idata, case, joint), rows)


def missing_p_value(name: str, n_draws: int, law: Case, **options: Any) -> float:
    """P-value of the partition, its numbers and what is imputed."""
    case = CASES[name]
    rows = DATASETS["overlapping"](2)[:N].copy()
    rows[HOLES] = np.nan
    # Student's tails have few moments: a bounded function of the entries has all of them.
    table: Holes = holes_table(twin_of("DiagNormal", 2), rows, np.tanh)
    joint = joint_of(case, table.table, N)
    with pm.Model():
        numbers = [declared(*number) for number in (case.first, case.second)]
        law.declare(*numbers, component_of("DiagNormal", 2), observed=rows)
        idata = run(n_draws, **options)
    means, variances = found_values(joint, table.values)
    imputed = np.tanh(draws_of(idata, "x_unobserved"))
    return combine(
        joint_test(idata, case, joint), mean_test(imputed, means[HOLES], variances[HOLES])
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", LAWS)
def test_law_of_latent_rows_is_exact(name: str, kernel: str) -> None:
    assert latent_p_value(name, 1500, CASES[name], kernel=kernel) > LEVEL


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", LAWS)
def test_law_of_rows_with_missing_entries_is_exact(name: str, kernel: str) -> None:
    assert missing_p_value(name, 1500, CASES[name], kernel=kernel) > LEVEL


def without_discount(alpha: Any, discount: Any, family: Any, **options: Any) -> Any:
    # Its potential is there, for the discount has a prior; the moves of labels know nothing of it.
    return dps.DPMixture("x", alpha, family, **options)


def one_component_more(gamma: Any, _: Any, family: Any, **options: Any) -> Any:
    return dps.FiniteMixture("x", gamma, family, n_components=4, **options)


@pytest.mark.control
@pytest.mark.parametrize("p_value", [latent_p_value, missing_p_value])
@pytest.mark.parametrize(
    ("name", "declare"),
    [("Pitman-Yor, discount too", without_discount), ("finite", one_component_more)],
)
def test_another_law_is_caught(
    name: str, declare: Callable[..., Any], p_value: Callable[..., float]
) -> None:
    assert p_value(name, 1500, CASES[name]._replace(declare=declare)) < LEVEL
