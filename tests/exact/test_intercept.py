"""A latent mixture beside an intercept, which is moved together with the rows."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.forward import draw_labelled_rows, draw_seating
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.step import intercept_move
from pymc_dpsplit.variables import find_mixtures, intercepts_of
from pymc_dpsplit.variables.intercepts import Intercept
from tests.reference import families as naive
from tests.support.datasets import DATASETS
from tests.support.quadrature import fixed, grid_of, noisy_table, posterior
from tests.support.runs import labels_test, run, scalar_test
from tests.support.statistics import LEVEL, combine, two_sample_test

pytestmark = pytest.mark.slow

ALPHA = 1.2
HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
Y = 1.0 + DATASETS["overlapping"](1)[:6, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 3.0, 0.5, 0.8])
PRIOR = stats.norm(0.0, 2.0)


def declare() -> pm.Model:
    """Groups of known noise about an intercept and a latent mixture."""
    with pm.Model() as model:
        b0 = pm.Normal("b0", 0.0, 2.0)
        b = dps.DPMixture("b", ALPHA, dps.Normal(**HYPERPARAMETERS), shape=6)
        pm.Normal("y", b0 + b, NOISE, observed=pm.Data("data", Y))
    return model


def p_value(n_draws: int = 800) -> float:
    """P-value of the partition and of the intercept, through `pm.sample`."""
    grid = grid_of(PRIOR, 81)
    family = naive.Normal(**HYPERPARAMETERS)
    tables = np.stack([noisy_table(family, Y - node, NOISE).table for node in grid.nodes])
    exact = posterior(tables, grid.log_weights, fixed(ALPHA))
    with declare():
        idata = run(n_draws)
    return combine(
        labels_test(idata, "b", exact.partitions),
        scalar_test(idata, "b0", exact.nodes, grid.nodes),
    )


@pytest.mark.slow
def test_intercept_beside_a_latent_mixture_is_exact() -> None:
    assert p_value() > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_shift_that_accepts_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        intercept_move, "slice_draw", lambda density, at, width, rng: rng.normal(0.0, width)
    )
    assert p_value(400) < LEVEL


def one_step(rng: np.random.Generator, n_replicates: int = 3000) -> float:
    """P-value of intercept and rows after one move from a draw of the joint law with the data."""
    model, component = declare(), dps.Normal(**HYPERPARAMETERS)
    point = model.initial_point()
    intercepts = intercepts_of(find_mixtures(model)["b"], model, point)
    values = component.check(component.hyperparameters, 1)
    prior = component.prior(values, np.zeros(1))
    before, after = [], []
    for _ in range(n_replicates):
        b0, labels = rng.normal(0.0, 2.0), draw_seating(rng, ALPHA, 6)
        parameters = component.draw_base(rng, values, int(labels.max()) + 1)
        b = draw_labelled_rows(rng, component, labels, parameters, values)
        y = rng.normal(b0 + b, NOISE)
        pm.set_data({"data": y}, model=model)
        target = sampler.Target(prior, component.arranged(b[:, None]), dirichlet_process(ALPHA))
        present = point | {"b0": np.asarray(b0), "b": b}
        moved = intercept_move.move_intercepts(
            intercepts, target, sampler.resume(target, labels), present, rng
        )
        np.testing.assert_array_equal(moved[0].data, moved[2]["b"][:, None])
        for found, at in ((before, present), (after, moved[2])):
            own, mean = float(at["b0"]), at["b"].mean()
            found.append([own, own**2, mean, mean**2, own * y.mean(), own * labels.max()])
    return two_sample_test(np.array(before), np.array(after))


def test_shift_is_invariant(rng: np.random.Generator) -> None:
    assert one_step(rng) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("term", ["rows", "prior"])
def test_shift_that_omits_a_term_is_caught(
    rng: np.random.Generator, term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if term == "rows":
        monkeypatch.setattr(intercept_move, "log_joint", lambda target, stats: 0.0)
    else:
        whole = Intercept.log_terms
        monkeypatch.setattr(Intercept, "log_terms", lambda *args: (0.0, whole(*args)[1]))
    assert one_step(rng) < LEVEL


def found_in(model: pm.Model) -> list[str]:
    """Names of the intercepts of the mixture b."""
    mixture = find_mixtures(model)["b"]
    return [found.value_name for found in intercepts_of(mixture, model, model.initial_point())]


def latent(**options: Any) -> Any:
    return dps.DPMixture("b", ALPHA, dps.Normal(**HYPERPARAMETERS), **options)


def test_intercept_is_found_among_other_variables() -> None:
    x, group = np.linspace(-1, 1, 12), np.repeat(np.arange(6), 2)
    with pm.Model() as model:
        b0, slope = pm.Normal("b0"), pm.Normal("slope")
        pm.Bernoulli("y", logit_p=b0 + latent(shape=6)[group] + slope * x, observed=x > 0)
    assert found_in(model) == ["b0"]


def test_one_intercept_for_each_feature_is_found() -> None:
    with pm.Model() as model:
        b0, one = pm.Normal("b0", shape=2), pm.Normal("one")
        component = dps.DiagNormal(**HYPERPARAMETERS)
        b = dps.DPMixture("b", ALPHA, component, shape=(5, 2))
        pm.Normal("y", b0 + one + b, 1.0, observed=np.arange(10.0).reshape(5, 2))
    assert found_in(model) == ["b0", "one"]


@pytest.mark.parametrize(
    "fault", ["scaled", "in a prior", "mean of the base measure", "positive", "a scale"]
)
def test_other_variables_are_no_intercepts(fault: str) -> None:
    with pm.Model() as model:
        b0 = pm.HalfNormal("b0") if fault == "positive" else pm.Normal("b0")
        mu0 = b0 if fault == "mean of the base measure" else 0.2
        b = dps.DPMixture("b", ALPHA, dps.Normal(mu0, 0.3, 3.0, 0.8), shape=6)
        if fault == "in a prior":
            pm.Normal("other", b0)
        noise = b0 if fault == "a scale" else NOISE
        pm.Normal("y", (2.0 if fault == "scaled" else 1.0) * b0 + b, noise, observed=Y)
    assert found_in(model) == []
