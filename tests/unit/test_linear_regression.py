"""Linear regressions: intercept, the two ways to give covariates, digits, defaults, messages."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.data.blocks import column_centres
from tests.reference import many_digits
from tests.reference.regression import LinearRegression as Twin
from tests.support.families import target_of
from tests.support.operations import (
    cache_of,
    densities,
    draws_of,
    enter,
    leave,
    marginal_of,
    predictives,
    stats_of,
)

LAMBDA0 = np.array([[0.5, 0.1, -0.05], [0.1, 0.7, 0.15], [-0.05, 0.15, 0.4]])
PRIOR = {"mu0": [0.2, -0.3, 0.4], "lambda0": LAMBDA0, "a0": 2.0, "b0": 0.6}
PLAIN = {"mu0": 0.0, "lambda0": 1.0, "a0": 2.0, "b0": 1.0}


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    """Two covariates and the response."""
    x = rng.standard_normal((12, 2)) + np.array([1.0, -2.0])
    return np.column_stack([x, 0.5 + x @ [1.0, -1.0] + 0.3 * rng.standard_normal(12)])


def everyone(target) -> np.ndarray:
    return stats_of(target.prior, target.data, np.arange(len(target.data)))


# --- the intercept and the covariates -----------------------------------------------------


def test_column_of_ones_is_an_intercept(rows: np.ndarray, rng: np.random.Generator) -> None:
    """The two ways share few lines of the kernels."""
    ones = np.column_stack([np.ones(len(rows)), rows])
    own = target_of(dps.LinearRegression(**PRIOR), rows, 1.0)
    column = target_of(dps.LinearRegression(**PRIOR, intercept=False), ones, 1.0)
    assert marginal_of(own.prior, everyone(own)) == pytest.approx(
        marginal_of(column.prior, everyone(column)), rel=1e-10
    )
    caches = [cache_of(of.prior, of.data, np.arange(4)) for of in (own, column)]
    for i in (5, 9, 6):
        for of, cache in zip((own, column), caches, strict=True):
            enter(of.prior, of.data, i, cache)
    for of, cache in zip((own, column), caches, strict=True):
        assert leave(of.prior, of.data, 2, cache)
    found = [
        predictives(of.prior, of.data, cache)
        for of, cache in zip((own, column), caches, strict=True)
    ]
    np.testing.assert_allclose(*found, rtol=1e-10)
    (params,) = draws_of(column.prior, everyone(column), 1, rng)
    family = dps.LinearRegression(**PRIOR, intercept=False)
    named = family.unpack(params[None], np.full(4, 7.0))  # the shift is not used
    same = dps.LinearRegression(**PRIOR).pack(named, own.prior.shift)[0]
    np.testing.assert_allclose(
        densities(own.prior, own.data, same), densities(column.prior, column.data, params)
    )
    np.testing.assert_allclose(family.pack(named, np.zeros(4))[0], params)


def test_without_intercept_matches_the_law_of_the_responses(rows: np.ndarray) -> None:
    family = dps.LinearRegression(**PRIOR | {"mu0": [1.0, 2.0], "lambda0": LAMBDA0[:2, :2]},
                                  intercept=False)  # fmt: skip
    target = target_of(family, rows, 1.0)
    spread = np.eye(len(rows)) + rows[:, :2] @ np.linalg.solve(LAMBDA0[:2, :2], rows[:, :2].T)
    law = stats.multivariate_t(rows[:, :2] @ [1.0, 2.0], 0.3 * spread, df=4.0)
    assert marginal_of(target.prior, everyone(target)) == pytest.approx(law.logpdf(rows[:, 2]))


@pytest.mark.parametrize("kind", ["array", "list", "frame", "data array"])
def test_covariates_apart_are_those_in_rows(kind: str, rows: np.ndarray) -> None:
    x = rows[:, :2]
    given = {
        "array": x,
        "list": x.tolist(),
        "frame": pd.DataFrame(x, columns=["age", "dose"]),
        "data array": xr.DataArray(x, dims=("i", "of"), coords={"of": ["age", "dose"]}),
    }[kind]
    apart = dps.LinearRegression(given, **PRIOR)
    y = rows[:, 2:]
    suited = apart.validate_rows(y)
    ours, wanted = target_of(suited, y, 1.0), target_of(dps.LinearRegression(**PRIOR), rows, 1.0)
    np.testing.assert_array_equal(ours.data, wanted.data)
    for a, b in zip(ours.prior, wanted.prior, strict=True):
        np.testing.assert_array_equal(a, b)
    named = kind in ("frame", "data array")
    names = ["intercept", "age", "dose"] if named else ["intercept", "x0", "x1"]
    assert suited.own_coords("beta", None) == {"coefficient": names}
    assert suited.own_dims("beta") == {"coefficient": 3}


def test_family_is_copied_and_stored(rows: np.ndarray) -> None:
    family = dps.LinearRegression(rows[:, :2], **PRIOR)
    for twin in (copy.deepcopy(family), pickle.loads(pickle.dumps(family))):
        np.testing.assert_array_equal(twin.arranged(rows[:, 2:]), rows)
    assert repr(family).startswith("LinearRegression(covariates of shape (12, 2), mu0=[0.2,")
    assert repr(dps.LinearRegression(**PLAIN, intercept=False)) == (
        "LinearRegression(intercept=False, mu0=0.0, lambda0=1.0, a0=2.0, b0=1.0)"
    )


def test_covariates_are_copied(rows: np.ndarray) -> None:
    x = rows[:, :2].copy()
    family = dps.LinearRegression(x, **PRIOR)
    x[:] = 0.0
    np.testing.assert_array_equal(family.arranged(rows[:, 2:]), rows)


def test_precision_is_a_number_a_diagonal_or_a_matrix() -> None:
    for lambda0 in (2.0, [2.0, 2.0, 2.0], 2.0 * np.eye(3)):
        family = dps.LinearRegression(**PLAIN | {"lambda0": lambda0})
        np.testing.assert_array_equal(
            family.check(family.hyperparameters, 3)["lambda0"], 2.0 * np.eye(3)
        )


# --- hard data ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["collinear", "constant", "zero", "constant response", "one row"])
def test_degenerate_rows_match_the_twin(kind: str, rows: np.ndarray) -> None:
    if kind == "collinear":
        rows[:, 1] = 3.0 * rows[:, 0]
    elif kind in ("constant", "zero"):
        rows[:, 1] = 5.0 if kind == "constant" else 0.0
    elif kind == "constant response":
        rows[:, 2] = 4.0
    else:
        rows = rows[:1]
    target = target_of(dps.LinearRegression(**PRIOR), rows, 1.0)
    statistics = everyone(target)
    twin = Twin(**PRIOR)
    assert marginal_of(target.prior, statistics) == pytest.approx(twin.log_marginal(rows))
    cache = cache_of(target.prior, target.data, np.arange(len(rows)))
    np.testing.assert_allclose(
        predictives(target.prior, target.data, cache),
        [twin.log_predictive(row, rows) for row in rows],
    )


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_marginal_keeps_its_digits(scale: float, offset: float, rng: np.random.Generator) -> None:
    """The prior mean stays at 0, so its distance drowns the rest in the sums of squares."""
    rows = scale * (rng.standard_normal((20, 3)) + offset)
    precision = [0.01, scale**2, scale**2]
    family = dps.LinearRegression(mu0=0.0, lambda0=precision, a0=2.0, b0=scale**2)
    target = target_of(family, rows, 1.0)
    values = family.check(family.hyperparameters, 3)
    exact = many_digits.log_marginal("LinearRegression", values, rows)
    assert marginal_of(target.prior, everyone(target)) == pytest.approx(exact, rel=1e-9)


@pytest.mark.control
def test_rows_that_are_not_centred_lose_their_digits(rng: np.random.Generator) -> None:
    rows = rng.standard_normal((20, 3)) + 1e8
    family = dps.LinearRegression(mu0=0.0, lambda0=[0.01, 1.0, 1.0], a0=2.0, b0=1.0)
    target = target_of(family, rows, 1.0, lambda x: np.zeros(3))
    exact = many_digits.log_marginal(
        "LinearRegression", family.check(family.hyperparameters, 3), rows
    )
    assert marginal_of(target.prior, everyone(target)) != pytest.approx(exact, rel=1e-9)


# --- defaults -----------------------------------------------------------------------------


def test_defaults_are_those_documented(rows: np.ndarray) -> None:
    x, y = rows[:, :2], rows[:, 2]
    found = dps.LinearRegression.from_data(y, x).hyperparameters
    design = np.column_stack([np.ones(len(x)), x])
    beta, (rss,), *_ = np.linalg.lstsq(design, y, rcond=None)
    np.testing.assert_allclose(found["mu0"], beta)
    assert found["a0"] == 2.0
    assert found["b0"] == pytest.approx(0.1 * rss / len(y))
    # A tenth of a row: of the variance of the intercept at the means, and of the slopes.
    cov = np.cov(x.T, bias=True)
    slopes = 0.1 * (0.9 * cov + 0.1 * np.diag(np.diag(cov)))
    move = np.eye(3)
    move[0, 1:] = x.mean(0)
    centred = np.zeros((3, 3))
    centred[0, 0], centred[1:, 1:] = 0.1, slopes
    np.testing.assert_allclose(found["lambda0"], move.T @ centred @ move)
    in_rows = dps.LinearRegression.from_data(rows).hyperparameters
    np.testing.assert_allclose(in_rows["lambda0"], found["lambda0"])
    raw = dps.LinearRegression.from_data(y, x, intercept=False).hyperparameters
    np.testing.assert_allclose(raw["mu0"], np.linalg.lstsq(x, y, rcond=None)[0])
    np.testing.assert_allclose(np.diag(raw["lambda0"]), 0.1 * (x**2).mean(0))


@pytest.mark.parametrize("x", [np.ones((6, 1)), np.zeros((6, 2)), np.arange(6.0)[:, None] * [1, 2]])
@pytest.mark.parametrize("y", [np.ones(6), 2.0 * np.arange(6.0)])
@pytest.mark.parametrize("intercept", [True, False])
def test_defaults_are_proper_for_any_data(x: np.ndarray, y: np.ndarray, intercept: bool) -> None:
    family = dps.LinearRegression.from_data(y, x, intercept=intercept)
    values = family.check(family.hyperparameters, 1)
    assert values["b0"] > 0
    prior = family.prior(values, column_centres(y[:, None]))
    assert all(np.isfinite(of).all() for of in prior)


# --- messages -----------------------------------------------------------------------------

FAULTS = {
    "other length": (
        lambda: dps.LinearRegression(np.ones((3, 1)), **PLAIN).validate_rows(np.ones((4, 1))),
        "covariates have 3 rows, but observed has 4; give",
    ),
    "missing covariate": (
        lambda: dps.LinearRegression([[1.0], [np.nan]], **PLAIN),
        "covariates have 1 NaN or infinite entry",
    ),
    "missing response": (
        lambda: dps.LinearRegression(**PLAIN).validate_rows(np.array([[1.0, np.nan]])),
        "observed has 1 missing entry, which LinearRegression does not impute",
    ),
    "coefficients": (
        lambda: dps.LinearRegression(**PLAIN | {"mu0": [1.0, 2.0, 3.0]}).check(
            PLAIN | {"mu0": [1.0, 2.0, 3.0]}, 2
        ),
        r"mu0 has shape \(3,\), but there are 2 coefficients with the intercept; give",
    ),
    "matrix": (
        lambda: dps.LinearRegression(**PLAIN).check(PLAIN | {"lambda0": np.eye(3)}, 2),
        r"lambda0 has shape \(3, 3\), but there are 2 .* \(2,\) or \(2, 2\)",
    ),
    "indefinite": (
        lambda: dps.LinearRegression(**PLAIN).check(
            PLAIN | {"lambda0": [[1.0, 2.0], [2.0, 1.0]]}, 2
        ),
        "lambda0 is not positive definite",
    ),
    "negative": (
        lambda: dps.LinearRegression(**PLAIN).check(PLAIN | {"lambda0": [1.0, -1.0]}, 2),
        "lambda0=.* must be positive",
    ),
    "intercept": (
        lambda: dps.LinearRegression(**PLAIN, intercept=2.0),
        "intercept=2.0 is not True or False",
    ),
    "no coefficient": (
        lambda: dps.LinearRegression(**PLAIN, intercept=False).validate_rows(np.ones((3, 1))),
        "observed has a single column, the response",
    ),
    "product": (
        lambda: dps.Product(y=dps.LinearRegression([[1.0], [2.0]], **PLAIN)),
        "y is LinearRegression with covariates of its own; leave them out",
    ),
    "draws": (
        lambda: dps.LinearRegression(np.ones((3, 1)), **PLAIN).draw_rows(
            np.random.default_rng(0),
            {"beta": np.ones((1, 2)), "sigma": np.ones(1)},
            np.zeros(5, int),
        ),
        "covariates have 3 rows, but the number of responses to draw is 5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_named_in_one_sentence(fault: str) -> None:
    action, message = FAULTS[fault]
    with pytest.raises(ValueError, match=message):
        action()
