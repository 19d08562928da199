"""Models in which the density of the rows of a mixture holds a variable."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures
from pymc_dpsplit.variables.log_density import MixtureLogDensity
from tests.integration.test_reproducibility import OPTIONS

N_OBS, N_DRAWS = 30, 10
RNG = np.random.default_rng(8)
Y = np.where(np.arange(N_OBS) < 12, -3.0, 3.0) + 0.5 * RNG.normal(size=N_OBS)


def declared(observed=Y, sigma=None, **arguments):
    with pm.Model() as model:
        sigma = pm.HalfNormal("sigma", 1.0) if sigma is None else sigma()
        component = dps.NormalKnownSigma(0.0, 3.0, sigma)
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), component, observed=observed, **arguments)
    return model


def sampled(model, **arguments):
    defaults = {"draws": N_DRAWS, "tune": 200, "chains": 2, "cores": 1, "random_seed": 5}
    with model:
        return pm.sample(**{**defaults, **OPTIONS, **arguments})


@pytest.fixture(scope="module")
def model():
    return declared()


@pytest.fixture(scope="module")
def idata(model):
    return sampled(model)


@pytest.mark.slow
def test_labels_and_variable_are_in_the_trace(model, idata):
    posterior = idata["posterior"]
    assert posterior["x_labels"].shape == (2, N_DRAWS, N_OBS)
    np.testing.assert_array_equal(dps.sample_labels(idata, model=model), posterior["x_labels"])
    assert 0.3 < float(posterior["sigma"].mean()) < 0.8
    assert "x_log_joint" in str(dps.diagnose(idata))


@pytest.mark.slow
def test_log_likelihood_has_the_labels_summed_out(model, idata):
    idata = idata.copy()
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    at = idata["posterior"].isel(chain=1, draw=-1)
    sigma = float(at["sigma"])
    density = float(at["x_new_weight"]) * stats.norm.pdf(Y, 0.0, np.hypot(3.0, sigma))
    for k in range(int(at["x_n_clusters"])):
        density += float(at["x_weights"][k]) * stats.norm.pdf(Y, at["x_mu"][k], sigma)
    np.testing.assert_allclose(idata["log_likelihood"]["x"][1, -1], np.log(density))


@pytest.mark.slow
def test_other_steps_see_the_rows_given_their_labels(model, idata):
    sigma = model.rvs_to_values[model["sigma"]]
    function = model.logp_dlogp_function([sigma], ravel_inputs=True)
    nodes = function._pytensor_function.maker.fgraph.apply_nodes
    assert not any(isinstance(node.op, MixtureLogDensity) for node in nodes)
    at = idata["posterior"].isel(chain=0, draw=-1)
    point = model.initial_point()
    for name, value in point.items():
        if name.startswith("x_") and name in at:
            point[name] = at[name].to_numpy().astype(value.dtype)
    function.set_extra_values(point)
    found = [function(np.array([log_sigma]))[0] for log_sigma in (-1.0, 0.3)]
    mu = at["x_mu"].to_numpy()[at["x_labels"].to_numpy()]
    wanted = [
        stats.halfnorm.logpdf(s) + np.log(s) + stats.norm.logpdf(Y, mu, s).sum()
        for s in np.exp([-1.0, 0.3])
    ]
    assert found[1] - found[0] == pytest.approx(wanted[1] - wanted[0])


@pytest.mark.slow
def test_predictions_follow_the_variable(model, idata):
    with model:
        found = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
        prior = pm.sample_prior_predictive(200, random_seed=1)
    drawn = found["posterior_predictive"]["x"].to_numpy()
    assert drawn.shape == (2, N_DRAWS, N_OBS)
    assert drawn.std() == pytest.approx(Y.std(), rel=0.3)
    assert np.isfinite(prior["prior_predictive"]["x"]).all()


@pytest.mark.slow
def test_labels_are_left_out_where_nothing_moves():
    for sigma in (lambda: 0.5, lambda: pm.Data("sigma", 0.5)):
        model = declared(sigma=sigma)
        assert not find_mixtures(model)["x"].is_labelled
        assert "x_labels" not in sampled(model, tune=20)["posterior"]


@pytest.mark.slow
def test_do_makes_it_a_number(model):
    fixed = pm.do(model, {"sigma": 0.5})
    idata = sampled(fixed, tune=20)
    assert "sigma" not in idata["posterior"]
    assert dps.sample_labels(idata, model=fixed).shape == (2, N_DRAWS, N_OBS)


@pytest.mark.slow
def test_missing_entries_and_float32():
    observed = Y.astype(np.float32)
    observed[[3, 20]] = np.nan
    model = declared(observed)
    idata = sampled(model)
    assert idata["posterior"]["x_unobserved"].shape == (2, N_DRAWS, 2)
    assert idata["observed_data"]["x"].dtype == np.float32
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    assert idata["log_likelihood"]["x"].shape == (2, N_DRAWS, N_OBS - 2)


@pytest.mark.slow
def test_errors_of_a_regression():
    x = RNG.normal(size=N_OBS)
    with pm.Model() as model:
        slope, sigma = pm.Normal("slope", 0, 10), pm.HalfNormal("sigma", 1.0)
        observed = Y + 4.0 * x - slope * x
        dps.DPMixture("e", 1.0, dps.NormalKnownSigma(0.0, 3.0, sigma), observed=observed)
    posterior = sampled(model)["posterior"]
    assert float(posterior["slope"].mean()) == pytest.approx(4.0, abs=0.5)
    assert 0.3 < float(posterior["sigma"].mean()) < 0.8


FAULTS = {
    "not in the model": (lambda: pm.HalfNormal.dist(1.0), "sigma holds a distribution"),
    "a vector": (lambda: pm.HalfNormal("s", 1.0, shape=2), "sigma is a variable of shape"),
    "a negative number": (lambda: -1.0, "sigma=-1.0 must be positive"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_input_is_one_sentence(fault):
    sigma, message = FAULTS[fault]
    with pytest.raises(ValueError, match=f"x: {message}.*; ") as raised:
        declared(sigma=sigma)
    assert str(raised.value).endswith(".")


def test_prior_that_allows_the_impossible_is_refused_before_sampling():
    model = declared(sigma=lambda: pm.Normal("sigma"))
    with pytest.raises(ValueError, match=r"x: sigma=.* must be positive"):
        sampled(model)
