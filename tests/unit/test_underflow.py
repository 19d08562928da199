"""Priors with tiny shapes: atoms of the base measure leave float64, chains do not."""

from collections.abc import Callable

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import draw_parameters, params_size, stats_size
from pymc_dpsplit.components.component_family import ComponentFamily
from tests.support.families import target_of

_SHAPES = (1e-2, 1e-3, 1e-5)
_N_OBS = 40


def _pairs(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((_N_OBS, 2))


def _positive(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_gamma(2.0, (_N_OBS, 2))


def _counts(rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(3.0, (_N_OBS, 2)).astype(float)


def _bits(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, (_N_OBS, 2)).astype(float)


Rows = Callable[[np.random.Generator], np.ndarray]
VAGUE: dict[str, tuple[Callable[[float], ComponentFamily], Rows]] = {
    "Normal": (lambda a: dps.Normal(0, 0.01, a, a), lambda rng: rng.standard_normal((_N_OBS, 1))),
    "DiagNormal": (lambda a: dps.DiagNormal(0, 0.01, a, a), _pairs),
    "SphericalNormal": (lambda a: dps.SphericalNormal(0, 0.01, a, a), _pairs),
    "MvNormal": (lambda a: dps.MvNormal(0, 0.01, 1.0 + a, a * np.eye(2)), _pairs),
    "Gamma": (lambda a: dps.Gamma(2.0, a, a), _positive),
    "InverseGamma": (lambda a: dps.InverseGamma(2.0, a, a), _positive),
    "Exponential": (lambda a: dps.Exponential(a, a), _positive),
    "Poisson": (lambda a: dps.Poisson(a, a), _counts),
    "Bernoulli": (lambda a: dps.Bernoulli(a, a), _bits),
    "Categorical": (lambda a: dps.Categorical(np.full((2, 2), a)), _bits),
    "Multinomial": (lambda a: dps.Multinomial(np.full(2, a)), lambda rng: 1.0 + _counts(rng)),
}


@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
@pytest.mark.parametrize("shape", _SHAPES)
@pytest.mark.parametrize("name", VAGUE)
def test_chain_stays_finite(name: str, shape: float, kernel: str, rng: np.random.Generator) -> None:
    vague, rows_from = VAGUE[name]
    rows = rows_from(rng)
    component = vague(shape).validate_rows(rows)
    target = target_of(component, rows, 1.0)
    state = sampler.start(target, rng, 4)
    schedule = sampler.Schedule(3, 1.0, np.arange(0, _N_OBS, 5))
    state, _ = sampler.advance(kernel, target, state, rng, schedule)
    assert np.isfinite(state.stats).all()
    measure = sampler.measure(target, state, rng)
    for parameter in component.unpack(measure.params, target.prior.shift).values():
        assert np.isfinite(parameter).all()


@pytest.mark.parametrize("name", ["Normal", "DiagNormal", "SphericalNormal", "MvNormal"])
def test_flattest_atoms_are_finite(name: str, rng: np.random.Generator) -> None:
    """Their log density is far below that of the smallest positive number, and not -inf or NaN."""
    vague, rows_from = VAGUE[name]
    target = target_of(vague(1e-5), rows_from(rng), 1.0)
    constants = []
    for _ in range(20):
        params = np.empty(params_size(target.prior))
        draw_parameters(target.prior, np.zeros(stats_size(target.prior)), rng, params)
        assert np.isfinite(params).all()
        constants.append(params[0])
    assert min(constants) < -1e3


@pytest.mark.parametrize("name", VAGUE)
def test_draws_of_the_base_measure_are_finite(name: str, rng: np.random.Generator) -> None:
    vague, rows_from = VAGUE[name]
    component = vague(1e-5).validate_rows(rows_from(rng))
    values = component.check(component.hyperparameters, rows_from(rng).shape[1])
    for parameter in component.draw_base(rng, values, 50).values():
        assert np.isfinite(parameter).all()
