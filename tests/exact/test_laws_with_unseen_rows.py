"""Missing entries and latent rows under Pitman-Yor processes, finite mixtures and MFMs.

The joint law of the partition and of what determines its law is enumerated, through `pm.sample`;
level 1e-5 each.  What is not seen is integrated out by quadrature.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.step.joint_label_row_update import update_incomplete_rows, update_latent_rows
from tests.exact.test_laws_through_pymc import CASES, Case, declared, joint_of, joint_test
from tests.reference import families as naive
from tests.support.datasets import DATASETS
from tests.support.quadrature import holes_table, noisy_table
from tests.support.quick import slow_unless
from tests.support.runs import run
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
ROWS = DATASETS["overlapping"](1)[:5, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 3.0, 0.5])
# Three rows that are not seen fall into one new cluster, or into several.
WITH_HOLES = np.where(np.arange(5) < 2, ROWS, np.nan)


def incomplete(declare: Callable[..., Any]) -> None:
    declare(observed=WITH_HOLES)


def latent(declare: Callable[..., Any]) -> None:
    pm.Normal("y", declare(shape=5), NOISE, observed=ROWS)


@cache
def table_of(kind: Callable[..., None]) -> np.ndarray:
    twin = naive.Normal(**HYPERPARAMETERS)
    if kind is latent:
        return noisy_table(twin, ROWS, NOISE).table
    # A row of which nothing is seen has no likelihood, whatever its cluster.
    with_two = holes_table(twin, ROWS[:2, None], np.tanh).table
    return np.array([with_two[mask & 3] for mask in range(2**5)])


def p_value(name: str, kind: Callable[..., None], n_draws: int = 1500, **options: Any) -> float:
    case: Case = CASES[name]
    with pm.Model():
        numbers = [declared(*number) for number in (case.first, case.second)]
        normal = dps.Normal(**HYPERPARAMETERS)
        kind(lambda **of: case.declare(*numbers, normal, **of))
        idata = run(n_draws, **options)
    return joint_test(idata, case, joint_of(case, table_of(kind), 5))


_LAWS = ("Pitman-Yor, discount too", "negative strength", "finite", "MFM", "MFM, gamma too")
_KINDS = [incomplete, latent]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("name", slow_unless("MFM".__eq__, _LAWS))
def test_law_is_exact_with_rows_that_are_not_seen(name: str, kind: Callable[..., None]) -> None:
    assert p_value(name, kind) > LEVEL


@pytest.mark.parametrize("kind", _KINDS)
def test_law_is_exact_by_sweeps_with_rows_that_are_not_seen(kind: Callable[..., None]) -> None:
    assert p_value("MFM", kind, kernel="exact", iterations=1) > LEVEL


def measure_of_a_dirichlet_process(update: Callable[..., Any]) -> Callable[..., Any]:
    def broken(component: Any, values: Any, target: Any, *rest: Any) -> Any:
        seen = target._replace(law=dirichlet_process(abs(target.law.strength)))
        after, *others = update(component, values, seen, *rest)
        return after._replace(law=target.law), *others

    return broken


@pytest.mark.control
@pytest.mark.parametrize("kind", _KINDS)
def test_moves_of_rows_that_do_not_see_the_law_are_caught(
    kind: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for update in (update_incomplete_rows, update_latent_rows):
        place = f"pymc_dpsplit.step.dp_split_merge.{update.__name__}"
        monkeypatch.setattr(place, measure_of_a_dirichlet_process(update))
    assert p_value("Pitman-Yor", kind) < LEVEL
