"""What users do to models and traces: each leaves the mixture what it is, in values."""

import copy
import re

import arviz as az
import numpy as np
import pymc as pm
import pytest
from pymc.distributions.transforms import logodds
from pymc.model.fgraph import clone_model
from pymc.model.transform.conditioning import change_value_transforms, remove_value_transforms
from pymc.model.transform.optimization import freeze_dims_and_data
from scipy import integrate, stats
from scipy.special import logsumexp

import pymc_dpsplit as dps
from tests.support.partitions import crp_n_clusters
from tests.support.statistics import LEVEL, count_test

N_OBS = 20
ROWS = np.random.default_rng(6).normal(size=(N_OBS, 2)) + np.repeat([[-3.0], [3.0]], 10, axis=0)
SCALARS = ROWS[:, 0]
NORMAL = dps.Normal(mu0=0.3, kappa0=0.2, a0=2.0, b0=1.5)
OWNED = ("n_clusters", "new_weight", "weights", "mu", "cov")
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}


def vectors(alpha=None, name=""):
    """A mixture of vectors, with dimensions; its alpha is given or sampled."""
    coords = {"obs_id": [f"row {i}" for i in range(N_OBS)], "feature": ["a", "b"]}
    with pm.Model(coords=coords, name=name) as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        data = pm.Data("rows", ROWS, dims=("obs_id", "feature"))
        component = dps.MvNormal.from_data(ROWS)
        dps.DPMixture("x", concentration, component, observed=data, dims=("obs_id", "feature"))
    return model


def scalars(alpha=None):
    """A mixture of scalars, of which the predictive law has a closed form."""
    with pm.Model(coords={"obs_id": range(N_OBS)}) as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        data = pm.Data("rows", SCALARS, dims="obs_id")
        dps.DPMixture("x", concentration, NORMAL, observed=data, dims="obs_id")
    return model


def sampled(model, **arguments):
    defaults = {"draws": 10, "tune": 10, "chains": 2, "cores": 1, "random_seed": 2}
    with model:
        return pm.sample(**{**defaults, **QUIET, **arguments})


def assert_same_draws(idata, expected, prefix=""):
    """Identical but for the rounding of what is recorded through a transform."""
    assert expected.data_vars
    for name, values in expected.items():
        np.testing.assert_allclose(idata["posterior"][prefix + name], values, rtol=1e-12)


@pytest.fixture(scope="module")
def free():
    """Draws of the model of vectors with alpha sampled."""
    return sampled(vectors())


@pytest.fixture(scope="module")
def fixed():
    """Posterior of the model of vectors with alpha = 0.7."""
    return sampled(vectors(0.7))["posterior"].to_dataset()


@pytest.fixture(scope="module")
def long_run():
    """Many draws of the model of scalars."""
    model = scalars()
    return model, sampled(model, draws=1000, tune=100)


# --- dimensions and names -----------------------------------------------------------------


def test_every_dimension_has_its_coordinates(free):
    posterior = free["posterior"]
    sample = ("chain", "draw")
    dims = {
        "alpha": (),
        "x_n_clusters": (),
        "x_new_weight": (),
        "x_weights": ("x_cluster",),
        "x_mu": ("x_cluster", "feature"),
        "x_cov": ("x_cluster", "feature", "feature_bis"),
    }
    assert {name: values.dims for name, values in posterior.items()} == {
        name: sample + rest for name, rest in dims.items()
    }
    labels = {"x_cluster": list(range(N_OBS)), "feature": ["a", "b"], "feature_bis": ["a", "b"]}
    for dim, expected in labels.items():
        assert posterior[dim].to_numpy().tolist() == expected
    assert free["observed_data"]["x"].dims == ("obs_id", "feature")
    assert free["observed_data"]["obs_id"].to_numpy()[[0, -1]].tolist() == ["row 0", "row 19"]
    np.testing.assert_array_equal(free["observed_data"]["x"], ROWS)


