"""Rows in groups with covariates: `pm.sample` and predicted responses, against enumeration."""

from functools import cache
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import in_groups
from tests.reference.franchise import (
    Truth,
    counts_of,
    log_likelihood_by_blocks,
    posterior_of_groups,
    states_of_groups,
)
from tests.support.exact_traces import exact_grouped_trace
from tests.support.families import HYPERPARAMETERS, component_of, twin_of
from tests.support.partitions import enumerate_partitions
from tests.support.runs import draws_of, labels_test
from tests.support.statistics import LEVEL, combine, count_test

pytestmark = pytest.mark.slow

ALPHA, GAMMA = 0.8, 1.2
GROUPS = np.array([0, 1, 0, 1, 1])
# A covariate and its response; then a profile, which says the sign of the slope.
ROWS = np.array([
    [-1.0, -2.1, -2.0], [1.0, 1.8, -2.2], [0.5, 1.1, -1.7], [-1.0, 2.2, 1.9], [1.0, -1.9, 2.3]
])  # fmt: skip
FAMILIES = {"LinearRegression": ROWS[:, :2], "ProductWithLinearRegression": ROWS}


def log_likelihood_of(family: str) -> Any:
    rows = FAMILIES[family]
    return log_likelihood_by_blocks(twin_of(family, rows.shape[1]), rows)


# --- through pm.sample ----------------------------------------------------------------------


def truth_of(family: str) -> Truth:
    return posterior_of_groups(GROUPS, log_likelihood_of(family), ALPHA, GAMMA)


def declare(family: str, is_apart: bool, covariates: np.ndarray = ROWS[:, :1]) -> None:
    """Declare the mixture, covariates in the rows or apart from them."""
    rows = FAMILIES[family]
    component, observed = component_of(family, rows.shape[1]), rows
    if is_apart:
        component = dps.LinearRegression(covariates, **HYPERPARAMETERS[family](2))
        observed = rows[:, 1]
    dps.HDPMixture("x", ALPHA, GAMMA, component, groups=GROUPS, observed=observed)


def p_value_of_draws(family: str, kernel: str, **options: Any) -> float:
    truth = truth_of(family)
    with pm.Model():
        declare(family, **options)
        idata = pm.sample(
            draws=4000, tune=100, chains=4, cores=1, random_seed=8, progressbar=False,
            compute_convergence_checks=False, hdp={"kernel": kernel},
        )  # fmt: skip
    return combine(
        labels_test(idata, "x", truth.partitions),
        count_test(draws_of(idata, "x_n_tables"), truth.n_tables),
    )


@pytest.mark.parametrize("kernel", ["collapsed", "slices"])
@pytest.mark.parametrize(
    ("family", "is_apart"), [*((family, False) for family in FAMILIES), ("LinearRegression", True)]
)
def test_draws_are_exact(family: str, is_apart: bool, kernel: str) -> None:
    assert p_value_of_draws(family, kernel, is_apart=is_apart) > LEVEL


@pytest.mark.control
def test_covariates_of_other_rows_are_caught() -> None:
    rolled = np.roll(ROWS[:, :1], 1, axis=0)
    options = {"is_apart": True, "covariates": rolled}
    assert p_value_of_draws("LinearRegression", "collapsed", **options) < LEVEL


# --- responses, from independent exact draws ------------------------------------------------

N_CHAINS = 12
NEW = ["0", "1", "another"]
GIVEN = np.array([[1.0, -1.5], [0.7, 1.5], [0.8, np.nan]])


@cache
def sampled(family: str) -> tuple[pm.Model, xr.DataTree]:
    with pm.Model() as model:
        declare(family, is_apart=False)
    rows = FAMILIES[family]
    idata = exact_grouped_trace(family, rows, GROUPS, ALPHA, GAMMA, (N_CHAINS, 400), seed=3)
    idata["observed_data"] = xr.DataTree(xr.Dataset({"x": (("x_row", "x_feature"), rows)}))
    return model, idata


def exact_mean(family: str, given: np.ndarray, group: str) -> float:
    """Mean of the response over all partitions, tables and clusters of a new row of a group."""
    covariate, profile = given
    rows, twin, other = FAMILIES[family], twin_of(family, FAMILIES[family].shape[1]), None
    if family == "ProductWithLinearRegression":
        (_, twin), (_, other) = twin.parts.values()
    total = np.zeros(2)
    every = enumerate_partitions(len(rows)).astype(int)
    for i, tables, log_joint in states_of_groups(GROUPS, log_likelihood_of(family), ALPHA, GAMMA):
        labels, counts = every[i], np.zeros(len(tables))
        if group != "another":
            counts = counts_of(every[i], GROUPS)[int(group)]
        expected = np.append(tables, GAMMA) / (tables.sum() + GAMMA)
        weights = np.append(counts, 0.0) + ALPHA * expected
        members = [*(rows[labels == k] for k in range(len(tables))), rows[:0]]
        for own, weight in zip(members, weights / weights.sum(), strict=True):
            mass = np.exp(log_joint) * weight
            if other is not None and np.isfinite(profile):
                mass *= np.exp(other.log_predictive(np.array([profile]), own[:, 2:]))
            coefficients = twin.posterior(own[:, :2])[0]
            total += mass, mass * (coefficients @ [1.0, covariate])
    return float(total[1] / total[0])


def p_value_of_responses(family: str) -> float:
    """P-value of the mean responses that chains of independent draws predict."""
    model, idata = sampled(family)
    given = GIVEN if FAMILIES[family].shape[1] == 3 else GIVEN[:, :1]
    found = np.empty((N_CHAINS, len(given)))
    for chain in range(N_CHAINS):
        one = idata.isel(chain=[chain])
        predicted = dps.predict(one, covariates=given, groups=NEW, model=model, random_seed=1)
        found[chain] = predicted["response_mean"]
    exact = [exact_mean(family, *of) for of in zip(GIVEN, NEW, strict=True)]
    return combine(*stats.ttest_1samp(found, exact).pvalue)


@pytest.mark.parametrize("family", FAMILIES)
def test_responses_in_groups_are_exact(family: str) -> None:
    assert p_value_of_responses(family) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("family", FAMILIES)
def test_responses_of_a_new_group_are_caught(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_groups, "draw_of_group", lambda draw, *_: draw)
    assert p_value_of_responses(family) < LEVEL
