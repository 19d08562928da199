"""Latent mixtures in models: names, draws, predictions, and everything that is done to models."""

import logging

import arviz as az
import cloudpickle
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.model.fgraph import clone_model
from pymc.model.transform.optimization import freeze_dims_and_data

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures, row_likelihood
from tests.integration.test_reproducibility import OPTIONS
from tests.support.partitions import crp_n_clusters
from tests.support.statistics import LEVEL, count_test

N_GROUPS = 10
GROUPS = [f"g{i}" for i in range(N_GROUPS)]
INDEX = np.repeat(np.arange(N_GROUPS), 2)
TRUTH = np.where(np.arange(N_GROUPS) < 5, -4.0, 4.0)
Y = TRUTH[INDEX] + np.random.default_rng(2).normal(size=2 * N_GROUPS)
SCALARS = dps.Normal(0.0, 0.1, 2.0, 1.0)
VECTORS = dps.MvNormal([0.0, 0.0], 0.1, 5.0, np.eye(2))
N_DRAWS = 12


def declared(alpha=None, name=""):
    """Groups with true values from a mixture, each seen twice."""
    with pm.Model(coords={"group": GROUPS}, name=name) as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        b = dps.DPMixture("b", concentration, SCALARS, dims="group")
        index, y = pm.Data("index", INDEX), pm.Data("values", Y)
        pm.Deterministic("twice", 2.0 * b, dims="group")
        pm.Normal("y", b[index], 1.0, observed=y)
    return model


def sampled(model, **arguments):
    defaults = {"draws": N_DRAWS, "tune": 12, "chains": 2, "cores": 1, "random_seed": 5}
    with model:
        return pm.sample(**{**defaults, **OPTIONS, **arguments})


def predicted(model, idata, **arguments):
    with model:
        found = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=3, **arguments)
    return found["predictions" if arguments.get("predictions") else "posterior_predictive"]


@pytest.fixture(scope="module")
def model():
    return declared()


@pytest.fixture(scope="module")
def idata(model):
    return sampled(model)


@pytest.fixture(scope="module")
def prior(model):
    with model:
        return pm.sample_prior_predictive(1000, random_seed=1)["prior"].to_dataset()


# --- what is in the posterior -------------------------------------------------------------


@pytest.mark.slow
def test_variables_dims_and_types(idata):
    by_cluster = {f"b_{role}": ("b_cluster",) for role in ("weights", "mu", "sigma")}
    by_group = dict.fromkeys(("b", "b_labels", "twice"), ("group",))
    scalars = dict.fromkeys(("alpha", "b_n_clusters", "b_new_weight"), ())
    expected = by_cluster | by_group | scalars
    posterior = idata["posterior"]
    found = {name: values.dims for name, values in posterior.items()}
    assert found == {name: ("chain", "draw", *dims) for name, dims in expected.items()}
    assert posterior["group"].to_numpy().tolist() == GROUPS
    integers = {name for name, values in posterior.items() if values.dtype.kind == "i"}
    assert integers == {"b_n_clusters", "b_labels"}
    np.testing.assert_array_equal(posterior["twice"], 2.0 * posterior["b"])


def assert_labels_agree(drawn):
    """Labels number the clusters as the rows of weights and parameters do, and use all."""
    weights = drawn["b_weights"].to_numpy().reshape(-1, drawn.sizes["b_cluster"])
    labels = drawn["b_labels"].to_numpy().reshape(len(weights), -1)
    counts = drawn["b_n_clusters"].to_numpy().ravel()
    for own, n_clusters, weight in zip(labels, counts, weights, strict=True):
        assert set(own) == set(range(n_clusters))
        assert (weight[:n_clusters] > 0).all()
        assert not weight[n_clusters:].any()
        assert (np.diff(weight) <= 0).all()


@pytest.mark.slow
def test_labels_agree_with_everything_else(idata, prior):
    assert_labels_agree(idata["posterior"].to_dataset())
    assert_labels_agree(prior)


