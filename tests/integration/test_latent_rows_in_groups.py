"""Latent rows in groups in models: names, draws, predictions, and what reads their traces."""

import arviz as az
import cloudpickle
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
from pymc.model.fgraph import clone_model
from pymc.model.transform.optimization import freeze_dims_and_data

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical_model.lookup import find_hierarchical
from pymc_dpsplit.variables import row_likelihood

N_SUBJECTS = 9
SUBJECTS = [f"s{i}" for i in range(N_SUBJECTS)]
CLINICS = np.array(["b", "a", "b", "a", "b", "c", "a", "b", "c"])
INDEX = np.repeat(np.arange(N_SUBJECTS), 2)
TRUTH = np.where(np.arange(N_SUBJECTS) % 2, -4.0, 4.0)
Y = TRUTH[INDEX] + np.random.default_rng(2).normal(size=2 * N_SUBJECTS)
SCALARS = dps.Normal(0.0, 0.1, 2.0, 1.0)
PARTITION = np.arange(N_SUBJECTS) % 2


def declared(name: str = "", **arguments) -> pm.Model:
    """Subjects in clinics with effects from a mixture, each seen twice."""
    with pm.Model(coords={"subject": SUBJECTS}, name=name) as model:
        given = {"groups": CLINICS, "dims": "subject", "group_dim": "clinic"} | arguments
        component, alpha = given.pop("component", SCALARS), pm.Gamma("alpha", 4, 2)
        gamma = given.pop("gamma") if "gamma" in given else pm.Gamma("gamma", 4, 3)
        b = dps.HDPMixture("b", alpha, gamma, component, **given)
        index, y = pm.Data("index", INDEX), pm.Data("values", Y)
        pm.Normal("y", b[index], 1.0, observed=y)
    return model


def one_run(model: pm.Model, **options):
    defaults = {"draws": 40, "tune": 30, "chains": 2, "cores": 1, "random_seed": 3}
    quiet = {"progressbar": False, "compute_convergence_checks": False}
    with model:
        return pm.sample(**{**defaults, **quiet, **options})


@pytest.fixture(scope="module")
def sampled():
    model = declared()
    return model, one_run(model)


