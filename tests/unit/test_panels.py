"""Integrals of likelihood times density, against adaptive quadrature split at every peak."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import log_expit

from pymc_dpsplit.posterior.prediction.knots import knots_about
from pymc_dpsplit.posterior.prediction.panels import Integrals, integrals

CENTRE, SCALE, WEIGHT = 3.0, 1.4, 0.9
# Degrees of freedom of the base measure, standard deviation of the cluster, and standard deviation
# and place of the likelihood: if infinite that of binomial data that are all successes.
CASES = [
    (2.0, 0.1, np.inf, 29.5),
    (3.0, 0.02, np.inf, 20.0),
    (1.0, 1e-3, np.inf, 300.0),
    (4.0, 1.0, np.inf, 25.0),
    (2.0, 0.1, 0.003, 3.05),
    (2.0, 1.0, 0.003, -4.0),
    (3.0, 1e-3, 0.1, 3.3),
    (1.0, 0.02, 0.1, -60.0),
    (3.0, 0.1, 2.0, 12.0),
    (10.0, 1e-3, 2.0, 0.0),
]


class Case:
    """One product of a likelihood and a density."""

    def __init__(self, df: float, sd: float, width: float, place: float) -> None:
        self.df, self.sd, self.width, self.place = df, sd, width, place

    def log_density(self, x: Any) -> Any:
        narrow = np.log(WEIGHT) + stats.norm.logpdf(x, CENTRE, self.sd)
        return np.logaddexp(narrow, np.log1p(-WEIGHT) + stats.t.logpdf(x, self.df, 0, SCALE))

    def log_likelihood(self, x: Any) -> Any:
        if np.isinf(self.width):
            return 20.0 * log_expit(x)
        return stats.norm.logpdf(x, self.place, self.width)

    def knots(self, sees_cluster: bool = True) -> np.ndarray:
        """Knots as of draws from both parts, and of draws of the value."""
        rng = np.random.default_rng(5)
        drawn = [SCALE * rng.standard_t(self.df, 25)]
        if sees_cluster:
            drawn.append(rng.normal(CENTRE, self.sd, 25))
        if np.isinf(self.width):
            drawn.append(np.linspace(0.8, self.place, 25))
        else:
            drawn.append(rng.normal(self.place, self.width, 25))
        return knots_about(np.sort(drawn, axis=1))[0].reshape(-1, 1)

    def found(self, sees_cluster: bool = True) -> Integrals:
        return integrals(
            lambda x: (self.log_density(x), self.log_likelihood(x)), self.knots(sees_cluster)
        )

    def exact(self) -> float:
        peaks = [(CENTRE, self.sd), (0.0, SCALE), (0.0, 1e3)]
        if np.isfinite(self.width):
            peaks.append((self.place, self.width))
        ends = np.unique([at + z * sd for at, sd in peaks for z in (-30, -8, -3, 0, 3, 8, 30)])

        def log_product(x: float) -> float:
            return float(self.log_density(x) + self.log_likelihood(x))

        top = max(log_product(x) for x in ends)
        # No piece may be judged by the largest one alone: their sizes are very different.
        total = sum(
            integrate.quad(lambda x: np.exp(log_product(x) - top), *piece, epsabs=1e-10)[0]
            for piece in pairwise(ends)
        )
        # Tails that fall like powers are smooth functions of the logarithm.
        for sign, first in ((-1, -ends[0]), (1, ends[-1])):
            total += integrate.quad(
                lambda s, sign=sign: np.exp(log_product(sign * np.exp(s)) + s - top),
                np.log(first),
                np.log(first) + 40.0,
            )[0]
        return float(np.log(total) + top)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_integral_is_that_of_quadrature(case: tuple[float, ...]) -> None:
    of = Case(*case)
    found = of.found()
    assert found.log_value == pytest.approx(of.exact(), abs=1e-4)
    assert found.mass == pytest.approx(1.0, abs=1e-4)
    assert found.error == 0.0


@pytest.mark.control
@pytest.mark.parametrize("case", [CASES[2], (3.0, 1e-4, np.inf, 20.0)], ids=str)
def test_part_without_knots_is_reported(case: tuple[float, ...]) -> None:
    of = Case(*case)
    found = of.found(sees_cluster=False)
    assert abs(found.log_value - of.exact()) > 0.1
    assert found.mass < 0.9


def test_infinite_integral_is_reported() -> None:
    def with_pole(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return stats.norm.logpdf(x), -1.5 * np.log(np.abs(x))

    assert integrals(with_pole, np.array([[-2.0], [0.0], [2.0]])).error > 0.01


def test_functions_do_not_depend_on_each_other() -> None:
    """Columns of any size and any number of panels give what each gives alone."""
    several = [Case(*case) for case in CASES[3:7]]
    knots, shift = [of.knots() for of in several], np.array([0.0, 900.0, -900.0, 1e4])

    def together(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        density = np.column_stack([of.log_density(x[:, j]) for j, of in enumerate(several)])
        given = [of.log_likelihood(x[:, j]) for j, of in enumerate(several)]
        return density, np.column_stack(given) - shift

    found = integrals(together, np.column_stack(knots))
    alone = np.array([of.found().log_value[0] for of in several])
    assert found.log_value + shift == pytest.approx(alone, abs=1e-4)
