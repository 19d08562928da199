"""Digits of log marginals at extreme scales and offsets, against 60-digit arithmetic."""

import math
import warnings
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.components.base import (
    fill_predictive,
    log_marginal,
    log_predictive,
    predictive_size,
)
from pymc_dpsplit.data.blocks import column_centres, column_means
from pymc_dpsplit.kernels.special import log_beta_rising
from pymc_dpsplit.sampler import resume
from tests.reference import many_digits
from tests.support.families import SINGLE, target_of

_N_OBS, _RELATIVE = 40, 1e-9
_GAUSSIAN = ("Normal", "DiagNormal", "SphericalNormal", "MvNormal")
_SCALES = (1e-100, 1e-8, 1.0, 1e8, 1e100)
# In spreads of the rows; the prior mean stays at 0.
_OFFSETS = (0.0, 1e4, 1e8, 1e12)


def gaussian(name: str, scale: float) -> dps.Normal:
    """A family whose prior suits rows of a scale."""
    if name == "MvNormal":
        psi0 = scale**2 * np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]])
        return dps.MvNormal(np.zeros(3), 0.01, 6.0, psi0)
    if name == "DiagNormal":
        return dps.DiagNormal(np.zeros(3), 0.01, 2.0, scale**2)
    if name == "SphericalNormal":
        return dps.SphericalNormal(np.zeros(3), 0.01, 2.0, scale**2)
    return dps.Normal(0.0, 0.01, 2.0, scale**2)


def both(component, rows, centres=column_centres) -> tuple[float, float]:
    """Log marginal of one cluster by the package, and exactly."""
    target = target_of(component, rows, 1.0, centres)
    state = resume(target, np.zeros(len(rows), np.int64))
    values = component.check(component.hyperparameters, rows.shape[1])
    exact = many_digits.log_marginal(type(component).__name__, values, rows)
    return float(log_marginal(target.prior, state.stats[0])), exact


@pytest.mark.parametrize("offset", _OFFSETS)
@pytest.mark.parametrize("scale", _SCALES)
@pytest.mark.parametrize("name", _GAUSSIAN)
def test_gaussian_marginal_keeps_its_digits(
    name: str, scale: float, offset: float, rng: np.random.Generator
) -> None:
    n_features = 1 if name == "Normal" else 3
    rows = scale * (rng.standard_normal((_N_OBS, n_features)) + offset)
    found, exact = both(gaussian(name, scale), rows)
    assert found == pytest.approx(exact, rel=_RELATIVE)


@pytest.mark.parametrize("name", _GAUSSIAN)
@pytest.mark.parametrize("fill", [1e10, 1e15, 9.969209968386869e36])
def test_one_huge_entry_leaves_the_digits_of_the_others(
    name: str, fill: float, rng: np.random.Generator
) -> None:
    """A cluster without the row, centred where all rows are."""
    rows = rng.standard_normal((_N_OBS, 1 if name == "Normal" else 3))
    rows[7, 0] = fill
    component = gaussian(name, 1.0)
    target = target_of(component, rows, 1.0)
    state = resume(target, np.where(np.arange(_N_OBS) == 7, 1, 0))
    values = component.check(component.hyperparameters, rows.shape[1])
    exact = many_digits.log_marginal(name, values, np.delete(rows, 7, axis=0))
    assert log_marginal(target.prior, state.stats[0]) == pytest.approx(exact, rel=_RELATIVE)


@pytest.mark.control
def test_mean_for_a_centre_is_caught(rng: np.random.Generator) -> None:
    rows = rng.standard_normal((_N_OBS, 1))
    rows[7] = 1e10
    target = target_of(gaussian("Normal", 1.0), rows, 1.0, column_means)
    state = resume(target, np.where(np.arange(_N_OBS) == 7, 1, 0))
    values = gaussian("Normal", 1.0).check(gaussian("Normal", 1.0).hyperparameters, 1)
    exact = many_digits.log_marginal("Normal", values, np.delete(rows, 7, axis=0))
    assert log_marginal(target.prior, state.stats[0]) != pytest.approx(exact, rel=_RELATIVE)


# --- other families ------------------------------------------------------------------------

_N_ROWS = 15
# Weights of the prior, in observations.
_WEIGHTS = (1e-100, 1e-8, 1.0, 1e8, 1e30)