@pytest.mark.slow
def test_names_within_a_named_model(fixed):
    model = vectors(0.7, name="sub")
    idata = sampled(model, draws=10)
    assert_same_draws(idata, fixed, prefix="sub::")
    assert idata["posterior"]["sub::x_mu"].dims[2] == "sub::x_cluster"
    assert "sub::x_log_joint" in idata["sample_stats"]
    assert dps.sample_labels(idata, model=model, random_seed=1).shape == (2, 10, N_OBS)


def test_graph_names_nodes_and_plates():
    source = vectors().to_graphviz().source
    owned = {f"x_{role}" for role in OWNED}
    edges = set(re.findall(r"^\s*(\w+) -> (\w+)$", source, flags=re.MULTILINE))
    assert edges >= {("alpha", name) for name in owned} | {(name, "x") for name in owned}
    assert ("x", "rows") in edges
    assert {node for edge in edges for node in edge} == {"alpha", "x", "rows", *owned}
    plates = re.findall(r'subgraph "cluster([^"]+)"', source)
    assert set(plates) == {
        "obs_id (20) x feature (2)",
        "x_cluster (20)",
        "x_cluster (20) x feature (2)",
        "x_cluster (20) x feature (2) x feature_bis (2)",
    }


def test_model_as_text_names_every_variable():
    model = vectors()
    plain = {line.split()[0]: line.split()[2] for line in str(model.str_repr()).splitlines()}
    assert plain["alpha"].startswith("Gamma")
    assert plain["x"].startswith("DPMixture")
    assert all(plain[f"x_{role}"].startswith("DPMeasure") for role in OWNED)
    latex = model.str_repr("latex")
    assert r"\text{x\_mu} &\sim" in latex
    assert r"\operatorname{DPMixture}" in latex


# --- other forms of one model -------------------------------------------------------------

COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "method": lambda model: model.copy(),
    "clone": clone_model,
    "frozen": freeze_dims_and_data,
}


@pytest.mark.slow
@pytest.mark.parametrize("form", COPIES)
def test_copies_give_the_draws_of_the_model(form, free):
    model = COPIES[form](vectors())
    assert_same_draws(sampled(model), free["posterior"].to_dataset())


ALPHA_FIXED = {
    "do": lambda: pm.do(vectors(), {"alpha": 0.7}),
    "observe": lambda: pm.observe(vectors(), {"alpha": 0.7}),
    "do above": lambda: pm.do(vectors_below("half"), {"half": 0.35}),
}


def vectors_below(name):
    with pm.Model() as model:
        half = pm.HalfNormal(name)
        component = dps.MvNormal.from_data(ROWS)
        dps.DPMixture("x", 2.0 * half, component, observed=ROWS)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("way", ALPHA_FIXED)
def test_alpha_that_is_fixed_afterwards(way, fixed):
    """As by a number at the declaration."""
    idata = sampled(ALPHA_FIXED[way]())
    assert "alpha" not in idata["posterior"]
    assert_same_draws(idata, fixed)


@pytest.mark.control
def test_another_alpha_gives_other_draws(fixed):
    idata = sampled(pm.do(vectors(), {"alpha": 0.8}))
    with pytest.raises(AssertionError):
        assert_same_draws(idata, fixed)


TRANSFORMS = {
    "removed": remove_value_transforms,
    "removed from one": lambda model: remove_value_transforms(model, [model["x_new_weight"]]),
}


@pytest.mark.parametrize("change", TRANSFORMS)
def test_transforms_do_not_change_the_draws(change, fixed):
    idata = sampled(TRANSFORMS[change](vectors(0.7)))
    for name in fixed.data_vars:
        np.testing.assert_allclose(idata["posterior"][name], fixed[name], rtol=1e-9)