@pytest.mark.slow
def test_kept_labels_are_those_of_the_posterior(model):
    idata = sampled(model, dpsplit={"keep_labels": True, "kernel": "collapsed"})
    kept, own = idata["sample_stats"]["b_labels"], idata["posterior"]["b_labels"]
    for one, other in zip(kept.to_numpy()[0], own.to_numpy()[0], strict=True):
        assert len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


@pytest.mark.slow
@pytest.mark.parametrize("component", [VECTORS, dps.DiagNormal(0.0, 0.1, 2.0, 1.0)])
def test_latent_vectors(component):
    coords = {"group": GROUPS, "effect": ["level", "slope"]}
    with pm.Model(coords=coords) as model:
        b = dps.DPMixture("b", 1.0, component, dims=("group", "effect"))
        pm.Normal("y", b[INDEX, 0] + b[INDEX, 1] * np.linspace(-1, 1, len(Y)), 1.0, observed=Y)
        mixture = find_mixtures(model)["b"]
        assert row_likelihood(mixture, model, model.initial_point()) is not None
    idata = sampled(model)
    posterior = idata["posterior"]
    assert posterior["b"].dims[2:] == ("group", "effect")
    assert posterior["b_mu"].dims[2:] == ("b_cluster", "effect")
    assert_labels_agree(posterior.to_dataset())
    assert dps.plot_density(idata, features=("slope", "level")).get_xlabel() == "slope"
    plt.close("all")


def test_shape_in_place_of_dims():
    with pm.Model() as model:
        dps.DPMixture("b", 1.0, SCALARS, shape=7)
        dps.DPMixture("c", 1.0, VECTORS, shape=(np.int64(6), 2))
    assert model["b"].type.shape == (7,)
    assert model["c"].type.shape == (6, 2)
    assert pm.draw(model["c"]).shape == (6, 2)


# --- the prior ----------------------------------------------------------------------------


@pytest.mark.slow
def test_prior_number_of_clusters_follows_the_exact_law(rng):
    model = declared(alpha=1.5)
    draws = pm.draw(model["b_n_clusters"], 4000, random_seed=rng)
    assert count_test(draws[None], crp_n_clusters(1.5, N_GROUPS)) > LEVEL
    assert count_test(draws[None], crp_n_clusters(1.8, N_GROUPS)) < LEVEL  # what it can see


def test_prior_values_are_those_of_their_clusters(prior):
    """Standardised by the parameters that their labels name, they are standard normal."""
    drawn = prior.isel(chain=0)
    labels = drawn["b_labels"].to_numpy()
    mu, sigma = (
        np.take_along_axis(drawn[f"b_{of}"].to_numpy(), labels, axis=1) for of in ("mu", "sigma")
    )
    z = (drawn["b"].to_numpy() - mu) / sigma
    assert np.isfinite(z).all()
    error = 1 / np.sqrt(z.size)
    assert abs(z.mean()) < 5 * error
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2) * error


# --- prediction ---------------------------------------------------------------------------


def test_observations_are_predicted_from_the_values_drawn(model, idata):
    with model:
        pm.set_data({"index": [9, 0], "values": [0.0, 0.0]})
        try:
            y = predicted(model, idata, predictions=True)["y"]
        finally:
            pm.set_data({"index": INDEX, "values": Y})
    assert y.shape == (2, N_DRAWS, 2)
    gap = y.to_numpy() - idata["posterior"]["b"].to_numpy()[..., [9, 0]]
    assert abs(gap.mean()) < 5 / np.sqrt(gap.size)


