"""Missing entries beside a part that is not conjugate, against enumeration and quadrature."""

from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from tests.reference.generic import FAMILIES
from tests.support.quadrature import (
    block_average,
    column_holes_table,
    fixed,
    posterior,
)
from tests.support.runs import draws_of, labels_test, run
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = [pytest.mark.slow, pytest.mark.compiled]

ALPHA, N = 1.2, 5
FAMILY = FAMILIES["Product"]  # Normal, Bernoulli, and a Component with a Laplace density
# Row and column of each hole: one of each part, and a row without any entry.
HOLES = [(0, 0), (1, 1), (2, 2), (3, 0), (3, 1), (3, 2)]


def rows_with_holes() -> np.ndarray:
    rows = FAMILY.rows[:N].copy()
    rows[tuple(np.transpose(HOLES))] = np.nan
    return rows


def p_value(n_draws: int = 1500, **options: Any) -> float:
    """P-value of the partition and of what is imputed."""
    rows = rows_with_holes()
    found = column_holes_table(FAMILY.parts, rows, np.tanh, [None, [0.0, 1.0], None])
    exact = posterior(found.table[None], np.zeros(1), fixed(ALPHA))
    moments = block_average(exact.joint, found.values[None])
    first, second = moments[tuple(np.transpose(HOLES))].T
    with pm.Model():
        dps.DPMixture("x", ALPHA, FAMILY.component(), observed=rows)
        idata = run(n_draws, iterations=2, **options)
    imputed = np.tanh(draws_of(idata, "x_unobserved"))
    return combine(
        labels_test(idata, "x", exact.partitions),
        mean_test(imputed, first, second - first**2),
    )


@pytest.mark.parametrize("exchanges", [1, 0])
def test_missing_entries_are_exact(exchanges: int) -> None:
    assert p_value(exchanges=exchanges) > LEVEL


@pytest.mark.control
def test_entries_of_other_clusters_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    product = type(FAMILY.component())
    honest = product.draw_missing

    def broken(
        self: Any, rng: Any, rows: Any, is_missing: Any, parameters: Any, labels: Any
    ) -> np.ndarray:
        others = (labels + 1) % len(next(iter(parameters.values())))
        drawn: np.ndarray = honest(self, rng, rows, is_missing, parameters, others)
        return drawn

    monkeypatch.setattr(product, "draw_missing", broken)
    assert p_value() < LEVEL


@pytest.mark.control
def test_clusters_that_lose_their_parameters_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(target: Any, labels: np.ndarray, params: np.ndarray) -> sampler.ChainState:
        return sampler.resume(target, np.unique(labels, return_inverse=True)[1])

    monkeypatch.setattr(sampler, "resume_with_atoms", broken)
    assert p_value() < LEVEL


@pytest.mark.control
def test_labels_that_ignore_the_entries_present_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(component: Any, rows: np.ndarray, *_: Any) -> np.ndarray:
        return np.zeros(len(rows))

    monkeypatch.setattr("pymc_dpsplit.step.joint_label_row_update.log_density_of_present", broken)
    assert p_value() < LEVEL