def assert_digits(component, rows: np.ndarray) -> None:
    """Compare the log marginal of the rows, and the log predictive of the last given the others."""
    component = component.validate_rows(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    exact, exact_predictive = many_digits.log_densities(type(component).__name__, values, rows)
    target = target_of(component, rows, 1.0)
    whole = resume(target, np.zeros(len(rows), np.int64)).stats[0]
    found = float(log_marginal(target.prior, whole))
    assert found == pytest.approx(exact, rel=_RELATIVE, abs=_RELATIVE)
    state = resume(target, np.arange(len(rows)) // (len(rows) - 1))
    cache = np.zeros(predictive_size(target.prior))
    fill_predictive(target.prior, state.stats[state.labels[0]], cache)
    found = float(log_predictive(target.prior, target.data, len(rows) - 1, cache))
    assert found == pytest.approx(exact_predictive, rel=_RELATIVE, abs=_RELATIVE)


@pytest.mark.parametrize("width", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("offset", _OFFSETS)
@pytest.mark.parametrize("scale", _SCALES[::2])
def test_known_spread_keeps_its_digits(
    scale: float, offset: float, width: float, rng: np.random.Generator
) -> None:
    """Prior means spread as far as the rows are, times `width`."""
    width *= max(offset, 1.0)
    rows = scale * (rng.standard_normal((_N_ROWS, 3)) + offset)
    assert_digits(dps.NormalKnownSigma(0.0, width * scale, scale), rows[:, :1])
    cov = scale**2 * np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]])
    assert_digits(dps.MvNormalKnownCov(np.zeros(3), width**-2, cov), rows)