@pytest.mark.slow
def test_new_groups_are_drawn_from_the_measure():
    model = declared(alpha=1.0)
    idata = sampled(model)
    n_new = 400
    with model:
        model.set_dim("group", n_new, coord_values=range(n_new))
        pm.set_data({"index": np.arange(n_new), "values": np.zeros(n_new)})
    found = predicted(model, idata, sample_vars=["b"], var_names=["b", "y"], predictions=True)
    assert found["b"].dims == ("chain", "draw", "group")
    assert found["b"].shape == found["y"].shape == (2, N_DRAWS, n_new)
    # About the weight of the clusters below zero of them are below zero.
    posterior = idata["posterior"].isel(chain=0, draw=-1)
    below = float(posterior["b_weights"].where(posterior["b_mu"] < 0, 0.0).sum())
    new = float(posterior["b_new_weight"])
    share = float((found["b"].isel(chain=0, draw=-1) < 0).mean())
    assert below - 0.15 < share < below + new + 0.15


def test_likelihood_is_that_of_the_observations(model, idata):
    idata = idata.copy()
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    assert list(idata["log_likelihood"].data_vars) == ["y"]
    b = idata["posterior"]["b"].to_numpy()[..., INDEX]
    expected = -0.5 * (Y - b) ** 2 - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(idata["log_likelihood"]["y"], expected)


# --- what is done to models ---------------------------------------------------------------


CLONES = {
    "clone": clone_model,
    "frozen": freeze_dims_and_data,
    "pickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", CLONES)
def test_copies_give_the_same_draws(form, model, idata):
    again = sampled(CLONES[form](model))
    for name, values in idata["posterior"].items():
        np.testing.assert_allclose(again["posterior"][name], values, rtol=1e-9)


@pytest.mark.slow
def test_within_a_named_model():
    idata = sampled(declared(1.0, name="sub"))
    assert idata["posterior"]["sub::b_labels"].dims[2] == "group"
    assert dps.diagnose(idata).var_name == "sub::b"


def test_model_is_printed_and_drawn(model):
    assert "b ~ DPMixture(b_n_clusters, b_new_weight, b_weights, b_mu, b_sigma)" in str(
        model.str_repr()
    )
    source = model.to_graphviz().source
    assert "b_labels -> b" in source
    assert "b -> y" in source


@pytest.mark.slow
def test_do_on_alpha(model):
    idata = sampled(pm.do(model, {"alpha": 2.0}))
    assert "alpha" not in idata["posterior"]
    assert_labels_agree(idata["posterior"].to_dataset())


@pytest.mark.compiled
def test_observed_values_leave_labels(model):
    """A latent variable that is observed after all: labels stay variables."""
    observed = pm.observe(model, {"b": TRUTH})
    idata = sampled(observed)
    assert "b" not in idata["posterior"]
    labels = dps.sample_labels(idata, model=observed)
    np.testing.assert_array_equal(labels, idata["posterior"]["b_labels"])
    assert float((labels[..., 0] == labels[..., 4]).mean()) > 0.5
    with observed:
        assert dps.plot_density(idata).get_xlabel() == "b"
    plt.close("all")


def test_values_that_are_set_leave_nothing_to_sample(model):
    fixed = pm.do(model, {"b": TRUTH})
    remedy = r"^b: pm\.do has replaced b, given which .*; sample the original model"
    with pytest.raises(ValueError, match=remedy):
        sampled(fixed)


# --- other likelihoods and other mixtures -------------------------------------------------


@pytest.mark.slow
def test_two_likelihoods_and_two_mixtures():
    with pm.Model(coords={"group": GROUPS}) as model:
        alpha = pm.Gamma("alpha", 2, 4)
        b = dps.DPMixture("b", alpha, SCALARS, dims="group")
        s = dps.DPMixture("s", alpha, dps.Normal(0.0, 1.0, 3.0, 0.5), dims="group")
        pm.Normal("y", b[INDEX], pt.exp(s[INDEX]), observed=Y)
        pm.Poisson("count", pt.exp(b / 4), observed=np.arange(N_GROUPS))
    idata = sampled(model)
    for name in ("b", "s"):
        labels = dps.sample_labels(idata, model=model, var_name=name)
        np.testing.assert_array_equal(labels, idata["posterior"][f"{name}_labels"])
    with pytest.raises(ValueError, match=r"give var_name as one of \['b', 's'\]"):
        dps.sample_labels(idata, model=model)


