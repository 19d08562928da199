"""The step's own move of alpha: the density it samples from, and the slice sampler."""

import math
from collections.abc import Callable

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.variables import concentration_prior, find_mixtures
from tests.support.statistics import LEVEL

ROWS = np.array([0.1, 0.4, 2.0, -1.0])
FAMILY = dps.Normal(0.0, 0.1, 2.0, 1.0)


def prior_of(declare: Callable[[], object]) -> object:
    """What `concentration_prior` makes of the mixture x of a model."""
    with pm.Model() as model:
        declare()
    return concentration_prior(find_mixtures(model)["x"], model, model.initial_point())


def mixture(alpha: object, family: dps.Normal = FAMILY, observed: object = ROWS) -> None:
    dps.DPMixture("x", alpha, family, observed=observed)


def of_two_variables() -> None:
    mixture(pm.Gamma("a", 1, 1) + pm.Gamma("b", 1, 1))


def of_a_vector() -> None:
    mixture(pm.Gamma("a", 1, 1, shape=3).sum())


def of_a_count() -> None:
    mixture(1.0 + pm.Poisson("a", 1))


def also_a_hyperparameter() -> None:
    alpha = pm.Gamma("a", 1, 1)
    mixture(alpha, dps.Normal(0.0, 0.1, 2.0, 2.0 * alpha))


def also_in_the_mean() -> None:
    alpha = pm.Gamma("a", 1, 1)
    mixture(alpha, observed=ROWS - alpha)


@pytest.mark.parametrize(
    "declare",
    [
        lambda: mixture(1.0),
        of_two_variables,
        of_a_vector,
        of_a_count,
        also_a_hyperparameter,
        also_in_the_mean,
    ],
)
def test_variables_with_another_part_are_left_to_their_steps(declare):
    assert prior_of(declare) is None


def test_density_holds_all_that_depends_on_the_variable_but_the_mixture():
    with pm.Model() as model:
        a = pm.LogNormal("a", 0.3, 0.7)
        mixture(2.0 * a)
        dps.DPMixture("other", a, FAMILY, observed=ROWS)
        pm.Normal("y", a, 1.0, observed=0.5)
    point = {**model.initial_point(), "other_n_clusters": np.array(3)}
    point["other_new_weight_log__"] = np.array(-2.0)
    prior = concentration_prior(find_mixtures(model)["x"], model, point)
    assert prior is not None
    assert prior.value_name == "a_log__"
    evaluate = prior.given(point)

    def expected(value: float) -> float:
        at = np.exp(value)
        own = stats.norm(0.3, 0.7).logpdf(value) + stats.norm(at, 1.0).logpdf(0.5)
        return own + 3 * value + (at - 1.0) * -2.0

    found = [evaluate(value) for value in (-1.0, 0.4, 1.3)]
    np.testing.assert_allclose([law.strength for _, law in found], 2.0 * np.exp([-1.0, 0.4, 1.3]))
    gaps = np.diff([log_density for log_density, _ in found])
    np.testing.assert_allclose(gaps, np.diff([expected(v) for v in (-1.0, 0.4, 1.3)]), rtol=1e-9)


def chain_of(width: float, skewed: bool, rng: np.random.Generator) -> np.ndarray:
    """Thinned draws of a Gamma(2) variable; with `skewed` steps that break detailed balance."""

    def log_density(value: float) -> float:
        return math.log(value) - value if value > 0.0 else -math.inf

    drawn, at = [], 1.0
    for _ in range(20_000):
        at = slice_draw(log_density, at, width, rng)
        at = max(at, slice_draw(log_density, at, width, rng)) if skewed else at
        drawn.append(at)
    return np.array(drawn[::10])


@pytest.mark.parametrize("width", [0.1, 1.0, 50.0])
def test_slice_sampler_keeps_the_law(width, rng):
    assert stats.kstest(chain_of(width, False, rng), stats.gamma(2.0).cdf).pvalue > LEVEL


@pytest.mark.control
def test_wrong_slice_sampler_is_caught(rng):
    assert stats.kstest(chain_of(1.0, True, rng), stats.gamma(2.0).cdf).pvalue < LEVEL