def test_transform_of_another_kind_is_heeded_or_refused(fixed):
    model = change_value_transforms(vectors(0.7), {"x_new_weight": logodds})
    try:
        posterior = sampled(model)["posterior"]
    except ValueError as error:
        refusal = str(error)
    else:
        for name in fixed.data_vars:
            np.testing.assert_allclose(posterior[name], fixed[name], rtol=1e-9)
        return
    assert re.match(r"^x: .*x_new_weight[^\n]*; .*\.$", refusal)


@pytest.mark.slow
def test_transform_of_alpha_is_removed():
    model = remove_value_transforms(vectors())
    idata = sampled(model, draws=200, tune=200)
    alpha = idata["posterior"]["alpha"]
    assert ((alpha > 0) & (alpha < 10)).all()
    total = idata["posterior"]["x_weights"].sum("x_cluster") + idata["posterior"]["x_new_weight"]
    np.testing.assert_allclose(total, 1.0)


# --- forward draws ------------------------------------------------------------------------


def n_clusters_law(density):
    """Law of K of 20 observations when alpha has a density; shape (21,)."""
    grid = np.linspace(1e-6, 8.0, 4001)
    laws = np.array([crp_n_clusters(alpha, N_OBS) for alpha in grid])
    law = integrate.trapezoid(density(grid)[:, None] * laws, grid, axis=0)
    return law / law.sum()


def prior_n_clusters(model):
    with model:
        prior = pm.sample_prior_predictive(4000, random_seed=3)
    assert prior["prior_predictive"]["x"].shape == (1, 4000, N_OBS)
    return prior["prior"]["x_n_clusters"].to_numpy()


@pytest.mark.slow
def test_prior_predictive_with_alpha_sampled():
    law = n_clusters_law(stats.gamma(2, scale=1 / 4).pdf)
    draws = prior_n_clusters(scalars())
    assert count_test(draws, law) > LEVEL
    # What the test can see: alpha at its mean, and a slightly different prior.
    assert count_test(draws, crp_n_clusters(0.5, N_OBS)) < LEVEL
    assert count_test(draws, n_clusters_law(stats.gamma(2, scale=1 / 3).pdf)) < LEVEL


@pytest.mark.slow
def test_prior_predictive_with_alpha_fixed_afterwards():
    draws = prior_n_clusters(pm.do(scalars(), {"alpha": 2.5}))
    assert count_test(draws, crp_n_clusters(2.5, N_OBS)) > LEVEL
    assert count_test(draws, crp_n_clusters(2.2, N_OBS)) < LEVEL  # what the test can see


@pytest.mark.slow
def test_draws_of_the_mixture_and_its_parameters():
    model = vectors()
    names = ["x", "x_n_clusters", "x_weights", "x_mu", "x_cov"]
    drawn = dict(zip(names, pm.draw([model[n] for n in names], 30, random_seed=4), strict=True))
    again = pm.draw([model[n] for n in names], 30, random_seed=4)
    shapes = [(N_OBS, 2), (), (N_OBS,), (N_OBS, 2), (N_OBS, 2, 2)]
    for (name, values), other, shape in zip(drawn.items(), again, shapes, strict=True):
        assert values.shape == (30, *shape), name
        np.testing.assert_array_equal(values, other)
    assert np.isfinite(drawn["x"]).all()
    assert (np.isfinite(drawn["x_mu"][..., 0]).sum(1) == drawn["x_n_clusters"]).all()


def mixture_of(idata, widen=1.0):
    """Weights and laws of every draw: arrays (draws, clusters), and the weight of the rest."""
    flat = idata["posterior"].to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    weights = flat["x_weights"].to_numpy()
    in_use = weights > 0
    mu = np.where(in_use, flat["x_mu"], 0.0)
    sigma = np.where(in_use, flat["x_sigma"], 1.0) * widen
    return weights, stats.norm(mu[:, None], sigma[:, None]), flat["x_new_weight"].to_numpy()


# A new cluster's observation: Student's t, by the base measure of NORMAL.
FRESH = stats.t(4.0, 0.3, np.sqrt(1.5 / 2.0 * 1.2 / 0.2))


