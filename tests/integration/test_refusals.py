"""What PyMC offers and a mixture cannot bear: refused in one sentence, other models untouched."""

import inspect
import pickle
import warnings

import numpy as np
import pymc as pm
import pytest
from pymc import find_MAP, fit, sample_smc
from pymc.sampling import mcmc
from pymc.smc import sampling as smc
from pymc.tuning import starting
from pymc.variational import opvi

import pymc_dpsplit as dps
from pymc_dpsplit import wrapped_functions

ROWS = np.random.default_rng(3).normal(size=(12, 2))
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


def mixture_model(name=""):
    with pm.Model(name=name) as model:
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture("x", alpha, dps.DiagNormal.from_data(ROWS), observed=ROWS)
        pm.Normal("z")
    return model


@pytest.fixture(scope="module")
def model():
    return mixture_model()


@pytest.fixture(scope="module")
def plain():
    """A model without a mixture."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 0.5, observed=[0.9, 1.1])
    return model


def map_of(model, function=pm.find_MAP, **arguments):
    options = {"progressbar": False, "return_inferencedata": True, "jitter": False}
    return function(model=model, **options, **arguments)


def assert_refused(call, *parts):
    with pytest.raises(ValueError, match=r"^x: [^\n]*; [^\n]*\.$") as raised:
        call()
    text = str(raised.value)
    for part in parts:
        assert part in text


ENTRIES = {
    "pm.find_MAP": map_of,
    "find_MAP of a part": lambda model: map_of(model, vars=[model["alpha"]]),
    "pm.fit": lambda model: pm.fit(10, model=model, progressbar=False),
    "fullrank": lambda model: pm.fit(10, "fullrank_advi", model=model, progressbar=False),
    "svgd": lambda model: pm.fit(10, "svgd", model=model, progressbar=False),
    "pm.ADVI": lambda model: pm.ADVI(model=model),
    "pm.FullRankADVI": lambda model: pm.FullRankADVI(model=model),
    "pm.SVGD": lambda model: pm.SVGD(model=model),
    "pm.MeanField": lambda model: pm.MeanField(model=model),
    "pm.Group": lambda model: pm.Group([model["z"]], vfam="mf", model=model),
    "pm.sample_smc": lambda model: pm.sample_smc(10, model=model, progressbar=False),
    "find_MAP as imported": lambda model: map_of(model, find_MAP),
    "fit as imported": lambda model: fit(10, model=model, progressbar=False),
    "sample_smc as imported": lambda model: sample_smc(10, model=model, progressbar=False),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_cannot_move_a_mixture_is_refused(entry, model):
    assert_refused(lambda: ENTRIES[entry](model), "pm.sample()")


@pytest.mark.parametrize("entry", ["pm.find_MAP", "pm.fit", "pm.sample_smc"])
def test_the_sentence_names_what_was_called(entry, model):
    assert_refused(lambda: ENTRIES[entry](model), entry)


def test_the_model_of_the_context_is_refused(model):
    with model:
        assert_refused(lambda: map_of(None))
        assert_refused(lambda: pm.fit(progressbar=False))
        assert_refused(lambda: pm.sample_smc(progressbar=False))
        assert_refused(lambda: pm.sample(nuts_sampler="nutpie"))


def test_every_mixture_is_named_once():
    with pm.Model() as model:
        for name in ("x", "y"):
            dps.DPMixture(name, 1.0, dps.DiagNormal.from_data(ROWS), observed=ROWS)
    with pytest.raises(ValueError, match=r"^x, y: pm\.find_MAP"):
        map_of(model)


@pytest.mark.parametrize("sampler", ["nutpie", "numpyro", "blackjax", "none such"])
def test_samplers_of_others_are_refused(sampler, model):
    assert_refused(
        lambda: pm.sample(nuts_sampler=sampler, model=model, **QUIET),
        f"nuts_sampler={sampler!r}",
        "leave nuts_sampler out",
    )


STEPS = {
    "all": lambda model: pm.Metropolis(model.free_RVs),
    "one": lambda model: pm.Slice([model["x_new_weight"]]),
    "listed": lambda model: [pm.Slice([model["alpha"]]), pm.Slice([model["x_weights"]])],
    "population": lambda model: pm.DEMetropolisZ([model["alpha"], model["x_mu"]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_steps_of_others_are_refused(step, model):
    """PyMC would use them in place of ours, and the draws would be wrong in silence."""
    with model:
        step = STEPS[step](model)
        assert_refused(
            lambda: pm.sample(step=step, draws=2, tune=0, chains=1, **QUIET), "only DPSplitMerge"
        )


@pytest.mark.slow
@pytest.mark.control
def test_without_the_refusals_a_point_comes_back(model, monkeypatch):
    """`find_MAP` ran to its end, and gave a point that means nothing."""
    monkeypatch.setattr(starting, "modelcontext", starting.modelcontext.__wrapped__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = map_of(model, method="Powell", options={"maxiter": 1})
    assert "x_mu" in found["posterior"]


# --- data in parts ------------------------------------------------------------------------


def test_minibatch_is_refused():
    observed = pm.Minibatch(ROWS, batch_size=5)
    with pm.Model() as model:
        assert_refused(
            lambda: dps.DPMixture("x", 1.0, dps.DiagNormal.from_data(ROWS), observed=observed),
            "observed",
        )
    assert not model.named_vars


# --- models that are not concerned --------------------------------------------------------


def test_models_without_a_mixture_are_fitted(plain):
    exact = 8.0 / 9.0
    found = map_of(plain)["posterior"]["mu"]
    np.testing.assert_allclose(found.to_numpy().ravel(), exact, rtol=1e-4)
    draws = pm.sample_smc(
        300,
        model=plain,
        chains=1,
        cores=1,
        random_seed=1,
        progressbar=False,
        compute_convergence_checks=False,
    )["posterior"]["mu"]
    np.testing.assert_allclose(draws.mean(), exact, atol=0.15)
    approximation = pm.fit(50, model=plain, random_seed=1, progressbar=False)
    assert len(approximation.hist) == 50


def test_a_mixture_that_is_fixed_is_not_concerned(model):
    """Nothing is left that only the step of the mixture can move."""
    owned = [rv for rv in model.free_RVs if rv.name.startswith("x_")]
    values = pm.draw(owned, random_seed=1)
    fixed = pm.do(model, dict(zip([rv.name for rv in owned], values, strict=True)))
    with fixed:
        idata = pm.sample(draws=3, tune=3, chains=1, step=pm.Metropolis(fixed.free_RVs), **QUIET)
    assert set(idata["posterior"].data_vars) == {"alpha", "z"}


def test_arguments_reach_pymc(plain):
    """Those of the steps, the sampler by its name, and what is wrong with them."""
    with plain:
        idata = pm.sample(4, tune=2, chains=1, nuts_sampler="pymc", random_seed=1, **QUIET)
        again = pm.sample(
            draws=4, tune=2, chains=1, step=pm.NUTS(), nuts_sampler=None, random_seed=1, **QUIET
        )
    assert idata["posterior"]["mu"].shape == again["posterior"]["mu"].shape == (1, 4)
    with pytest.raises(ValueError, match="differentiable"):
        pm.sample(model=plain, step=pm.Slice(model=plain), nuts_sampler="numpyro", **QUIET)
    with pytest.raises(TypeError, match="No model on context stack"):
        pm.sample()


def test_signatures_are_as_before():
    for function in (pm.sample, mcmc.sample, pm.find_MAP, pm.fit, pm.sample_smc):
        assert inspect.signature(function).parameters.keys() >= {"model"}
    assert pickle.loads(pickle.dumps(pm.sample)) is mcmc.sample is pm.sampling.sample
    assert pm.sample.__doc__ == inspect.unwrap(pm.sample).__doc__


def test_install_twice_wraps_once():
    places = [(module, "modelcontext") for module in (starting, smc, opvi)]
    places += [(mcmc, "assign_step_methods"), (mcmc, "sample"), (pm, "sample")]
    before = [getattr(module, name) for module, name in places]
    wrapped_functions.install()
    assert [getattr(module, name) for module, name in places] == before
    for (_, name), function in zip(places, before, strict=True):
        n_wrappers = {"sample": 2, "assign_step_methods": 4, "modelcontext": 1}[name]
        for _ in range(n_wrappers):
            function = function.__wrapped__
        assert not hasattr(function, "__wrapped__")
