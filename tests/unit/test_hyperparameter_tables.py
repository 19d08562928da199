"""Constructors and checks that follow from the table of a family's hyperparameters."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from tests.reference.example import as_counts, as_positive, as_successes
from tests.support.family_cases import rows_of


def test_constructor_shows_its_arguments() -> None:
    assert list(inspect.signature(dps.MvNormal).parameters) == ["mu0", "kappa0", "nu0", "psi0"]
    by_order, by_name = dps.Gamma(2.0, 1.0, 3.0), dps.Gamma(b0=3.0, a0=1.0, shape=2.0)
    assert list(by_order.hyperparameters.items()) == list(by_name.hyperparameters.items())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dps.Poisson(1.0), r"Poisson: missing.*'b0'; give Poisson\(a0, b0\)"),
        (lambda: dps.Poisson(1.0, b=2.0), r"Poisson: .*; give Poisson\(a0, b0\)"),
        (lambda: dps.Poisson(1.0, 2.0, 3.0), r"Poisson: too many .*; give Poisson\(a0, b0\)"),
        (lambda: dps.Poisson(1.0, 2.0, a0=3.0), r"Poisson: multiple .*'a0'; give Poisson"),
    ],
)
def test_wrong_arguments_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_what_statistics_hold_is_no_variable() -> None:
    with pm.Model():
        r = pm.Gamma("r", 2.0, 1.0)
        with pytest.raises(ValueError, match=r"r=r is a variable, .* or .* Component"):
            dps.NegativeBinomial(r, 1.0, 1.0)
        with pytest.raises(ValueError, match="n=n is a variable"):
            dps.Binomial(pm.Data("n", 4.0), 1.0, 1.0)
        # Others may be variables.
        dps.NegativeBinomial(1.0, a0=r, b0=r)
        dps.InverseGamma(r, 1.0, 1.0)


def test_numbers_of_trials_are_whole_and_bound_the_data() -> None:
    binomial = dps.Binomial([4.0, 2.5], 1.0, 1.0)
    with pytest.raises(ValueError, match=r"n=\[4.0, 2.5\] must be whole; give numbers of trials"):
        binomial.check(binomial.hyperparameters, 2)
    with pytest.raises(ValueError, match="has 3 in column 1; give numbers of successes up to n"):
        dps.Binomial([4.0, 2.0], 1.0, 1.0).validate_rows(np.array([[4.0, 2.0], [1.0, 3.0]]))


def test_defaults_are_those_documented() -> None:
    rows = rows_of("separated", 3)
    positive, counts = as_positive(rows), as_counts(rows)
    mean, variance = positive.mean(0), positive.var(0)
    inverse = dps.InverseGamma.from_data(positive).hyperparameters
    np.testing.assert_allclose(1.0 / (inverse["shape"] - 2.0), 0.1 * variance / mean**2)
    scale = inverse["a0"] / inverse["b0"]
    np.testing.assert_allclose(scale / (inverse["shape"] - 1.0), mean)
    found = dps.NegativeBinomial.from_data(3.0 * counts**2).hyperparameters
    mean, variance = (3.0 * counts**2).mean(0), (3.0 * counts**2).var(0)
    np.testing.assert_allclose(found["r"], np.maximum(10.0 * mean**2 / (variance - mean), 1.0))
    # The mean of (1 - p) / p is b0 / (a0 - 1).
    np.testing.assert_allclose(found["r"] * found["b0"] / (found["a0"] - 1.0), mean)
    assert (dps.NegativeBinomial.from_data(np.ones((5, 1))).hyperparameters["r"] == 100.0).all()
    successes = as_successes(rows)
    binomial = dps.Binomial.from_data(successes).hyperparameters
    np.testing.assert_array_equal(binomial["n"], successes.max(0))