def predictive_p_value(x, idata, widen=1.0):
    """P-value that row r of x (draws,) was drawn from the mixture of draw r."""
    weights, laws, rest = mixture_of(idata, widen)
    below = (weights * laws.cdf(x[:, None, None])[:, 0]).sum(1) + rest * FRESH.cdf(x)
    return stats.kstest(below, "uniform").pvalue


@pytest.mark.slow
def test_prediction_of_new_rows(long_run):
    """Their number, coordinates and law; the trace is not touched."""
    model, idata = long_run
    model = copy.copy(model)
    with model:
        pm.set_data({"rows": np.zeros(3)}, coords={"obs_id": ["p", "q", "r"]})
        predicted = pm.sample_posterior_predictive(
            idata, random_seed=5, progressbar=False, predictions=True
        )["predictions"]["x"]
    assert predicted.dims == ("chain", "draw", "obs_id")
    assert predicted["obs_id"].to_numpy().tolist() == ["p", "q", "r"]
    for row in predicted.transpose("obs_id", ...).to_numpy():
        assert predictive_p_value(row.ravel(), idata) > LEVEL
    assert predictive_p_value(row.ravel(), idata, widen=2.0) < LEVEL  # what the test can see


# --- densities ----------------------------------------------------------------------------


def log_density(x, idata):
    """Of every row (n,) under every draw: shape (draws, n)."""
    weights, laws, rest = mixture_of(idata)
    with np.errstate(divide="ignore"):
        terms = np.log(weights)[:, None] + laws.logpdf(x[:, None])
        fresh = np.log(rest)[:, None] + FRESH.logpdf(x)
    return logsumexp(np.concatenate([terms, fresh[..., None]], axis=2), axis=2)


@pytest.mark.slow
def test_log_likelihood_and_loo(long_run):
    model, idata = long_run
    idata = idata.copy()
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    values = idata["log_likelihood"]["x"]
    assert values.dims == ("chain", "draw", "obs_id")
    flat = values.to_numpy().reshape(-1, N_OBS)
    np.testing.assert_allclose(flat, log_density(SCALARS, idata), rtol=1e-9)
    loo = az.loo(idata)
    lppd = (logsumexp(flat, axis=0) - np.log(len(flat))).sum()
    assert loo.n_data_points == N_OBS
    assert 0 < lppd - loo.elpd < 10
    np.testing.assert_allclose(loo.p, lppd - loo.elpd)


@pytest.mark.slow
def test_log_likelihood_of_new_rows(long_run):
    model, idata = long_run
    model, idata = copy.copy(model), idata.copy()
    new = np.array([-40.0, 0.5])
    with model:
        pm.set_data({"rows": new}, coords={"obs_id": [100, 101]})
        pm.compute_log_likelihood(idata, progressbar=False)
    values = idata["log_likelihood"]["x"]
    assert values["obs_id"].to_numpy().tolist() == [100, 101]
    np.testing.assert_allclose(values.to_numpy().reshape(-1, 2), log_density(new, idata), rtol=1e-9)


# --- files --------------------------------------------------------------------------------


def test_trace_comes_back_from_a_file(free, tmp_path):
    """Not-a-number and all; what is computed from it is the same."""
    free.to_netcdf(tmp_path / "trace.nc")
    loaded = az.from_netcdf(tmp_path / "trace.nc")
    assert set(loaded.children) == set(free.children)
    for group in free.children:
        for name, values in free[group].data_vars.items():
            np.testing.assert_array_equal(loaded[group][name], values)
            assert loaded[group][name].dims == values.dims
            assert loaded[group][name].dtype == values.dtype
    model = vectors()
    predictions, labels = [], []
    for idata in (free, loaded):
        with model:
            predicted = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
        predictions.append(predicted["posterior_predictive"]["x"])
        labels.append(dps.sample_labels(idata, model=model, random_seed=1))
    assert predictions[0].equals(predictions[1])
    assert labels[0].equals(labels[1])
