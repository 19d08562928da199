"""Modes of PyTensor without rewrites: other steps sample from the same density as with them."""

import numpy as np
import pymc as pm
import pytest
from pymc.pytensorf import compile as compile_function
from pymc.pytensorf import join_nonshared_inputs, make_shared_replacements
from pytensor.compile.mode import Mode

import pymc_dpsplit as dps
from pymc_dpsplit.variables import owned_terms

SIGNS = np.tile([-1.0, 1.0], 4)
ROWS = np.array([-2.0, -1.0, 0.0, 1.0, 0.5, 2.0, -0.5, 3.0])
AT = (-0.5, 0.3, 1.0)
NUMBA = Mode("numba", None)
QUICK = [pytest.param(Mode("py", None), id="python"), pytest.param(Mode("py", "merge"), id="merge")]
MODES = [
    *QUICK,
    pytest.param(Mode("cvm", None), id="C", marks=pytest.mark.slow),
    pytest.param(NUMBA, id="numba", marks=[pytest.mark.compiled, pytest.mark.slow]),
]


def declared(component=None):
    with pm.Model() as model:
        beta = pm.Normal("beta", 0, 5)
        component = dps.Normal(0.0, 0.1, 2.0, 0.2) if component is None else component()
        dps.DPMixture("e", 1.0, component, observed=ROWS - beta * SIGNS)
    return model


def with_hyperparameter():
    return declared(lambda: dps.Normal(0.0, 0.1, 2.0, pm.Gamma("b0", 2, 2)))


def point_of(model):
    """A draw with two clusters: of the rows before the fifth, and from there."""
    point = model.initial_point()
    weights, mu, sigma = np.full((3, len(ROWS)), np.nan)
    weights[:], mu[:2], sigma[:2] = 0.0, [-1.0, 1.0], [0.5, 0.7]
    weights[:2] = 0.5, 0.4
    measure = {"e_n_clusters": np.array(2), "e_weights": weights, "e_mu": mu, "e_sigma": sigma}
    labels = np.repeat([0, 1], 4).astype(point["e_labels"].dtype)
    return {**point, **measure, "e_new_weight_log__": np.array(np.log(0.1)), "e_labels": labels}


def densities(model, mode=None):
    """Log density of beta that a step of PyMC without gradients compiles, up to a constant."""
    options = {} if mode is None else {"mode": mode}
    point, values = point_of(model), [model.rvs_to_values[model["beta"]]]
    shared = make_shared_replacements(point, values, model)
    [logp], joined = join_nonshared_inputs(point, [model.logp()], values, shared)
    function = compile_function([joined], logp, **options)
    found = [float(function(np.array([at]))) for at in AT]
    return np.array(found) - found[0]


def gradient_function(model, mode=None):
    values = [model.rvs_to_values[rv] for rv in model.free_RVs if not rv.name.startswith("e_")]
    point = point_of(model)
    function = model.logp_dlogp_function(values, ravel_inputs=True, initial_point=point, mode=mode)
    function.set_extra_values(point)
    return [function(np.full(len(values), at)) for at in AT]


def given_labels(beta):
    """Log density of beta given labels and parameters, up to a constant."""
    mu, sigma = (np.repeat(of, 4) for of in ([-1.0, 1.0], [0.5, 0.7]))
    z = (ROWS - beta * SIGNS - mu) / sigma
    return -0.5 * (z**2).sum() - 0.5 * (beta / 5) ** 2


@pytest.mark.parametrize(
    "mode", [*QUICK, pytest.param(NUMBA, id="numba", marks=pytest.mark.compiled)]
)
def test_density_of_other_steps_is_that_given_the_labels(mode):
    wanted = np.array([given_labels(at) for at in AT])
    np.testing.assert_allclose(densities(declared(), mode), wanted - wanted[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("model", [declared, with_hyperparameter])
def test_gradients_are_those_with_rewrites(mode, model):
    """And the density of a hyperparameter is that of the clusters, without the data."""
    values, gradients = zip(*gradient_function(model(), mode), strict=True)
    wanted, slopes = zip(*gradient_function(model()), strict=True)
    np.testing.assert_allclose(np.subtract(values, values[0]), np.subtract(wanted, wanted[0]))
    np.testing.assert_allclose(gradients, slopes)


@pytest.mark.parametrize("mode", MODES)
def test_density_of_the_model_has_the_labels_summed_out(mode):
    model = declared()
    for point in (model.initial_point(), point_of(model)):
        found = model.compile_logp(mode=mode)(point)
        np.testing.assert_allclose(found, model.compile_logp()(point))


@pytest.mark.parametrize("mode", MODES)
def test_weights_and_parameters_have_no_gradient(mode):
    model = declared()
    function = model.compile_dlogp([model["e_mu"]], mode=mode)
    with pytest.raises(NotImplementedError, match="have no gradient"):
        function(point_of(model))


@pytest.mark.control
def test_labels_summed_out_in_other_steps_are_caught(monkeypatch):
    monkeypatch.setattr(owned_terms, "_has_free_input", lambda variables: True)
    wanted = np.array([given_labels(at) for at in AT])
    found = densities(declared(), Mode("py", None))
    assert (abs(found - (wanted - wanted[0]))[1:] > 0.1).all()