@pytest.mark.slow
def test_values_in_the_mean_of_another_mixture():
    with pm.Model(coords={"group": GROUPS}) as model:
        b = dps.DPMixture("b", 1.0, SCALARS, dims="group")
        dps.DPMixture("x", 1.0, SCALARS, observed=Y - b[INDEX])
        mixture = find_mixtures(model)["b"]
        assert row_likelihood(mixture, model, model.initial_point()) is not None
    idata = sampled(model)
    assert idata["posterior"]["b_labels"].shape[2:] == (N_GROUPS,)
    assert idata["posterior"]["x_labels"].shape[2:] == (2 * N_GROUPS,)
    assert predicted(model, idata)["x"].shape[2:] == (2 * N_GROUPS,)


@pytest.mark.slow
def test_deterministic_of_an_intercept():
    with pm.Model(coords={"group": GROUPS}) as model:
        b0 = pm.Normal("b0")
        pm.Deterministic("shifted", b0 + 1.0)
        b = dps.DPMixture("b", 1.0, SCALARS, dims="group")
        pm.Normal("y", b0 + b[INDEX], 1.0, observed=Y)
    posterior = sampled(model)["posterior"]
    np.testing.assert_allclose(posterior["shifted"], posterior["b0"] + 1.0)


# --- arguments of pm.sample ---------------------------------------------------------------


SHORT = {"draws": 1, "tune": 0, "chains": 1, "dpsplit": {"exchanges": 0}}
INITVALS = {
    "labels": {"b_labels": np.arange(N_GROUPS) % 3},
    "number": {"b_n_clusters": 5},
    "values": {"b": TRUTH},
}


@pytest.mark.slow
@pytest.mark.parametrize("given", INITVALS)
def test_initial_values(given, model):
    posterior = sampled(model, initvals=INITVALS[given], **SHORT)["posterior"]
    assert_labels_agree(posterior.to_dataset())


@pytest.mark.slow
@pytest.mark.parametrize("step", [pm.NUTS, pm.Metropolis, pm.Slice], ids=lambda step: step.__name__)
def test_steps_for_the_values(step, model):
    with model:
        idata = sampled(model, step=[step([model["b"]])])
    assert (idata["posterior"]["b"].std(("chain", "draw")) > 0).all()
    assert_labels_agree(idata["posterior"].to_dataset())


def test_step_for_labels_is_refused(model):
    with model, pytest.raises(ValueError, match="only DPSplitMerge can move"):
        sampled(model, step=[pm.Metropolis([model["b_labels"]])])


@pytest.mark.slow
@pytest.mark.parametrize("names", [["b_labels"], ["b", "alpha"]])
def test_labels_of_a_trace_in_part(names, model):
    idata = sampled(model, var_names=names)
    assert set(idata["posterior"].data_vars) == set(names)
    if "b_labels" in names:
        assert dps.sample_labels(idata, model=model).shape == (2, N_DRAWS, N_GROUPS)
    else:
        with pytest.raises(ValueError, match=r"no b_weights; .* without var_names=\."):
            dps.sample_labels(idata, model=model)


# --- reading the trace --------------------------------------------------------------------


def test_trace_from_disk_is_read(model, idata, tmp_path):
    idata.to_netcdf(tmp_path / "trace.nc")
    stored = az.from_netcdf(tmp_path / "trace.nc")
    labels = dps.sample_labels(stored, model=model)
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels, idata["posterior"]["b_labels"])
    assert labels["group"].to_numpy().tolist() == GROUPS
    similarity = dps.similarity_matrix(labels)
    assert similarity.dims == ("group", "group_bis")
    assert "Mixture b: 2 chains" in str(dps.diagnose(stored))
    assert dps.plot_n_clusters(stored).get_xlabel() == "number of clusters (b)"
    ax = dps.plot_density(stored)
    assert ax.get_xlabel() == "b"
    assert ax.get_legend().get_texts()[0].get_text() == "draws of b"
    plt.close("all")


