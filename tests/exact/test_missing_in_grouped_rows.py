"""Missing entries of rows in groups, against enumeration and quadrature over the entries."""

from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical_model import missing
from tests.exact.test_missing import CASES, N, observed_of, table_of
from tests.reference.franchise import posterior_of_groups
from tests.support.families import component_of
from tests.support.quadrature import block_average
from tests.support.runs import draws_of, labels_test
from tests.support.statistics import LEVEL, combine, mean_test

pytestmark = pytest.mark.slow

ALPHA, GAMMA = 0.8, 1.5
GROUPS = np.array([0, 1, 1, 0, 1])


def p_value(name: str, n_draws: int = 2500, **options: Any) -> float:
    """P-value of the partition and of what is imputed."""
    family, n_features, holes = CASES[name]
    found, powers = table_of(name), 2 ** np.arange(N)

    def log_likelihood(labels: np.ndarray) -> float:
        return float(sum(found.table[(labels == k) @ powers] for k in range(labels.max() + 1)))

    law = posterior_of_groups(GROUPS, log_likelihood, ALPHA, GAMMA).partitions
    first, second = block_average(law[None], found.values[None])[tuple(np.transpose(holes))].T
    with pm.Model():
        component = component_of(family, n_features)
        observed = observed_of(name)
        dps.HDPMixture("x", ALPHA, GAMMA, component, groups=GROUPS, observed=observed)
        idata = pm.sample(
            draws=n_draws, tune=100, chains=4, cores=1, random_seed=8, progressbar=False,
            compute_convergence_checks=False, hdp=options,
        )  # fmt: skip
    imputed = np.tanh(draws_of(idata, "x_unobserved"))
    return combine(
        labels_test(idata, "x", law),
        mean_test(imputed, first, second - first**2),
    )


@pytest.mark.parametrize("name", CASES)
def test_missing_entries_are_exact(name):
    assert p_value(name) > LEVEL


def test_missing_entries_are_exact_with_few_splits():
    assert p_value("diagonal", attempts=0) > LEVEL


@pytest.mark.control
def test_labels_that_forget_the_group_are_caught(monkeypatch):
    def forgetful(density, where, labels, groups, counts, *rest):
        whole = counts.sum(axis=0, keepdims=True)
        missing_relabel(density, where, labels, np.zeros_like(groups), whole, *rest)

    missing_relabel = missing.relabel_rows
    monkeypatch.setattr(missing, "relabel_rows", forgetful)
    assert p_value("full, two rows", attempts=0) < LEVEL


@pytest.mark.control
def test_entries_that_are_shifted_are_caught(monkeypatch):
    def shifted(items, values, shift, target, state, rows, incomplete, rng):
        found = update(items, values, shift, target, state, rows, incomplete, rng)
        return *found[:2], found[2] + 0.5

    update = missing.update_incomplete
    monkeypatch.setattr("pymc_dpsplit.hierarchical_model.step.update_incomplete", shifted)
    assert p_value("scalar") < LEVEL
