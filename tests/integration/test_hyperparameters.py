"""Hyperparameters that are variables of the model, of every family and in every form."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures
from tests.integration.test_declaration import evaluates_density
from tests.integration.test_reproducibility import OPTIONS

N_OBS, N_DRAWS = 20, 10
ROWS = np.random.default_rng(3).normal(size=(N_OBS, 2)) + np.repeat([[-2.0], [2.0]], 10, axis=0)
FIXED = {
    dps.Normal: {"mu0": 0.0, "kappa0": 0.1, "a0": 2.0, "b0": 1.0},
    dps.DiagNormal: {"mu0": [0.0, 0.0], "kappa0": 0.1, "a0": 2.0, "b0": 1.0},
    dps.MvNormal: {"mu0": [0.0, 0.0], "kappa0": 0.1, "nu0": 5.0, "psi0": np.eye(2)},
}
PRIORS = {
    "mu0": lambda shape: pm.Normal("h", 0, 3, shape=shape),
    "kappa0": lambda shape: pm.Gamma("h", 2, 4, shape=shape),
    "a0": lambda shape: 1.0 + pm.Exponential("h", 1, shape=shape),
    "b0": lambda shape: pm.LogNormal("h", 0, 1, shape=shape),
    "nu0": lambda shape: pm.Uniform("h", 4, 9, shape=shape),
}


def declared(family, *, observed=None, **hyperparameters):
    """A mixture, some of whose hyperparameters are made in the context of the model."""
    rows = ROWS[:, 0] if family is dps.Normal else ROWS
    with pm.Model() as model:
        made = {key: of() if callable(of) else of for key, of in hyperparameters.items()}
        component = family(**{**FIXED[family], **made})
        observed = rows if observed is None else observed
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), component, observed=observed)
    return model


def sampled(model, **arguments):
    defaults = {"draws": N_DRAWS, "tune": 20, "chains": 2, "cores": 1, "random_seed": 5}
    with model:
        return pm.sample(**{**defaults, **OPTIONS, **arguments})


def steps_of(model):
    with model:
        _, selected = pm.sampling.mcmc.assign_step_methods(model)
    return {step.__name__: [var.name for var in of] for step, of in selected.items()}


CASES = [
    *((dps.Normal, key, None) for key in ("mu0", "kappa0", "a0", "b0")),
    *((dps.DiagNormal, key, shape) for key in ("mu0", "kappa0", "b0") for shape in (None, 1, 2)),
    (dps.DiagNormal, "a0", 2),
    *((dps.MvNormal, "mu0", shape) for shape in (None, 1, 2)),
    (dps.MvNormal, "kappa0", None),
    (dps.MvNormal, "nu0", None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "key", "shape"), CASES)
def test_each_hyperparameter_is_moved_by_gradients(family, key, shape):
    model = declared(family, **{key: lambda: PRIORS[key](shape)})
    assert len(steps_of(model)["NUTS"]) == 2
    ndim = find_mixtures(model)["x"].component.hyperparameter_ndims()[key]
    assert find_mixtures(model)["x"].hyperparameters[key].type.shape == (2,) * ndim
    function = functions_of(model)
    point = model.initial_point()
    function.set_extra_values(point)
    size = 1 + point[model.rvs_to_values[model["h"]].name].size
    _, gradient = function(np.full(size, 0.1))
    assert np.isfinite(gradient).all()
    assert (gradient != 0).all()


def lkj():
    chol, _, _ = pm.LKJCholeskyCov("c", n=2, eta=2.0, sd_dist=pm.Exponential.dist(1.0))
    return chol @ chol.T


SAMPLED = {
    "scalar": (dps.Normal, {"b0": lambda: PRIORS["b0"](None)}),
    "vector": (dps.DiagNormal, {"mu0": lambda: PRIORS["mu0"](2)}),
    "scalar for a vector": (dps.MvNormal, {"mu0": lambda: PRIORS["mu0"](None)}),
    "expression": (dps.Normal, {"b0": lambda: pt.exp(pm.Normal("h", 0, 0.5)) ** 2}),
    "deterministic matrix": (
        dps.MvNormal,
        {"psi0": lambda: pm.Deterministic("psi", pt.diag(pm.Exponential("h", 1, shape=2)))},
    ),
    "covariance": (dps.MvNormal, {"psi0": lkj}),
    "discrete": (dps.Normal, {"a0": lambda: 1.0 + pm.Poisson("h", 3)}),
    "truncated": (
        dps.Normal,
        {"kappa0": lambda: pm.Truncated("h", pm.Gamma.dist(2, 4), lower=0.05)},
    ),
    "two": (
        dps.Normal,
        {"mu0": lambda: pm.Normal("h", 0, 3), "b0": lambda: pm.HalfNormal("i", 2)},
    ),
}


# PyTensor looks for a BLAS of its own to make the gradient of a product of matrices.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS:UserWarning")
@pytest.mark.parametrize("case", SAMPLED)
def test_they_are_sampled(case):
    family, hyperparameters = SAMPLED[case]
    model = declared(family, **hyperparameters)
    posterior = sampled(model)["posterior"]
    own = {"x_n_clusters", "x_new_weight", "x_weights", "x_mu", "x_sigma", "x_cov", "x_labels"}
    for name, values in posterior.items():
        if name not in own and name != "c_corr":
            assert np.isfinite(values).all()
            assert (values.std(("chain", "draw")) > 0).any()


@pytest.mark.slow
def test_two_mixtures_share_hyperparameters():
    with pm.Model() as model:
        mu0, kappa0 = pm.Normal("mu0", 0, 3), pm.HalfNormal("kappa0", 1)
        dps.DPMixture("x", 1.0, dps.Normal(mu0, kappa0, 2.0, 1.0), observed=ROWS[:, 0])
        dps.DPMixture("y", 1.0, dps.DiagNormal(mu0, kappa0, 2.0, 1.0), observed=ROWS)
    idata = sampled(model)
    assert idata["posterior"]["mu0"].std() > 0
    for name in ("x", "y"):
        assert dps.sample_labels(idata, model=model, var_name=name).shape == (2, N_DRAWS, N_OBS)


@pytest.fixture(scope="module")
def model():
    return declared(dps.Normal, mu0=lambda: pm.Normal("h", 50, 0.1))


def test_prior_predictive_follows_them(model):
    with model:
        drawn = pm.sample_prior_predictive(50, random_seed=1)
    error = drawn["prior"]["x_sigma"].isel(x_cluster=0) / np.sqrt(0.1)
    z = (drawn["prior"]["x_mu"].isel(x_cluster=0) - drawn["prior"]["h"]) / error
    assert abs(float(z.mean())) < 5 / np.sqrt(50)
    assert abs(float(drawn["prior_predictive"]["x"].median()) - 50) < 10


@pytest.mark.compiled
def test_do_makes_them_numbers(model):
    fixed = pm.do(model, {"h": 0.0})
    drawn = sampled(fixed)["posterior"]
    assert "h" not in drawn
    expected = sampled(declared(dps.Normal, mu0=0.0))["posterior"]
    np.testing.assert_allclose(drawn["x_mu"].isel(x_cluster=0), expected["x_mu"].isel(x_cluster=0))


@pytest.mark.compiled
def test_data_containers_are_numbers():
    drawn = sampled(declared(dps.Normal, b0=lambda: pm.Data("b0", 1.0)))["posterior"]
    expected = sampled(declared(dps.Normal))["posterior"]
    np.testing.assert_allclose(drawn["x_mu"].isel(x_cluster=0), expected["x_mu"].isel(x_cluster=0))


@pytest.mark.slow
def test_prediction_reads_them_off_the_trace(model):
    idata = sampled(model)
    with model:
        found = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
        assert dps.sample_labels(idata).shape == (2, N_DRAWS, N_OBS)
    assert np.isfinite(found["posterior_predictive"]["x"]).all()


def functions_of(model, mode=None):
    """What a gradient step for the hyperparameter and alpha compiles."""
    values = [model.rvs_to_values[model[name]] for name in ("h", "alpha")]
    return model.logp_dlogp_function(
        values, ravel_inputs=True, initial_point=model.initial_point(), mode=mode
    )


def test_step_for_them_does_not_evaluate_the_data(model):
    assert not evaluates_density(functions_of(model))


@pytest.mark.control
def test_without_the_rewrite_the_data_are_evaluated(model):
    mode = get_mode(None).excluding("dpsplit_choose_forms")
    assert evaluates_density(functions_of(model, mode))


# --- what is refused ----------------------------------------------------------------------


BAD = {
    "vector for a matrix": (
        dps.MvNormal,
        "psi0",
        lambda: pm.HalfNormal("h", shape=2),
        "shape (2, 2)",
    ),
    "scalar for a matrix": (dps.MvNormal, "psi0", lambda: pm.HalfNormal("h"), "shape (2, 2)"),
    "vector for a scalar": (dps.MvNormal, "kappa0", lambda: PRIORS["kappa0"](2), "give a scalar"),
    "too long": (dps.DiagNormal, "mu0", lambda: PRIORS["mu0"](3), "shape (2,)"),
    "stranger": (dps.Normal, "kappa0", lambda: pm.HalfNormal.dist(1), "not in this model"),
    "stranger in an expression": (dps.Normal, "b0", lambda: 1 + pm.Gamma.dist(1, 1), "not in this"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_one_sentence(fault):
    family, key, make, message = BAD[fault]
    with pytest.raises(ValueError) as raised:  # noqa: PT011  (the text is compared below)
        declared(family, **{key: make})
    text = str(raised.value)
    assert message in text
    assert text.startswith(f"x: {key} ")
    assert text.endswith(".")
    assert "; " in text


IMPOSSIBLE = {
    "negative": (dps.Normal, "kappa0", lambda: pm.Normal("h", 1), "kappa0=.* must be positive"),
    "not positive definite": (
        dps.MvNormal,
        "psi0",
        lambda: pm.Normal("h", shape=(2, 2)),
        "psi0 is",
    ),
    "too few": (dps.MvNormal, "nu0", lambda: pm.HalfNormal("h", 1), "nu0=.* is too small"),
}


@pytest.mark.parametrize("fault", IMPOSSIBLE)
def test_priors_that_allow_the_impossible_are_refused_before_sampling(fault):
    family, key, make, message = IMPOSSIBLE[fault]
    model = declared(family, **{key: make})
    with pytest.raises(ValueError, match=message) as raised:
        sampled(model)
    assert str(raised.value).startswith("x: ")