@pytest.mark.slow
def test_convergence_of_clusters_is_not_judged(model, caplog):
    with caplog.at_level(logging.WARNING):
        sampled(model, draws=100, compute_convergence_checks=True)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "b_labels" not in said
    assert "b_mu" not in said


# --- what is refused ----------------------------------------------------------------------


BAD = {
    "nothing": ({}, "observed is missing; pass observed=, or dims= or shape="),
    "unknown dim": ({"dims": "nope"}, "names 'nope', which is not a dimension"),
    "dim of another kind": ({"dims": 3}, "names 3, which is not a dimension"),
    "two dims": ({"dims": ("group", "group")}, r"give \(N,\)"),
    "two names for one length": ({"shape": 5, "dims": ("group", "b")}, "give one name"),
    "matrix": ({"shape": (3, 3)}, r"shape=\(3, 3\) does not suit a latent mixture of Normal"),
    "float": ({"shape": 3.5}, "shape=3.5"),
    "zero": ({"shape": 0}, "shape=0"),
    "negative": ({"shape": (-2,)}, r"shape=\(-2,\)"),
    "truth": ({"shape": True}, "shape=True"),
    "string": ({"shape": "5"}, "shape='5'"),
    "empty": ({"shape": ()}, r"shape=\(\)"),
    "none": ({"shape": (None,)}, r"shape=\(None,\)"),
    "symbolic": ({"shape": pt.scalar("n")}, "shape=n does not suit"),
    "length": ({"shape": 4, "dims": "group"}, "'group' has length 10"),
    "reserved": ({"shape": 4, "dims": "chain"}, "'chain', which is taken"),
    "vectors": ({"shape": 4, "component": VECTORS}, r"of MvNormal; give \(N, D\)"),
    "hyperparameter": ({"shape": (4, 3), "component": VECTORS}, "mu0"),
    "alpha": ({"shape": 4, "alpha": pm.Gamma.dist(2, 4)}, "alpha holds a distribution"),
    "max_clusters": ({"shape": 4, "max_clusters": 0}, "max_clusters=0"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_one_sentence(fault):
    changes, message = BAD[fault]
    arguments = {"alpha": 1.0, "component": SCALARS, **changes}
    with pm.Model(coords={"group": GROUPS}) as model:
        with pytest.raises(ValueError, match=message) as raised:
            dps.DPMixture("b", **arguments)
        assert not model.named_vars
    text = str(raised.value)
    assert text.startswith("b: ")
    assert text.endswith(".")
    assert "\n" not in text
    assert "; " in text


def test_alpha_that_may_be_negative_is_refused_before_sampling():
    with pm.Model() as model:
        b = dps.DPMixture("b", pm.Normal("alpha", 1.0), SCALARS, shape=5)
        pm.Normal("y", b, observed=np.zeros(5))
    with pytest.raises(ValueError, match=r"b: alpha is -.* prior on the positive numbers"):
        sampled(model)


@pytest.mark.slow
def test_more_clusters_than_rows_is_an_error():
    with pm.Model() as model:
        b = dps.DPMixture("b", 5.0, dps.Normal(0.0, 0.01, 2.0, 0.1), shape=30, max_clusters=3)
        pm.Normal("y", b, 0.01, observed=np.arange(30.0))
        message = "max_clusters=3 rows.*set max_clusters= higher"
        with pytest.raises(ValueError, match=message):
            sampled(model)
        with pytest.raises(ValueError, match=message):
            pm.sample_prior_predictive(20, random_seed=1)