# --- declaration ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dims": None}, "b: observed is missing; pass observed=, or dims= or shape="),
        ({"dims": "patient"}, "b: dims=.* names 'patient', which is not a dimension"),
        ({"dims": None, "shape": (3, 2)}, r"b: shape=\(3, 2\) does not suit a latent mixture of"),
        ({"dims": None, "shape": 4}, r"b: groups has shape \(9,\), but b has 4 rows; give one id"),
        ({"groups": None}, "b: groups=None is no array of ids; give one for each row"),
        ({"shape": 9, "observed": TRUTH}, "b: shape=9 is given beside observed, which has a shape"),
        (
            {"component": dps.Poisson(2.0, 1.0)},
            "b: observed is missing, and rows of Poisson cannot be latent, as no step moves whole",
        ),
        ({"group_dim": "subject"}, "b: groups holds 'b', which is not in the coordinate 'subject'"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        declared(**arguments)


def test_name_of_labels_that_is_taken_is_refused():
    with pm.Model():
        pm.Normal("b_labels")
        with pytest.raises(ValueError, match="b: name='b' is taken: the model already has a v"):
            dps.HDPMixture("b", 1.0, 1.0, SCALARS, groups=CLINICS, shape=N_SUBJECTS)


def test_shapes_and_names():
    model = declared(dims=None, shape=N_SUBJECTS)
    assert model["b"].type.shape == (N_SUBJECTS,)
    model = declared()
    assert model.named_vars_to_dims["b"] == ("subject",)
    assert model.named_vars_to_dims["b_labels"] == ("subject",)
    assert model.named_vars_to_dims["b_groups"] == ("subject",)
    assert model.coords["clinic"] == ("a", "b", "c")
    assert "b ~ HDPMixture(b_labels, b_n_clusters, b_mu, b_sigma)" in str(model.str_repr())


def test_what_depends_on_the_measure_is_refused():
    with declared() as model:
        pm.Potential("bonus", 2.0 * model["b_mu"][0])
        with pytest.raises(ValueError, match="bonus depends on b_mu, but the mixture b is sampled"):
            dps.HDPMixtureStep()


# --- draws ----------------------------------------------------------------------------------


def assert_labels_agree(drawn) -> None:
    """Labels number the clusters as the rows of weights and parameters do, and use all."""
    weights = drawn["b_weights"].to_numpy().reshape(-1, drawn.sizes["b_cluster"])
    labels = drawn["b_labels"].to_numpy().reshape(len(weights), -1)
    counts = drawn["b_n_clusters"].to_numpy().ravel()
    for own, n_clusters, weight in zip(labels, counts, weights, strict=True):
        assert set(own) == set(range(n_clusters))
        assert (weight[:n_clusters] > 0).all()
        assert not weight[n_clusters:].any()


@pytest.mark.slow
def test_trace_holds_what_the_model_says(sampled):
    _, idata = sampled
    draws, found = idata.posterior, idata.sample_stats
    roles = ("n_clusters", "n_tables", "new_weight", "weights", "mu", "sigma", "labels")
    assert set(draws.data_vars) == {"alpha", "gamma", "b", *(f"b_{role}" for role in roles)}
    assert draws["b"].dims == draws["b_labels"].dims == ("chain", "draw", "subject")
    assert_labels_agree(draws.to_dataset())
    assert "b_labels" not in found
    assert (draws["b_n_clusters"] == found["b_occupied"]).all()
    assert int(found["b_exchanged"].sum()) > 0
    assert list(idata.constant_data["clinic"]) == ["a", "b", "c"]


@pytest.mark.slow
def test_draws_without_exchanges_and_by_slices(sampled):
    model, _ = sampled
    options = {"exchanges": 0, "kernel": "slices", "keep_labels": True}
    idata = one_run(model, hdp=options)
    assert not idata.sample_stats["b_exchanged"].any()
    assert np.array_equal(idata.sample_stats["b_labels"], idata.posterior["b_labels"])
    assert (idata.posterior["b"].std(("chain", "draw")) > 0).all()
    with model, pytest.raises(ValueError, match="exchanges=-1 is out of range"):
        dps.HDPMixtureStep(exchanges=-1)


@pytest.mark.slow
def test_latent_vectors():
    coords = {"subject": SUBJECTS, "effect": ["level", "slope"]}
    with pm.Model(coords=coords) as model:
        component = dps.DiagNormal(0.0, 0.1, 2.0, 1.0)
        given = {"groups": CLINICS, "dims": ("subject", "effect")}
        b = dps.HDPMixture("b", 1.0, 1.0, component, **given)
        slope = b[INDEX, 1] * np.linspace(-1, 1, len(Y))
        pm.Normal("y", b[INDEX, 0] + slope, 1.0, observed=Y)
        (mixture,) = find_hierarchical(model).values()
        assert row_likelihood(mixture.as_mixture, model, model.initial_point()) is not None
    idata = one_run(model)
    assert idata.posterior["b"].dims[2:] == ("subject", "effect")
    assert idata.posterior["b_mu"].dims[2:] == ("b_cluster", "effect")
    assert_labels_agree(idata.posterior.to_dataset())


@pytest.mark.slow
def test_variable_in_the_density_of_a_row():
    with pm.Model() as model:
        component = dps.NormalKnownSigma(0.0, 4.0, pm.HalfNormal("sigma"))
        b = dps.HDPMixture("b", 1.0, 1.0, component, groups=CLINICS, shape=N_SUBJECTS)
        pm.Normal("y", b[INDEX], 1.0, observed=Y)
    idata = one_run(model)
    assert float(idata.posterior["sigma"].std()) > 0
    assert_labels_agree(idata.posterior.to_dataset())


FEW = {"draws": 4, "tune": 4}


@pytest.fixture(scope="module")
def with_known_gamma():
    """NUTS moves variables in the order of the model, which a copy does not keep.

    Draws are few, as last digits differ between graphs, and later draws depend on them.
    """
    model = declared(gamma=1.0)
    return model, one_run(model, **FEW)


CLONES = {
    "clone": clone_model,
    "frozen": freeze_dims_and_data,
    "pickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", CLONES)
def test_copies_and_seeds_give_the_same_draws(form, with_known_gamma):
    model, idata = with_known_gamma
    again = one_run(CLONES[form](model), **FEW)
    for name in ("b", "b_weights", "b_n_tables", "alpha"):
        np.testing.assert_allclose(again.posterior[name], idata.posterior[name], rtol=1e-9)


@pytest.mark.slow
def test_run_with_a_checkpoint_has_the_same_draws(sampled, tmp_path):
    model, idata = sampled
    with model:
        kept = one_run(model, step=dps.Checkpoint(tmp_path / "run"))
        again = one_run(model, step=dps.Checkpoint(tmp_path / "run"))
    for name in ("b", "b_weights", "b_n_tables", "alpha"):
        assert np.array_equal(idata.posterior[name], kept.posterior[name])
        assert np.array_equal(idata.posterior[name], again.posterior[name])


@pytest.mark.slow
def test_chains_go_on_from_a_trace(sampled):
    model, idata = sampled
    quiet = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
    found = dps.extend(idata, model, draws=5, tune=4, random_seed=1, **quiet)
    assert found.posterior["b"].shape == (2, 45, N_SUBJECTS)
    assert_labels_agree(found.posterior.to_dataset())


SHORT = {"draws": 1, "tune": 0, "chains": 1, "hdp": {"exchanges": 0}}
INITVALS = {
    "labels": {"b_labels": np.arange(N_SUBJECTS) % 3},
    "number": {"b_n_clusters": 5},
    "values": {"b": TRUTH},
}


@pytest.mark.slow
@pytest.mark.parametrize("given", INITVALS)
def test_initial_values(given, sampled):
    model, _ = sampled
    assert_labels_agree(one_run(model, initvals=INITVALS[given], **SHORT).posterior.to_dataset())


def test_initial_labels_out_of_range_are_refused():
    model = declared()
    point = {**model.initial_point(), "b_labels": np.full(N_SUBJECTS, 99, np.int16)}
    with model, pytest.raises(ValueError, match="b: initvals holds labels 99 to 99; give labels"):
        dps.HDPMixtureStep(initial_point=point)


@pytest.mark.slow
def test_values_that_are_observed_leave_labels(sampled):
    """A latent variable that is observed after all: labels stay variables."""
    model, _ = sampled
    observed = pm.observe(model, {"b": TRUTH})
    idata = one_run(observed)
    assert "b" not in idata.posterior
    labels = dps.sample_labels(idata, model=observed)
    np.testing.assert_array_equal(labels, idata.posterior["b_labels"])
    assert float((labels[..., 0] == labels[..., 2]).mean()) > 0.5


@pytest.mark.slow
def test_within_a_named_model():
    idata = one_run(declared(name="sub"))
    assert idata.posterior["sub::b_labels"].dims[2] == "subject"
    assert dps.diagnose(idata).var_name == "sub::b"


# --- prior and posterior predictive ---------------------------------------------------------


def test_prior_values_are_those_of_their_clusters():
    """Standardised by the parameters that their labels name, they are standard normal."""
    with declared():
        prior = pm.sample_prior_predictive(600, random_seed=1)["prior"].to_dataset()
    assert_labels_agree(prior)
    drawn = prior.isel(chain=0)
    labels = drawn["b_labels"].to_numpy()
    mu, sigma = (
        np.take_along_axis(drawn[f"b_{of}"].to_numpy(), labels, axis=1) for of in ("mu", "sigma")
    )
    z = (drawn["b"].to_numpy() - mu) / sigma
    error = 1 / np.sqrt(z.size)
    assert abs(z.mean()) < 5 * error
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2) * error


