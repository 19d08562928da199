"""Data with missing entries: what they become, and what is done with the rows that lack them."""

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr
from pymc.model.fgraph import clone_model
from scipy.stats import multivariate_normal, multivariate_t

import pymc_dpsplit as dps
from pymc_dpsplit.pymc_hooks.pointwise_likelihood import _without_rows
from pymc_dpsplit.variables import find_mixtures
from tests.integration.test_reproducibility import OPTIONS

N_OBS, N_DRAWS = 20, 10
NAMES = [f"row {i}" for i in range(N_OBS)]
COORDS = {"obs_id": NAMES, "feature": ["a", "b"]}
COMPLETE = np.random.default_rng(4).normal(size=(N_OBS, 2)) + np.repeat([[-3.0], [3.0]], 10, axis=0)
ROWS = COMPLETE.copy()
ROWS[3, 0] = ROWS[7] = ROWS[15, 1] = np.nan
HOLES = ["row 3, a", "row 7, a", "row 7, b", "row 15, b"]
COMPONENT = dps.MvNormal([0.0, 0.0], 0.1, 5.0, np.eye(2))


def declared(observed=ROWS, component=COMPONENT, dims=("obs_id", "feature")):
    with pm.Model(coords=COORDS) as model:
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), component, observed=observed, dims=dims)
    return model


def sampled(model, **arguments):
    defaults = {"draws": N_DRAWS, "tune": 10, "chains": 2, "cores": 1, "random_seed": 5}
    with model:
        return pm.sample(**{**defaults, **OPTIONS, **arguments})


@pytest.fixture(scope="module")
def model():
    return declared()


@pytest.fixture(scope="module")
def idata(model):
    return sampled(model)


# --- declaring ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "observed",
    [
        ROWS.tolist(),
        np.ma.masked_invalid(ROWS),
        np.ma.masked_array(COMPLETE, np.isnan(ROWS)),
        pd.DataFrame(ROWS, columns=["a", "b"]),
        pl.DataFrame(ROWS, schema=["a", "b"]),
    ],
    ids=["list", "masked NaN", "masked", "pandas", "polars"],
)
def test_containers_of_data_are_equal(observed):
    mixture = find_mixtures(declared(observed))["x"]
    assert mixture.unobserved.type.shape == (4,)
    at = {mixture.unobserved: np.arange(4.0)}
    expected = ROWS.copy()
    expected[np.isnan(ROWS)] = np.arange(4.0)
    np.testing.assert_array_equal(mixture.data.eval(at), expected)


def test_null_of_a_nullable_series():
    series = pd.Series([1, None, 3] * 4, dtype="Int64")
    model = declared(series, dps.Normal(0.0, 0.1, 2.0, 1.0), None)
    assert model.coords["x_hole"] == ("1", "4", "7", "10")


@pytest.mark.parametrize(
    ("dims", "expected"),
    [(("obs_id", "feature"), HOLES), (None, ["3, 0", "7, 0", "7, 1", "15, 1"])],
    ids=["named", "numbered"],
)
def test_entries_are_named_after_row_and_feature(dims, expected):
    assert list(declared(dims=dims).coords["x_hole"]) == expected


def test_entries_start_at_the_mean_of_their_feature(model):
    start = model.initial_point()["x_unobserved"]
    np.testing.assert_allclose(start, np.nanmean(ROWS, axis=0)[[0, 0, 1, 1]])


def test_complete_data_have_no_such_variable():
    assert "x_unobserved" not in declared(COMPLETE).named_vars