@pytest.mark.parametrize("weight", _WEIGHTS)
@pytest.mark.parametrize("shape", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("scale", _SCALES[::2])
def test_positive_numbers_keep_their_digits(
    scale: float, shape: float, weight: float, rng: np.random.Generator
) -> None:
    rows = np.maximum(rng.standard_gamma(shape, (_N_ROWS, 2)), 1e-100)
    # Not so small that the rate is out of the range of float64.
    b0 = max(weight * shape, 1e-100)
    assert_digits(dps.Gamma(shape, weight, b0 * scale), scale * rows)
    assert_digits(dps.InverseGamma(shape, weight, b0 / scale), scale / rows)
    exponential = scale * rng.standard_exponential((_N_ROWS, 2))
    assert_digits(dps.Exponential(weight, max(weight, 1e-100) * scale), exponential)


def counts(rate: float, is_wide: bool, rng: np.random.Generator) -> np.ndarray:
    """Counts of one rate, or of rates that differ by orders of magnitude."""
    if is_wide:
        return np.floor(rate * rng.standard_gamma(0.3, (_N_ROWS, 2)))
    return rng.poisson(rate, (_N_ROWS, 2)).astype(float)


@pytest.mark.parametrize("weight", _WEIGHTS)
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("rate", [1e-3, 1.0, 1e3, 1e6])
def test_poisson_keeps_its_digits(
    rate: float, is_wide: bool, weight: float, rng: np.random.Generator
) -> None:
    assert_digits(dps.Poisson(weight, weight / rate), counts(rate, is_wide, rng))


@pytest.mark.parametrize("weight", _WEIGHTS)
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("rate", [1e-3, 1.0, 1e3, 1e7])
def test_other_counts_keep_their_digits(
    rate: float, is_wide: bool, weight: float, rng: np.random.Generator
) -> None:
    rows = counts(rate, is_wide, rng)
    assert_digits(dps.Multinomial(weight), rows)
    assert_digits(dps.Binomial(max(rows.max(), 1.0), weight, weight), rows)
    for r in (1e-6, 2.5, 1e4):
        assert_digits(dps.NegativeBinomial(r, weight, weight * rate / r), rows)


@pytest.mark.parametrize("weight", _WEIGHTS)
@pytest.mark.parametrize("other", [1e-30, 1.0, 1e30])
def test_codes_keep_their_digits(weight: float, other: float, rng: np.random.Generator) -> None:
    """Any two weights, so that one category may be certain."""
    rows = rng.integers(0, 3, (_N_ROWS, 3)).astype(float)
    assert_digits(dps.Categorical([[weight, other, weight]] * 3), rows)
    assert_digits(dps.Bernoulli(weight, other), np.minimum(rows, 1.0))
    assert_digits(dps.Bernoulli(weight, other), np.zeros((_N_ROWS, 1)))


def test_every_family_is_compared() -> None:
    assert set(SINGLE) == many_digits.FAMILIES


@pytest.mark.control
def test_difference_of_log_gammas_is_caught(rng: np.random.Generator) -> None:
    """The formula of families with a beta prior, with what cancels in it."""
    a, rows = 1e8, rng.integers(0, 2, (_N_OBS, 1)).astype(float)
    assert_digits(dps.Bernoulli(a, a), rows)
    n, total = len(rows), rows.sum()
    posterior = math.lgamma(a + total) + math.lgamma(a + n - total) - math.lgamma(2.0 * a + n)
    found = posterior - (2.0 * math.lgamma(a) - math.lgamma(2.0 * a))
    exact = n * math.log(0.5)
    assert found == pytest.approx(exact, rel=1e-6)
    assert found != pytest.approx(exact, rel=_RELATIVE)


@pytest.mark.parametrize("number", [1e8, 1e12])
@pytest.mark.parametrize("rate", [10.0, 1e6])
def test_large_known_numbers_keep_digits(
    number: float, rate: float, rng: np.random.Generator
) -> None:
    """A beta function of 1e13 and a few failures, whose log gammas differ in the last digits."""
    rows = rng.poisson(rate, (_N_ROWS, 1)).astype(float)
    assert_digits(dps.NegativeBinomial(number, 1.0, 1.0), rows)
    assert_digits(dps.Binomial(number, 1.0, 1.0), rows)


@pytest.mark.parametrize(("n_columns", "n_tabulated"), [(1, 256), (300, 218)])
def test_counts_beyond_the_table_keep_their_digits(n_columns: int, n_tabulated: int) -> None:
    """Binomial coefficients of small counts are read from a table, shorter for many columns."""
    entries = n_tabulated + np.arange(-2.0, 3.0)
    rows = np.repeat(entries[:, None], n_columns, axis=1)
    component = dps.NegativeBinomial(2.5, 1.0, 1.0)
    assert target_of(component, rows, 1.0).prior.log_choose.shape == (n_columns, n_tabulated)
    assert_digits(component, rows)


@pytest.mark.control
def test_difference_of_log_gammas_at_a_large_number_is_caught() -> None:
    """What `log_beta_rising` computed for arguments so different."""
    s, f = 1.5e13, 150.0
    exact = float(many_digits.log_beta_rising(1.0, 1.0, s, f))
    assert log_beta_rising(1.0, 1.0, s, f) == pytest.approx(exact, rel=1e-12)
    apart = math.lgamma(1.0 + s) + math.lgamma(1.0 + f) - math.lgamma(2.0 + s + f)
    assert abs(apart - exact) > 1e-4


# --- warnings -----------------------------------------------------------------------------


def warning_at_declaration(component, rows) -> list[str]:
    """Warnings while a mixture is declared."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pm.Model():
            dps.DPMixture("x", 1.0, component, observed=rows)
    return [str(warning.message) for warning in caught]


def test_fill_value_is_named(rng: np.random.Generator) -> None:
    rows = rng.standard_normal((60, 2))
    rows[12, 1] = 9.969209968386869e36
    (message,) = warning_at_declaration(dps.DiagNormal(0, 0.1, 2, 1), rows)
    assert message.startswith("x: observed has 9.96921e+36 in row 12, column 1, beside which")
    assert message.endswith("give NaN.")


@pytest.mark.parametrize("component", [dps.DiagNormal, dps.MvNormal])
def test_data_of_too_large_a_scale_are_refused(component: Any, rng: np.random.Generator) -> None:
    rows = rng.standard_normal((60, 2)) * [1.0, 1e150]
    with pytest.raises(ValueError, match=r"in column 1, above the limit of 1e\+120 that"):
        warning_at_declaration(component.from_data(rng.standard_normal((60, 2))), rows)
    assert warning_at_declaration(dps.DiagNormal(0, 0.1, 2, 1), rows * [1.0, 1e-50]) == []


def test_large_counts_are_named() -> None:
    (message,) = warning_at_declaration(dps.Poisson(1.0, 1e-8), [[3.0], [2e8]])
    assert message.startswith("x: observed has counts up to 2e+08, whose log densities are rounded")
    assert warning_at_declaration(dps.Poisson(1.0, 1e-6), [[3.0], [2e6]]) != []
    assert warning_at_declaration(dps.Poisson(1.0, 1e-6), [[3.0], [1e6]]) == []
    assert warning_at_declaration(dps.NegativeBinomial(1.0, 1.0, 1e6), [[3.0], [2e6]]) == []
    for component in (dps.NegativeBinomial(1e8, 1.0, 1.0), dps.Binomial(1e8, 1.0, 1.0)):
        assert warning_at_declaration(component, [[3.0], [2e6]]) != []
        assert warning_at_declaration(component, [[3.0], [1e6]]) == []


def test_large_numbers_beside_counts_are_none() -> None:
    parts = {"count": dps.Poisson(1.0, 1.0), "number": dps.DiagNormal(0, 0.1, 2, 1)}
    observed = np.array([[3.0, 2e8], [4.0, 3e8], [5.0, 1e8]])
    assert (
        warning_at_declaration(dps.Product({"count": [0], "number": [1]}, **parts), observed) == []
    )
    swapped = dps.Product({"count": [1], "number": [0]}, **parts)
    (message,) = warning_at_declaration(swapped, observed)
    assert message.startswith("x: part 'count': observed has counts up to 3e+08")


@pytest.mark.parametrize("fill", [0.0, 1e10])
def test_what_float64_holds_is_no_fault(fill: float, rng: np.random.Generator) -> None:
    rows = rng.standard_normal((60, 2))
    rows[12, 1] = fill
    rows[3, 0] = np.nan
    assert warning_at_declaration(dps.DiagNormal(0, 0.1, 2, 1), rows) == []
