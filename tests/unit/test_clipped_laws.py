"""The density of a parameter at a bound is the mass of what it stands for."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import betainc, gammainc

from pymc_dpsplit.components.parameter_laws import (
    BELOW_ONE,
    TINY,
    BetaLaw,
    GammaLaw,
    probability_of,
)

PLAIN = pytensor.compile.Mode("py", optimizer=None)
EXPONENTS = [1e-9, 1e-4, 0.03, 0.7, 0.95]


def value_of(law: BetaLaw | GammaLaw, x: float, a0: float, b0: float) -> float:
    """Log density of one parameter of a law."""
    values = {key: pt.as_tensor(np.array([of])) for key, of in (("a0", a0), ("b0", b0))}
    graph = law.log_density({law.parameter: pt.as_tensor(np.array([[x]]))}, values, pt)
    return float(pytensor.function([], graph, mode=PLAIN)()[0])


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("other", [0.02, 2.0, 40.0])
def test_mass_at_a_bound(exponent: float, other: float) -> None:
    near_one = 1.5 * 2.0**-53
    found = value_of(BetaLaw("p"), BELOW_ONE, other, exponent)
    assert found == pytest.approx(np.log(betainc(exponent, other, near_one)), abs=1e-8)
    found = value_of(BetaLaw("p"), TINY, exponent, other)
    assert found == pytest.approx(np.log(betainc(exponent, other, TINY)), abs=1e-8)
    found = value_of(GammaLaw("rate"), TINY, exponent, other)
    assert found == pytest.approx(np.log(gammainc(exponent, other * TINY)), abs=1e-8)


@pytest.mark.parametrize("x", [2 * TINY, 1e-9, 0.5, 1.0 - 2.0**-52])
def test_density_elsewhere(x: float) -> None:
    expected = stats.beta.logpdf(x, 0.3, 1.7)
    assert value_of(BetaLaw("p"), x, 0.3, 1.7) == pytest.approx(expected, rel=1e-12)
    expected = stats.gamma.logpdf(x, 0.3, scale=1 / 1.7)
    assert value_of(GammaLaw("rate"), x, 0.3, 1.7) == pytest.approx(expected, rel=1e-12)


def test_probabilities_near_one_are_rounded_to_nearest() -> None:
    unit = 2.0**-53
    rest = unit * np.array([1e-3, 0.4, 0.6, 1.4, 1.6, 2.4, 2.6])
    expected = 1.0 - unit * np.array([1, 1, 1, 1, 2, 2, 3])
    np.testing.assert_array_equal(probability_of(-np.log(rest)), expected)
    assert probability_of(np.array([-800.0, -700.0, 0.0])) == pytest.approx(
        [TINY, np.exp(-700.0), 0.5], rel=1e-12
    )