BAD = {
    "all missing": (ROWS * np.nan, "no entry that is not missing"),
    "all masked": (np.ma.masked_all((4, 2)), "no entry that is not missing"),
    "infinite": (np.where(np.isnan(ROWS), np.inf, ROWS), "has 4 infinite entries"),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_one_sentence(fault):
    observed, message = BAD[fault]
    with pytest.raises(ValueError, match=message) as raised:
        declared(observed, dims=None)
    assert str(raised.value).startswith("x: ")
    assert str(raised.value).endswith(".")


def test_data_containers_refuse_missing_entries_themselves():
    with pm.Model(), pytest.raises(NotImplementedError, match="Pass them directly to `observed`"):
        pm.Data("rows", ROWS)


# --- the trace ----------------------------------------------------------------------------


def test_missing_entries_are_drawn(idata):
    drawn = idata["posterior"]["x_unobserved"]
    assert drawn.dims == ("chain", "draw", "x_hole")
    assert drawn["x_hole"].to_numpy().tolist() == HOLES
    assert (drawn.std(("chain", "draw")) > 0).all()
    assert idata["observed_data"]["x"].dims == ("obs_id", "feature")
    np.testing.assert_array_equal(idata["observed_data"]["x"], ROWS)


@pytest.mark.parametrize("n_left", [1, 0])
def test_features_with_hardly_an_entry(n_left):
    observed = COMPLETE.copy()
    observed[n_left:, 1] = np.nan
    posterior = sampled(declared(observed))["posterior"]
    assert posterior["x_unobserved"].shape == (2, N_DRAWS, N_OBS - n_left)
    assert np.isfinite(posterior["x_unobserved"]).all()


def test_initial_values(model):
    start = {"x_unobserved": np.full(4, 100.0)}
    drawn = sampled(model, draws=1, tune=0, chains=1, initvals=start)["posterior"]["x_unobserved"]
    assert (drawn != 100.0).all()


def test_log_likelihood(model, idata):
    idata = idata.copy()
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
    found = idata["log_likelihood"]["x"]
    assert found.dims == ("chain", "draw", "obs_id")
    assert found["obs_id"].to_numpy().tolist() == NAMES[:7] + NAMES[8:]
    assert np.isfinite(found).all()
    at = idata["posterior"].isel(chain=0, draw=-1)
    weights = at["x_weights"].to_numpy()[: int(at["x_n_clusters"])]
    for features, row in (([0, 1], 0), ([1], 3), ([0], 15)):
        value, grid = ROWS[row, features], np.ix_(features, features)
        density = float(at["x_new_weight"]) * multivariate_t.pdf(
            value, np.zeros(len(features)), np.eye(len(features)) * 11 / 4, df=4
        )
        for k, weight in enumerate(weights):
            mu, cov = at["x_mu"].to_numpy()[k, features], at["x_cov"].to_numpy()[k][grid]
            density += weight * multivariate_normal.pdf(value, mu, cov)
        at_row = found[0, -1].sel(obs_id=NAMES[row])
        np.testing.assert_allclose(float(at_row), np.log(density))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_loo_of_rows(model):
    idata = sampled(model, draws=20)
    with model:
        pm.compute_log_likelihood(idata, progressbar=False)
        pm.sample_posterior_predictive(
            idata, progressbar=False, random_seed=1, extend_inferencedata=True
        )
    found = az.loo(idata, pointwise=True)
    assert found.n_data_points == N_OBS - 1
    assert "row 7" not in found.elpd_i["obs_id"]
    np.testing.assert_allclose(found.elpd_i.sum(), az.loo(idata).elpd)
    for feature, missing in (("a", [3, 7]), ("b", [7, 15])):
        rows = [name for i, name in enumerate(NAMES) if i not in missing]
        pit = az.loo_pit(idata.sel(feature=feature, obs_id=rows))["x"]
        assert pit.shape == (N_OBS - 2,)
        assert ((pit >= 0) & (pit <= 1)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_loo_of_scalars():
    observed = COMPLETE[:, 0].copy()
    observed[7] = np.nan
    model = declared(observed, dps.Normal(0.0, 0.1, 2.0, 1.0), None)
    with pytest.warns(FutureWarning, match="log_likelihood"):
        idata = sampled(model, draws=20, idata_kwargs={"log_likelihood": True})
    found = az.loo(idata, pointwise=True)
    assert found.n_data_points == az.loo(idata).n_data_points == N_OBS - 1
    assert np.isfinite(found.elpd_i).all()


@pytest.mark.parametrize("shared", [True, False])
def test_rows_left_out_of_one_variable_stay_in_others(shared):
    values, coords = np.arange(6.0).reshape(2, 3), {"row": list("abc")}
    x = xr.DataArray(values, dims=("draw", "row"), coords=coords)
    other = x + 10 if shared else x.rename(row="site") + 10
    found = _without_rows(xr.Dataset({"x": x, "y": other}), "x", [1])
    dim = "x_row" if shared else "row"
    assert list(found) == ["x", "y"]
    assert found["x"].dims == ("draw", dim)
    assert found[dim].to_numpy().tolist() == ["a", "c"]
    np.testing.assert_array_equal(found["x"], [[0.0, 2.0], [3.0, 5.0]])
    xr.testing.assert_identical(found["y"], other.rename("y"))


def test_posterior_predictive_is_complete(model, idata):
    with model:
        found = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=1)
    assert found["posterior_predictive"]["x"].shape == (2, N_DRAWS, N_OBS, 2)
    assert np.isfinite(found["posterior_predictive"]["x"]).all()


@pytest.mark.slow
def test_prior_predictive_is_complete(model):
    with model:
        found = pm.sample_prior_predictive(5, random_seed=1)
    assert found["prior"]["x_unobserved"].shape == (1, 5, 4)
    assert np.isfinite(found["prior_predictive"]["x"]).all()


@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
def test_labels_are_redrawn_or_kept(kernel, model, idata, tmp_path):
    idata.to_netcdf(tmp_path / "trace.nc")
    stored = az.from_netcdf(tmp_path / "trace.nc")
    labels = dps.sample_labels(stored, model=model, random_seed=1)
    np.testing.assert_array_equal(labels, dps.sample_labels(idata, model=model, random_seed=1))
    assert labels.dims == ("chain", "draw", "obs_id")
    kept = sampled(model, dpsplit={"keep_labels": True, "kernel": kernel})
    np.testing.assert_array_equal(
        dps.sample_labels(kept, model=model), kept["sample_stats"]["x_labels"]
    )
    assert "Mixture x" in str(dps.diagnose(kept))


def test_labels_are_redrawn_given_the_entries_imputed(model, idata):
    """A row without any entry goes where its imputed entries are."""
    posterior = idata["posterior"].to_dataset()
    imputed = posterior["x_unobserved"].to_numpy().copy()
    imputed[0, :, 1:3], imputed[1, :, 1:3] = COMPLETE[0], COMPLETE[-1]
    moved = idata.copy()
    moved["posterior"] = posterior.assign(x_unobserved=posterior["x_unobserved"].copy(data=imputed))
    labels = dps.sample_labels(moved, model=model, random_seed=1).to_numpy()
    assert (labels[0, :, 7] == labels[0, :, 0]).mean() > 0.7
    assert (labels[1, :, 7] == labels[1, :, -1]).mean() > 0.7


@pytest.mark.parametrize("left_out", ["alpha", "x_unobserved", "x_weights"])
def test_trace_in_part_is_refused(left_out, model, idata):
    part = idata.copy()
    part["posterior"] = idata["posterior"].to_dataset().drop_vars(left_out)
    with pytest.raises(ValueError, match=rf"no {left_out}.*; .* without var_names=\."):
        dps.sample_labels(part, model=model)


def test_figure_leaves_out_incomplete_rows(idata):
    ax = dps.plot_density(idata)
    assert len(ax.lines[0].get_xdata()) == N_OBS - 3
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert dps.plot_density(idata, features="a").get_xlabel() == "a"
    plt.close("all")


def test_copy_gives_the_same_draws(model, idata):
    again = sampled(clone_model(model))
    for name, values in idata["posterior"].items():
        # PyTensor adds the terms of alpha's density in another order, which rounds differently.
        np.testing.assert_allclose(again["posterior"][name], values, rtol=1e-12)


def test_model_is_printed_and_drawn(model):
    assert "x_unobserved ~ DPMissing(x_n_clusters" in model.str_repr()
    assert "x_mu -> x_unobserved" in model.to_graphviz().source


# --- hyperparameters from such data -------------------------------------------------------


@pytest.mark.parametrize("family", [dps.MvNormal, dps.DiagNormal], ids=lambda f: f.__name__)
def test_defaults_use_the_entries_present(family):
    given = {"nu0": 4.0} if family is dps.MvNormal else {"a0": 2.0}
    found = family.from_data(ROWS, within=0.1, **given).hyperparameters
    np.testing.assert_allclose(found["mu0"], np.nanmean(ROWS, axis=0))
    scale = np.diag(found["psi0"]) if family is dps.MvNormal else found["b0"]
    np.testing.assert_allclose(scale, 0.1 * np.nanvar(ROWS, axis=0))
    masked = family.from_data(np.ma.masked_invalid(ROWS), within=0.1, **given).hyperparameters
    for name, value in found.items():
        np.testing.assert_array_equal(masked[name], value)


def test_defaults_of_scalars_use_the_entries_present():
    found = dps.Normal.from_data([np.nan, 1.0, 3.0]).hyperparameters
    assert (found["mu0"], found["b0"]) == (2.0, pytest.approx(0.1))


@pytest.mark.parametrize("family", [dps.MvNormal, dps.DiagNormal], ids=lambda f: f.__name__)
def test_defaults_of_an_empty_column_are_refused(family):
    observed = COMPLETE.copy()
    observed[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"no entry in column 1, .*; leave the column out"):
        family.from_data(observed)
    with pytest.raises(ValueError, match="no entry that is not missing"):
        family.from_data(observed * np.nan)
