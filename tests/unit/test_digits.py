"""Digits of log marginals at extreme scales and offsets, against 60-digit arithmetic."""

import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.components.base import log_marginal
from pymc_dpsplit.data.blocks import column_centres, column_means
from pymc_dpsplit.sampler import resume
from tests.reference import many_digits
from tests.support.families import target_of

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


@pytest.mark.parametrize("rate", [1e-3, 1.0, 1e3, 1e6])
def test_poisson_marginal_keeps_its_digits(rate: float, rng: np.random.Generator) -> None:
    rows = rng.poisson(rate, (_N_OBS, 2)).astype(float)
    found, exact = both(dps.Poisson(1.0, 1.0 / rate), rows)
    assert found == pytest.approx(exact, rel=_RELATIVE)


@pytest.mark.parametrize("scale", _SCALES)
def test_exponential_marginal_keeps_its_digits(scale: float, rng: np.random.Generator) -> None:
    rows = scale * rng.standard_exponential((_N_OBS, 2))
    found, exact = both(dps.Exponential(1.5, scale), rows)
    assert found == pytest.approx(exact, rel=_RELATIVE)


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


def test_large_counts_are_named() -> None:
    (message,) = warning_at_declaration(dps.Poisson(1.0, 1e-8), [[3.0], [2e8]])
    assert message.startswith("x: observed has counts up to 2e+08, whose log densities are rounded")


@pytest.mark.parametrize("fill", [0.0, 1e10])
def test_what_float64_holds_is_no_fault(fill: float, rng: np.random.Generator) -> None:
    rows = rng.standard_normal((60, 2))
    rows[12, 1] = fill
    rows[3, 0] = np.nan
    assert warning_at_declaration(dps.DiagNormal(0, 0.1, 2, 1), rows) == []