@pytest.mark.slow
def test_observations_are_predicted_from_the_values_drawn(sampled):
    model, idata = sampled
    with model:
        pm.set_data({"index": [8, 0], "values": [0.0, 0.0]})
        try:
            found = pm.sample_posterior_predictive(
                idata, predictions=True, progressbar=False, random_seed=3
            )
        finally:
            pm.set_data({"index": INDEX, "values": Y})
    gap = found["predictions"]["y"].to_numpy() - idata.posterior["b"].to_numpy()[..., [8, 0]]
    assert gap.shape == (2, 40, 2)
    assert abs(gap.mean()) < 5 / np.sqrt(gap.size)


@pytest.mark.slow
def test_rows_are_drawn_anew_given_their_labels(sampled):
    model, idata = sampled
    asked = {"sample_vars": ["b"], "var_names": ["b"], "progressbar": False, "random_seed": 3}
    with model:
        found = pm.sample_posterior_predictive(idata, predictions=True, **asked)["predictions"]
    labels = idata.posterior["b_labels"].to_numpy()
    mu, sigma = (
        np.take_along_axis(idata.posterior[f"b_{of}"].to_numpy(), labels, axis=2)
        for of in ("mu", "sigma")
    )
    z = (found["b"].to_numpy() - mu) / sigma
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / z.size)
    more = declared()
    with more:
        more.set_dim("subject", 12, coord_values=range(12))
        pm.set_data({"index": np.arange(12), "values": np.zeros(12)})
        with pytest.raises(ValueError, match="b is to be drawn with 12 rows, but groups= names"):
            pm.sample_posterior_predictive(idata, predictions=True, **asked)


