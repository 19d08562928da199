"""Products with a non-conjugate part: densities by address, a trace, and what is read off it."""

import pickle
from typing import Any

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pymc_dpsplit as dps
from pymc_dpsplit.components.nonconjugate.compiled_prior import log_base_of, sum_log_density
from tests.reference.generic import FAMILIES

pytestmark = [pytest.mark.slow, pytest.mark.compiled]

_TWIN = FAMILIES["Product"]
# The columns of the data are in another order than the parts.
_ORDER = {"height": ["h"], "sex": ["s"], "time": ["t"]}
_FRAME = dict(zip("sth", _TWIN.rows[:, [1, 2, 0]].T, strict=True))


def declared() -> Any:
    return dps.Product(_ORDER, **_TWIN.component().families)


@pytest.fixture(scope="module")
def sampled() -> tuple[Any, pm.Model]:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, declared(), observed=_FRAME)
        idata = pm.sample(
            30, tune=30, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    return idata, model


def test_densities_by_address_are_the_graphs_of_the_model() -> None:
    component, rows = declared().read_table(_FRAME)
    component = component.validate_rows(rows)
    values = component.check(component.hyperparameters, 3)
    prior = component.prior(values, np.zeros(3))
    named = component.draw_base(np.random.default_rng(2), values, len(rows))
    params = component.pack(named, np.zeros(3))
    for key, value in component.unpack(params, np.zeros(3)).items():
        assert_allclose(value, named[key])
    found, out = np.empty(len(rows)), np.empty(len(rows))
    block = np.ascontiguousarray(component.arranged(rows).T).ravel()
    for i, theta in enumerate(params[:, 1:]):
        sum_log_density(prior, block, len(rows), theta, out)
        found[i] = out[i]
    at = {key: pt.as_tensor(value) for key, value in named.items()}
    assert_allclose(found, component.log_density(pt.as_tensor(rows), at, pt).eval())
    # The scales are log sigma, the logit of p, and the identity.
    sigma, p = named["height_sigma"], named["sex_p"][:, 0]
    volume = np.log(sigma) + np.log(p) + np.log1p(-p)
    expected = component.log_base(at, values, pt).eval() + volume
    assert_allclose([log_base_of(prior, theta) for theta in params[:, 1:]], expected)
    stored = pickle.loads(cloudpickle.dumps(component))
    assert not stored._made
    assert type(stored) is type(component)
    assert type(stored).__name__ == "Product"


def test_prior_predictive_is_that_of_the_parts() -> None:
    component, rows = declared().read_table(_FRAME)
    component = component.validate_rows(rows)
    values = component.check(component.hyperparameters, 3)
    expected = [_TWIN.log_marginal(row[None]) for row in _TWIN.rows]
    # Of the part that is not conjugate it is an average over 4096 draws.
    assert_allclose(component.log_prior_predictive(rows, values), expected, atol=0.15)
    few = component.of_features(np.array([0, 2]))
    alone = few.log_prior_predictive(
        np.ascontiguousarray(rows[:, [0, 2]]), component.restrict(values, np.array([0, 2]))
    )
    normal, binary, _ = _TWIN.parts
    exact = [normal.log_marginal(row[None, :1]) + binary.log_marginal(row[None, 1:2])
             for row in _TWIN.rows]  # fmt: skip
    assert_allclose(alone, exact)


def test_trace_has_the_parameters_of_all_parts(sampled: tuple[Any, pm.Model]) -> None:
    posterior = sampled[0]["posterior"]
    assert posterior["x_height_sigma"].dims == ("chain", "draw", "x_cluster")
    assert posterior["x_time_mu"].dims == ("chain", "draw", "x_cluster")
    assert posterior["x_sex_p"].dims == ("chain", "draw", "x_cluster", "x_sex_feature")
    assert posterior["x_sex_feature"].to_numpy().tolist() == ["s"]
    assert np.isfinite(posterior["x_time_mu"].to_numpy()[..., 0]).all()
    assert (sampled[0]["sample_stats"]["x_attempts"] > 0).any()


def test_readers_take_such_a_trace(sampled: tuple[Any, pm.Model]) -> None:
    idata, model = sampled
    partition = dps.point_partition(dps.sample_labels(idata, model=model, random_seed=1))
    described = dps.describe_clusters(idata, partition, model=model)
    assert "time_mu" in repr(described)
    pm.compute_log_likelihood(idata, model=model, progressbar=False)
    likelihood = idata["log_likelihood"]["x"].to_numpy()
    assert np.isfinite(likelihood).all()
    new = {name: value[:2] for name, value in _FRAME.items()}
    predicted = dps.predict(idata, new, model=model)["log_predictive_density"]
    assert np.isfinite(predicted).all()
    # The density of a column in each draw, integrated over the others.
    grid = np.linspace(-40.0, 40.0, 8001)
    density = dps.density(idata, model=model, features="t", grid=grid, num_samples=3)["density"]
    assert float(density.sel(statistic="mean").sum()) * 0.01 == pytest.approx(1.0, abs=0.01)
    with model:
        drawn = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
    rows = drawn["posterior_predictive"]["x"].to_numpy()
    assert rows.shape == (1, 30, 6, 3)
    assert_array_equal(np.unique(rows[..., 0]), [0.0, 1.0])


def test_missing_entries_of_new_rows_are_integrated_out(sampled: tuple[Any, pm.Model]) -> None:
    idata, model = sampled
    new = {"s": [1.0, np.nan, np.nan], "t": [np.nan, 0.4, np.nan], "h": [0.1, np.nan, np.nan]}
    found = dps.predict(idata, new, model=model)["log_predictive_density"].to_numpy()
    # The density of the whole row, integrated over the column that is missing.
    grid = np.linspace(-40.0, 40.0, 4001)
    whole = np.array([[1.0, t, 0.1] for t in grid])
    summed = dps.predict(idata, dict(zip("sth", whole.T, strict=True)), model=model)
    density = np.exp(summed["log_predictive_density"].to_numpy()).sum() * 0.02
    assert found[0] == pytest.approx(np.log(density), abs=0.01)
    assert found[2] == pytest.approx(0.0, abs=1e-12)
