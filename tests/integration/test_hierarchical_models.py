"""Mixtures of rows in groups in PyMC: declaration, the step, traces and their readers."""

from dataclasses import fields, replace

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.checkpoint.codec import from_arrays, to_arrays

ROWS = np.array([0.1, 5.2, 0.3, -0.2, 5.0, 4.8])
GROUPS = ["b", "a", "b", "b", "a", "c"]
NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)


def declared(**arguments) -> pm.Model:
    with pm.Model(coords=arguments.pop("coords", None)) as model:
        given = {"alpha": 1.0, "gamma": 1.0, "component": NORMAL, "groups": GROUPS}
        given = given | {"observed": ROWS} | arguments
        positional = (given.pop(key) for key in ("alpha", "gamma", "component"))
        dps.HDPMixture("x", *positional, **given)
    return model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"groups": ["a", "b"]}, r"x: groups has shape \(2,\), but observed has 6 rows; give one"),
        ({"groups": [1, 2, np.nan, 1, 1, 2]}, "x: groups has 1 missing id; give every row the id"),
        (
            {"groups": np.array([0.5, 1, 1, 1, 1, 1])},
            "x: groups holds numbers that are not whole; give ids",
        ),
        ({"groups": None}, "x: groups=None is no array of ids; give one for each row"),
        ({"groups": "abcdef"}, "x: groups='abcdef' is no array of ids; give one for each row"),
        (
            {"groups": pd.Series(GROUPS, index=range(1, 7)), "observed": pd.Series(ROWS)},
            "x: groups has another index than observed; give",
        ),
        ({"group_dim": ""}, "x: group_dim='' is not a name; give"),
        ({"group_dim": "x_cluster", "coords": {"x_cluster": "abc"}}, "x: name='x' is taken: the"),
        (
            {"group_dim": "patient", "coords": {"patient": ["a", "b"]}},
            "x: groups holds 'c', which is not in the coordinate 'patient' of the model; add it",
        ),
        ({"alpha": 0.0}, "x: alpha=0.0 must be positive; give"),
        ({"gamma": -1.0}, "x: gamma=-1.0 must be positive; give"),
        ({"alpha": [1.0, 2.0]}, r"x: alpha has shape \(2,\); give a single number"),
        ({"gamma": None}, "x: gamma=None is no concentration; give a positive number"),
        ({"observed": None}, "x: observed is missing; pass observed=, or dims= or shape="),
        ({"observed": []}, "x: observed"),
        ({"component": 3}, "x: component=3 is not a component family; give one of this package"),
        (
            {"component": dps.LinearRegression.from_data(ROWS[1:], covariates=ROWS[1:, None])},
            "x: covariates have 5 rows, but observed has 6; give one row of covariates for each",
        ),
        ({"max_clusters": 0}, "x: max_clusters=0 is not a positive integer; give"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        declared(**arguments)


def test_what_the_step_cannot_treat_is_refused():
    with pytest.raises(ValueError, match="HDPMixture 'x' is declared outside a model; put it"):
        dps.HDPMixture("x", 1.0, 1.0, NORMAL, groups=GROUPS, observed=ROWS)
    with pm.Model():
        slope, sigma = pm.Normal("slope"), pm.HalfNormal("sigma")
        with pytest.raises(ValueError, match="x: observed is data less a mean, which a hier"):
            dps.HDPMixture("x", 1.0, 1.0, NORMAL, groups=GROUPS, observed=ROWS - slope * ROWS)
        of_sigma = dps.NormalKnownSigma(0.0, 1.0, sigma)
        with pytest.raises(ValueError, match=r"x: component has a variable .*\(sigma\); give"):
            dps.HDPMixture("x", 1.0, 1.0, of_sigma, groups=GROUPS, observed=ROWS)
    with declared() as model:
        pm.Potential("bonus", 2.0 * model["x_new_weight"])
        with pytest.raises(ValueError, match="bonus depends on x_new_weight, but the mixture x"):
            dps.HDPMixtureStep()


def test_name_that_is_taken_is_refused():
    with declared(), pytest.raises(ValueError, match="x: name='x' is taken"):
        dps.HDPMixture("x", 1.0, 1.0, NORMAL, groups=GROUPS, observed=ROWS)


@pytest.mark.parametrize(
    "groups",
    [GROUPS, np.array(GROUPS), pd.Series(GROUPS, dtype="category"), [2, 1, 2, 2, 1, 30]],
    ids=["list", "array", "category", "codes"],
)
def test_groups_are_sorted(groups):
    model = declared(groups=groups, group_dim="patient")
    names = ("a", "b", "c") if "a" in list(groups) else (1, 2, 30)
    assert model.coords["patient"] == names
    assert list(model["x_groups"].eval()) == [1, 0, 1, 1, 0, 2]
    assert list(model["x_group_sizes"].eval()) == [2, 3, 1]


def test_groups_follow_a_coordinate_of_the_model():
    model = declared(group_dim="patient", coords={"patient": ["c", "d", "b", "a"]})
    assert list(model["x_groups"].eval()) == [2, 3, 2, 2, 3, 0]
    assert list(model["x_group_sizes"].eval()) == [1, 0, 3, 2]


def test_names_of_a_frame_become_coordinates():
    frame = pd.DataFrame(np.c_[ROWS, ROWS[::-1]], columns=["u", "v"])
    component = dps.DiagNormal.from_data(frame)
    model = declared(observed=frame, component=component, dims=("row", "feature"))
    assert list(model.coords["feature"]) == ["u", "v"]
    assert model.named_vars_to_dims["x_mu"] == ("x_cluster", "feature")
    assert model.named_vars_to_dims["x_groups"] == ("row",)


@pytest.mark.parametrize("fixed", ["alpha", "gamma"])
def test_other_steps_take_a_model_with_a_concentration_of_one(fixed):
    with pm.Model() as model:
        given = [1.0 if key == fixed else pm.Gamma(key, 2, 2) for key in ("alpha", "gamma")]
        dps.HDPMixture("x", *given, NORMAL, groups=GROUPS, observed=ROWS)
    point = model.initial_point()
    moved = [rv for rv in model.free_RVs if rv.name in ("alpha", "gamma")]
    step = pm.NUTS(moved, model=model, initial_point=point)
    assert len(step.vars) == 1


def one_run(model: pm.Model, **options):
    return pm.sample(
        draws=40,
        tune=30,
        chains=2,
        cores=1,
        model=model,
        random_seed=3,
        progressbar=False,
        compute_convergence_checks=False,
        **options,
    )


@pytest.fixture(scope="module")
def sampled():
    with pm.Model() as model:
        alpha, gamma = pm.Gamma("alpha", 4, 2), pm.Gamma("gamma", 4, 3)
        mu0 = pm.Normal("mu0", 0.0, 5.0)
        component = dps.Normal(mu0, 0.1, 2.0, 1.0)
        dps.HDPMixture(
            "x", alpha, gamma, component, groups=GROUPS, observed=ROWS, group_dim="patient"
        )
    return model, one_run(model)


def test_trace_holds_what_the_model_says(sampled):
    _, idata = sampled
    draws, found = idata.posterior, idata.sample_stats
    roles = ("n_clusters", "n_tables", "new_weight", "weights", "mu", "sigma")
    assert set(draws.data_vars) == {"alpha", "gamma", "mu0", *(f"x_{role}" for role in roles)}
    assert (draws["x_n_clusters"] == (draws["x_weights"] > 0).sum("x_cluster")).all()
    assert (draws["x_n_clusters"] == np.isfinite(draws["x_mu"]).sum("x_cluster")).all()
    assert np.allclose(draws["x_weights"].sum("x_cluster") + draws["x_new_weight"], 1.0)
    assert (draws["x_n_tables"] >= draws["x_n_clusters"]).all()
    assert (draws["x_n_clusters"] == found["x_occupied"]).all()
    assert np.array_equal(draws["alpha"], found["x_alpha"])
    assert np.array_equal(draws["gamma"], found["x_gamma"])
    assert np.isfinite(found["x_log_joint"]).all()
    assert (found["x_information"] >= -1e-12).all()
    assert (found["x_shared"] <= found["x_occupied"]).all()
    assert list(idata.constant_data["patient"]) == ["a", "b", "c"]
    assert np.array_equal(idata.observed_data["x"], ROWS)


def test_seeds_reproduce_draws(sampled):
    model, idata = sampled
    again = one_run(model)
    for name in ("x_weights", "x_n_tables", "alpha", "mu0"):
        assert np.array_equal(idata.posterior[name], again.posterior[name])


def test_labels_are_rows_of_the_weights(sampled):
    model, idata = sampled
    labels = dps.sample_labels(idata, model=model)
    assert labels.dims == ("chain", "draw", "x_dim_0")
    assert (labels.max("x_dim_0") + 1 == idata.posterior["x_n_clusters"]).all()
    point = dps.point_partition(idata, model=model, random_seed=1).partition
    assert len(set(point.values[[0, 2, 3]])) == 1
    assert dps.similarity_matrix(idata, model=model).shape == (6, 6)


def test_diagnosis_judges_what_does_not_depend_on_numbers(sampled):
    model, idata = sampled
    found = dps.diagnose(idata, model=model)
    quantities = set(found.table["quantity"].values)
    assert {"alpha", "gamma", "x_n_clusters", "x_n_tables", "x_log_joint"} <= quantities
    assert not any("weights" in name for name in quantities)
    assert "dpsplit" not in str(found)


def test_prediction_in_groups_is_the_mean_over_draws(sampled):
    model, idata = sampled
    new, groups = np.array([5.0, 5.0, 0.0, 5.0]), ["a", "b", "b", "someone else"]
    found = dps.predict(idata, new, model=model, groups=groups)
    draws = idata.posterior.to_dataset().stack(sample=("chain", "draw"))
    labels = dps.sample_labels(idata, model=model).stack(sample=("chain", "draw"))
    of_row = idata.constant_data["x_groups"].to_numpy()
    total = np.zeros(4)
    for s in range(draws.sizes["sample"]):
        one = draws.isel(sample=s)
        k, alpha = int(one["x_n_clusters"]), float(one["alpha"])
        mu, sigma = one["x_mu"].to_numpy()[:k], one["x_sigma"].to_numpy()[:k]
        beta, rest = one["x_weights"].to_numpy()[:k], float(one["x_new_weight"])
        for i, group in enumerate([0, 1, 1, None]):
            counts = np.zeros(k)
            if group is not None:
                own = labels.isel(sample=s).to_numpy()[of_row == group]
                counts = np.bincount(own, minlength=k)
            n = counts.sum()
            masses = (counts + alpha * beta) / (n + alpha)
            # Of the base measure: Student's t with 2 a0 = 4 degrees of freedom.
            scale = np.sqrt(1.0 * (1 + 0.1) / (0.1 * 2.0))
            base = stats.t.pdf(new[i], 4.0, float(one["mu0"]), scale)
            total[i] += (
                masses @ stats.norm.pdf(new[i], mu, sigma) + alpha * rest / (n + alpha) * base
            )
    expected = np.log(total / draws.sizes["sample"])
    assert np.allclose(found["log_predictive_density"], expected)
    alone = dps.predict(idata, new[3:], model=model)["log_predictive_density"]
    assert np.allclose(alone, expected[3:])


def test_memberships_of_new_rows(sampled):
    model, idata = sampled
    partition = [0, 1, 0, 0, 1, 1]
    found = dps.predict(
        idata, [5.0, 0.1], model=model, groups=["a", "b"], partition=partition, random_seed=1
    )
    membership = found["membership_probability"].to_numpy()
    assert membership[0].argmax() == 1
    assert membership[1].argmax() == 0
    total = membership.sum(axis=1) + found["new_cluster_probability"]
    assert np.allclose(total, 1.0)


def test_readers_without_a_law_refuse(sampled):
    model, idata = sampled
    with pytest.raises(ValueError, match="x is an HDPMixture, which smc does not take; sample"):
        dps.smc(model)
    with pytest.raises(ValueError, match=r"x: pm\.compute_log_likelihood needs .*; use dps\.loo o"):
        pm.compute_log_likelihood(idata, model=model)
    with pytest.raises(ValueError, match="new is missing; give rows, or covariates="):
        dps.predict(idata, model=model)
    with pytest.raises(ValueError, match="new is missing, and rows of x have no covariates from"):
        dps.predict(idata, covariates=3, model=model)
    with pytest.raises(ValueError, match=r"groups has shape \(1,\), but new has 2 rows; give one"):
        dps.predict(idata, [1.0, 2.0], model=model, groups=["a"])
    without = idata.copy()
    without["sample_stats"] = type(idata)(idata.sample_stats.to_dataset().drop_vars("x_labels"))
    with pytest.raises(ValueError, match="idata holds no x_labels, and those of rows in groups"):
        dps.sample_labels(without, model=model)


def test_chains_go_on_from_the_labels_of_the_trace(sampled):
    model, idata = sampled
    quiet = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
    found = dps.extend(idata, model, draws=5, tune=4, random_seed=1, **quiet)
    assert found.posterior["x_weights"].shape[:2] == (2, 45)
    assert found.sample_stats["x_labels"].shape == (2, 45, 6)
    again = dps.extend(found, model, draws=2, tune=0, random_seed=1, hdp={"attempts": 1}, **quiet)
    assert dict(again.posterior["x_mu"].sizes)["draw"] == 47
    with pytest.raises(ValueError, match="start_clusters=2 is given, but a chain that goes on"):
        dps.extend(idata, model, hdp={"start_clusters": 2}, **quiet)
    without = idata.copy()
    without["sample_stats"] = type(idata)(idata.sample_stats.to_dataset().drop_vars("x_labels"))
    with pytest.raises(ValueError, match="idata holds no x_labels, on which"):
        dps.extend(without, model, **quiet)
    moved = idata.copy()
    held = idata.constant_data.to_dataset()
    moved["constant_data"] = type(idata)(held.assign(x_groups=held["x_groups"] * 0))
    with pytest.raises(
        ValueError, match="idata was sampled with other groups= of x than the model"
    ):
        dps.extend(moved, model, **quiet)
    other = idata.copy()
    stats = idata.sample_stats.to_dataset()
    other["sample_stats"] = type(idata)(stats.assign(x_labels=stats["x_labels"] * 0))
    if (idata.posterior["x_n_clusters"][:, -1] > 1).any():
        with pytest.raises(ValueError, match="x_labels has other clusters than x_n_clusters"):
            dps.extend(other, model, **quiet)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # 80 draws
def test_groups_are_left_out(sampled):
    model, idata = sampled
    found = dps.loo_groups(idata, model=model, random_seed=1)
    assert found.elpd_i.dims == ("patient",)
    assert list(found.elpd_i["patient"].to_numpy()) == ["a", "b", "c"]
    assert np.isfinite(found.elpd_i).all()


PARTITION = [0, 1, 0, 0, 1, 1]


def test_clusters_are_described_by_the_labels_of_the_trace(sampled):
    model, idata = sampled
    found = dps.describe_clusters(idata, PARTITION, model=model).to_dataset()
    mean = found["mu"].sel(statistic="mean").to_numpy()
    assert mean[0] < 1.5
    assert mean[1] > 3.5
    assert list(found["size"].to_numpy()) == [3, 3]
    assert dps.plot_membership(dps.describe_clusters(idata, PARTITION, model=model))


def test_weights_of_groups_are_a_table_by_name(sampled):
    model, idata = sampled
    found = dps.group_weights(idata, PARTITION, model=model, random_seed=1)
    mean = found["weight"].sel(statistic="mean")
    assert mean.dims == ("patient", "x_reference_cluster")
    assert mean.to_pandas().idxmax(axis=1).to_dict() == {"a": 1, "b": 0, "c": 1}
    total = mean.sum("x_reference_cluster") + found["new_weight"].sel(statistic="mean")
    assert np.allclose(total, 1.0)
    assert found["size"].to_pandas().loc["b"].to_list() == [3, 0]
    again = dps.group_weights(idata, PARTITION, random_seed=1)
    assert found.identical(again)
    with pytest.raises(ValueError, match="partition has 2 labels, but x has 6 observations"):
        dps.group_weights(idata, [0, 1])
    with pytest.raises(ValueError, match="ci_prob=2 must lie between 0 and 1"):
        dps.group_weights(idata, PARTITION, ci_prob=2)


def test_density_in_a_group_is_that_of_prediction(sampled):
    model, idata = sampled
    grid = np.array([-1.0, 0.0, 5.0])
    for group in ("a", "c"):
        found = dps.density(idata, group=group, grid=grid)["density"].sel(statistic="mean")
        new = dps.predict(idata, grid, model=model, groups=[group] * 3)["log_predictive_density"]
        # The density of Gaussians is without the remainder.
        assert np.allclose(found, np.exp(new), rtol=0.5, atol=0.02)
    low, high = (dps.density(idata, group=of, grid=[0.0, 5.0])["density"][:, 0] for of in "ba")
    assert low[0] > low[1]
    assert high[0] < high[1]
    with pytest.raises(ValueError, match="group='z' is no group of the trace; give one of a, b"):
        dps.density(idata, group="z")


def test_figures_of_groups(sampled):
    model, idata = sampled
    assert dps.plot_density(idata, group="a").get_xlabel() == "x"
    assert dps.plot_n_clusters(idata, prior=True, model=model)
    assert dps.plot_clusters(idata, partition=PARTITION)
    assert dps.plot_similarity(idata, model=model)
    assert dps.plot_trace(idata) is not None


@pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto")
def test_rows_are_left_out_in_their_groups(sampled):
    model, idata = sampled
    found = dps.loo(idata, model=model)
    assert found.n_data_points == 6
    assert np.isfinite(found.elpd)


def test_trace_in_a_file_is_read_like_the_first(sampled, tmp_path):
    model, idata = sampled
    idata.to_netcdf(tmp_path / "trace.nc")
    loaded = az.from_netcdf(tmp_path / "trace.nc")
    one, two = (dps.group_weights(of, PARTITION, random_seed=1) for of in (idata, loaded))
    assert np.allclose(one["weight"], two["weight"])
    new, groups = [0.0, 5.0], ["a", "b"]
    one, two = (dps.predict(of, new, model=model, groups=groups) for of in (idata, loaded))
    assert np.allclose(one["log_predictive_density"], two["log_predictive_density"])


def test_run_with_a_checkpoint_has_the_same_draws(sampled, tmp_path):
    model, idata = sampled
    with model:
        kept = one_run(model, step=dps.Checkpoint(tmp_path / "run"))
        again = one_run(model, step=dps.Checkpoint(tmp_path / "run"))
    for name in ("x_weights", "x_n_tables", "alpha", "mu0"):
        assert np.array_equal(idata.posterior[name], kept.posterior[name])
        assert np.array_equal(idata.posterior[name], again.posterior[name])


def test_trace_without_groups_has_no_weights_of_groups(sampled):
    _, idata = sampled
    without = idata.copy()
    del without["constant_data"]
    with pytest.raises(ValueError, match="x has no groups in idata; give the trace of an HDPM"):
        dps.group_weights(without, PARTITION)
    without = idata.copy()
    without["sample_stats"] = type(idata)(idata.sample_stats.to_dataset().drop_vars("x_labels"))
    with pytest.raises(ValueError, match="idata holds no x_labels, on which the weights of"):
        dps.density(without, group="a")


def test_missing_entries_are_drawn_and_read():
    rows = np.c_[ROWS, ROWS]
    rows[1, 0] = rows[2, 1] = np.nan
    component = dps.DiagNormal(0.0, 0.1, 2.0, 1.0)
    model = declared(observed=np.ma.masked_invalid(rows), component=component)
    idata = one_run(model)
    entries = idata.posterior["x_unobserved"]
    assert list(entries["x_hole"].to_numpy()) == ["1, 0", "2, 1"]
    mean = entries.mean(("chain", "draw")).to_numpy()
    assert mean[0] > 2.0 > mean[1]
    assert dps.describe_clusters(idata, PARTITION, model=model).membership.shape == (6, 2)
    found = dps.predict(idata, [[np.nan, 5.0]], model=model, groups=["a"])
    assert np.isfinite(found["log_predictive_density"]).all()
    with model, pytest.raises(NotImplementedError, match="Missing entries of x cannot be drawn"):
        pm.sample_prior_predictive(2, var_names=["x_unobserved"], random_seed=1)


def test_what_cannot_move_the_mixture_is_refused(sampled):
    model, _ = sampled
    with model, pytest.raises(ValueError, match=r"x: the step Metropolis .* only HDPMixtureStep"):
        pm.sample(step=pm.Metropolis([model["x_n_tables"]]), progressbar=False)
    with model, pytest.raises(ValueError, match=r"x: nuts_sampler='nutpie' .* only HDPMixtureStep"):
        pm.sample(nuts_sampler="nutpie", progressbar=False)
    with model, pytest.raises(ValueError, match=r"x: pm\.find_MAP cannot move a mixture"):
        pm.find_MAP(return_inferencedata=True, jitter=False)
    with model, pytest.raises(ValueError, match="attempts=-1 is out of range"):
        dps.HDPMixtureStep(attempts=-1)
    with model, pytest.raises(ValueError, match="threads=0 is out of range"):
        dps.HDPMixtureStep(threads=0)
    with (
        model,
        pytest.raises(ValueError, match="kernel='neal8' is unknown for an HDPMixture; give"),
    ):
        dps.HDPMixtureStep(kernel="neal8")


@pytest.mark.compiled
def test_step_takes_options():
    model = declared()
    with model:
        step = dps.HDPMixtureStep(iterations=2, attempts=1, start_clusters=3, keep_labels=False)
        point, (found,) = step.step(model.initial_point())
    assert point["x_n_clusters"] == found["x_occupied"]
    assert "x_labels" not in found


@pytest.mark.compiled
def test_state_of_a_chain_is_stored():
    model = declared()
    with model:
        step = dps.HDPMixtureStep(rng=1)
        step.setup_chain(np.random.default_rng(1), 60, 1)
        for _ in range(3):
            step.step(model.initial_point())
        state, other = step.sampling_state, dps.HDPMixtureStep(rng=1)
        names = {of.name for of in fields(state)} - {"rng"}
        stored = to_arrays({name: getattr(state, name) for name in names}, "state")
        other.sampling_state = replace(state, **from_arrays(stored))
    assert other.progress[:4] == step.progress[:4]
    np.testing.assert_array_equal(other.labels, step.labels)


def test_iterations_are_those_of_tuning(sampled):
    """Few rows take less time than the rest of a draw, so that a draw has several iterations."""
    iterations = sampled[1].sample_stats["x_iterations"]
    assert (iterations > 1).all()
    assert (iterations == iterations[:, 0]).all()


@pytest.mark.parametrize("kernel", ["slices", "collapsed"])
def test_gamma_for_millions_of_clusters(kernel):
    """Only slices draw all clusters that rows could join."""
    model = declared(gamma=1e7)
    with model:
        if kernel == "slices":
            with pytest.raises(
                ValueError, match="x: gamma is 1e\\+07 in a draw, for which a sweep"
            ):
                dps.HDPMixtureStep(kernel=kernel)
        else:
            assert dps.HDPMixtureStep(kernel=kernel).threads is None


def test_many_rows_are_visited_by_slices():
    few, many = declared(), declared(observed=np.arange(21_000.0), groups=np.arange(21_000) % 2)
    with few:
        assert dps.HDPMixtureStep(threads=2).threads is None
        assert dps.HDPMixtureStep(kernel="slices", threads=2).threads == 2
    with many:
        assert dps.HDPMixtureStep().threads == 1
        assert dps.HDPMixtureStep(kernel="collapsed").threads is None


def test_clusters_live_on_processors():
    model = declared()
    options = {"kernel": "av-parallel", "attempts": 0, "keep_labels": True}
    with model:
        assert dps.HDPMixtureStep(kernel="av-parallel").n_processors == 4
        steps = [dps.HDPMixtureStep(**options, processors=p, rng=1) for p in (1, 3)]
        for step in steps:
            step.setup_chain(np.random.default_rng(1), 0, 2)
            point, (found,) = step.step(model.initial_point())
            assert len(np.unique(found["x_labels"])) == point["x_n_clusters"]
        with pytest.raises(ValueError, match="processors=0 is out of range"):
            dps.HDPMixtureStep(kernel="av-parallel", processors=0)
        with pytest.raises(ValueError, match="processors=2 is an option of kernel='av-parallel'"):
            dps.HDPMixtureStep(processors=2)


def test_prior_of_the_measure_is_drawn():
    model = declared(alpha=2.0, gamma=1.5)
    with model:
        names = ["x_n_clusters", "x_n_tables", "x_new_weight", "x_mu"]
        prior = pm.sample_prior_predictive(400, var_names=names, random_seed=1).prior
    # Tables of groups of two, three and one: alpha / alpha + alpha / (alpha + 1) + ...
    mean = 3 + 2 * (2 / 3) + 2 / 4
    assert abs(float(prior["x_n_tables"].mean()) - mean) < 5 * float(prior["x_n_tables"].std()) / 20
    assert abs(float((prior["x_new_weight"] - 1.5 / (1.5 + prior["x_n_tables"])).mean())) < 0.06
    assert (np.isfinite(prior["x_mu"]).sum("x_cluster") == prior["x_n_clusters"]).all()


def test_rows_are_not_drawn():
    with declared(), pytest.raises(NotImplementedError, match="Rows of x cannot be drawn"):
        pm.sample_prior_predictive(2, random_seed=1)