# --- reading the trace ----------------------------------------------------------------------


@pytest.mark.slow
def test_trace_from_disk_is_read(sampled, tmp_path):
    model, idata = sampled
    idata.to_netcdf(tmp_path / "trace.nc")
    stored = az.from_netcdf(tmp_path / "trace.nc")
    labels = dps.sample_labels(stored, model=model)
    np.testing.assert_array_equal(labels, idata.posterior["b_labels"])
    assert dps.similarity_matrix(labels).dims == ("subject", "subject_bis")
    point = dps.point_partition(stored, model=model, random_seed=1).partition
    assert point["subject"].to_numpy().tolist() == SUBJECTS


@pytest.mark.slow
def test_groups_of_the_trace_are_read(sampled):
    model, idata = sampled
    found = dps.group_weights(idata, PARTITION, model=model, random_seed=1)
    total = found["weight"].sum("b_reference_cluster") + found["new_weight"]
    assert np.allclose(total.sel(statistic="mean"), 1.0)
    assert found["weight"].dims[:2] == ("clinic", "b_reference_cluster")
    new = [4.0, -4.0, 4.0]
    found = dps.predict(idata, new, model=model, groups=["a", "b", "z"], partition=PARTITION)
    assert np.isfinite(found["log_predictive_density"]).all()
    described = dps.describe_clusters(idata, PARTITION, model=model).to_dataset()
    mean = described["mu"].sel(statistic="mean").to_numpy()
    assert mean[0] > 0 > mean[1]
    low = dps.density(idata, group="a", grid=[-4.0, 4.0])["density"].sel(statistic="mean")
    assert np.isfinite(low).all()


@pytest.mark.slow
def test_diagnosis_and_figures(sampled):
    model, idata = sampled
    found = dps.diagnose(idata, model=model)
    quantities = set(found.table["quantity"].values)
    assert {"alpha", "gamma", "b_n_clusters", "b_n_tables", "b_log_joint"} <= quantities
    assert not any("labels" in name or "weights" in name for name in quantities)
    assert dps.plot_density(idata, group="a").get_xlabel() == "b"
    assert dps.plot_clusters(idata, partition=PARTITION, model=model)
    assert dps.plot_trace(idata) is not None
    plt.close("all")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # 80 draws
def test_cross_validation(sampled):
    model, idata = sampled
    with pytest.raises(ValueError, match="b is latent and has no observations of its own; use"):
        dps.loo(idata, model=model)
    found = dps.loo_groups(idata, model=model)
    assert found.elpd_i["subject"].to_numpy().tolist() == SUBJECTS
    assert np.isfinite(found.elpd_i).all()
    with model:
        likelihood = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    assert list(likelihood.data_vars) == ["y"]


def test_point_estimates_refuse_latent_rows():
    model = declared()
    with pytest.raises(ValueError, match="b is latent, and find_map needs complete observations"):
        dps.find_map(model)
    with pytest.raises(ValueError, match="b is an HDPMixture, which smc does not take; sample"):
        dps.smc(model)


def test_groups_in_shared_data_may_not_change():
    with pm.Model() as model:
        clinic = pm.Data("clinics", np.arange(N_SUBJECTS) % 3)
        dps.HDPMixture("b", 1.0, 1.0, SCALARS, groups=clinic, shape=N_SUBJECTS)
        pm.set_data({"clinics": np.zeros(N_SUBJECTS, int)})
        with pytest.raises(ValueError, match="b: groups=clinics has other values than when b was"):
            dps.HDPMixtureStep(model=model)
