"""Prediction of new rows: what may be given, what comes back, and where it comes from."""

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pymc as pm
import pytest
import xarray as xr
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction.running_average import RunningAverage
from pymc_dpsplit.posterior.trace import members

ROWS = np.array([[0.0, 1.0], [0.3, 0.7], [-0.2, 1.4], [7.0, -6.0], [6.6, -5.5]])
REFERENCE = [1, 1, 1, 0, 0]
NEW = np.array([[0.1, 1.0], [7.0, -6.2], [40.0, 40.0]])
SCRIPT = """
import sys
import numpy as np, arviz as az, pymc as pm, pymc_dpsplit as dps
rows, new = np.load(sys.argv[1]), np.load(sys.argv[2])
with pm.Model() as model:
    alpha = pm.Gamma("alpha", 2, 4)
    dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=rows)
found = dps.predict(az.from_netcdf(sys.argv[3]), new, model=model, partition=[1, 1, 1, 0, 0],
                    random_seed=3)
found.to_netcdf(sys.argv[4])
"""


def declared(**options):
    coords = {"obs_id": range(5), "feature": ["a", "b"]}
    with pm.Model(coords=coords) as model:
        alpha = pm.Gamma("alpha", 2, 4)
        component = dps.MvNormal.from_data(ROWS)
        dps.DPMixture("x", alpha, component, observed=ROWS, dims=("obs_id", "feature"), **options)
    return model


def sample(model, draws=60):
    with model:
        return pm.sample(
            draws=draws, tune=60, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return declared()


@pytest.fixture(scope="module")
def idata(model):
    return sample(model)


@pytest.mark.slow
def test_density_is_that_of_the_log_likelihood(model, idata):
    found = dps.predict(idata, ROWS, model=model)
    with model:
        each = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    log_mean = logsumexp(each["x"].values, axis=(0, 1)) - np.log(120)
    np.testing.assert_allclose(found["log_predictive_density"], log_mean)
    assert "membership_probability" not in found


def test_parts_sum_to_one_and_make_sense(model, idata):
    found = dps.predict(idata, NEW, model=model, partition=np.array(REFERENCE), random_seed=3)
    members, new = found["membership_probability"], found["new_cluster_probability"]
    assert members.dims == ("new_row", "x_reference_cluster")
    assert members["x_reference_cluster"].values.tolist() == [0, 1]
    np.testing.assert_allclose(members.sum("x_reference_cluster") + new, 1.0)
    assert members.argmax("x_reference_cluster").values[:2].tolist() == [1, 0]
    assert new[2] > 0.9
    assert (found["effective_draws"] <= 120.0 + 1e-9).all()
    assert (found["effective_draws"] >= 1.0).all()


def test_frames_and_labelled_arrays_are_put_in_order(model, idata):
    plain = dps.predict(idata, NEW, model=model)
    frame = pd.DataFrame({"b": NEW[:, 1], "c": 0.0, "a": NEW[:, 0]}, index=["u", "v", "w"])
    labelled = xr.DataArray(
        NEW.T[::-1], dims=("feature", "site"), coords={"feature": ["b", "a"], "site": [5, 6, 7]}
    )
    for new, dim, names in (
        (frame, "new_row", ["u", "v", "w"]),
        (pl.DataFrame(frame.reset_index(drop=True)), "new_row", [0, 1, 2]),
        (labelled, "site", [5, 6, 7]),
        (pd.DataFrame(NEW), "new_row", [0, 1, 2]),
    ):
        found = dps.predict(idata, new, model=model)
        assert found[dim].values.tolist() == names
        np.testing.assert_allclose(found["log_predictive_density"], plain["log_predictive_density"])


def test_missing_entries_are_integrated_out(model, idata):
    new = np.array([[np.nan, 1.0], [0.1, np.nan], [np.nan, np.nan], [0.1, 1.0]])
    found = dps.predict(idata, new, model=model, partition=REFERENCE, random_seed=3)
    log_density = found["log_predictive_density"].values
    grid = np.linspace(-150, 150, 60_001)
    line = np.column_stack([grid, np.full_like(grid, 1.0)])
    along = np.exp(dps.predict(idata, line, model=model, num_samples=120)["log_predictive_density"])
    assert np.trapezoid(along, grid) == pytest.approx(np.exp(log_density[0]), rel=1e-3)
    # Of a row without any entry one knows what one knows of a row that was never seen.
    assert log_density[2] == pytest.approx(0.0, abs=1e-9)
    mean = float(idata["posterior"]["x_new_weight"].mean())
    assert float(found["new_cluster_probability"][2]) == pytest.approx(mean)
    np.testing.assert_allclose(
        found["membership_probability"].sum("x_reference_cluster"),
        1 - found["new_cluster_probability"],
    )


def test_some_draws_are_enough_if_asked_for(model, idata):
    some = dps.predict(idata, NEW, model=model, num_samples=np.int64(7))
    assert (some["effective_draws"] <= 7 + 1e-9).all()


@pytest.mark.slow
def test_labels_of_the_trace_are_used_where_it_has_them(monkeypatch):
    monkeypatch.setattr(members, "redraw", None)
    with pm.Model() as model:
        b = dps.DPMixture("b", 1.0, dps.Normal(0, 0.1, 2, 1), shape=4)
        pm.Normal("y", b, 0.1, observed=[0.0, 0.1, 5.0, 5.1])
    found = dps.predict(sample(model), [0.05, 5.0], model=model, partition=[0, 0, 1, 1])
    assert found["membership_probability"].argmax("b_reference_cluster").values.tolist() == [0, 1]
    np.testing.assert_allclose(
        found["membership_probability"].sum("b_reference_cluster"),
        1 - found["new_cluster_probability"],
    )


@pytest.mark.slow
def test_prediction_from_disk_in_a_new_process(model, idata, tmp_path):
    here = dps.predict(idata, NEW, model=model, partition=REFERENCE, random_seed=3)
    idata.to_netcdf(tmp_path / "trace.nc")
    np.save(tmp_path / "rows.npy", ROWS)
    np.save(tmp_path / "new.npy", NEW)
    names = ["rows.npy", "new.npy", "trace.nc", "found.nc"]
    files = [str(tmp_path / name) for name in names]
    subprocess.run([sys.executable, "-c", SCRIPT, *files], check=True)
    xr.testing.assert_allclose(xr.load_dataset(files[-1]), here)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ([0.1, 1.0], r"new has shape \(2,\), but rows of x have shape \(M, 2\)"),
        (np.zeros((3, 3)), r"new has shape \(3, 3\), but rows of x have shape \(M, 2\)"),
        (np.array([[np.inf, 0.0]]), "new has 1 infinite entry"),
        (np.array([["u", "v"]]), "new has dtype <U1, which is not numeric"),
        (pd.DataFrame({"a": [0.0], "z": [1.0]}), "new has no column 'b', a feature of the model"),
        (
            xr.DataArray([[0.0, 1.0]], dims=("r", "feature"), coords={"feature": ["a", "z"]}),
            "new has no feature 'b'; give all those of the model",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(model, idata, new, message):
    with pytest.raises(ValueError, match=message):
        dps.predict(idata, new, model=model)


def test_partition_is_taken_as_it_was_found(model, idata):
    labels = dps.sample_labels(idata, model=model, random_seed=1)
    for found in (dps.point_partition(labels, random_seed=1), dps.find_map(model, random_seed=1)):
        bare = np.asarray(found.partition if isinstance(found, tuple) else found.labels)
        whole = dps.predict(idata, NEW, model=model, partition=found, random_seed=3)
        assert whole.equals(dps.predict(idata, NEW, model=model, partition=bare, random_seed=3))
        assert float(dps.credible_ball(labels, found)["radius"]) == float(
            dps.credible_ball(labels, bare)["radius"]
        )


def test_partition_of_other_rows_is_refused(model, idata):
    partition = dps.point_partition(dps.sample_labels(idata, model=model, random_seed=1)).partition
    moved = partition.assign_coords(obs_id=np.roll(partition["obs_id"], 1))
    with pytest.raises(ValueError, match="partition is one of other observations, by its coordi"):
        dps.predict(idata, NEW, model=model, partition=moved)
    # Without a coordinate nothing is known against it.
    dps.predict(idata, NEW, model=model, partition=moved.drop_vars("obs_id"), num_samples=1)


def test_reading_without_a_model_says_so(idata):
    for read in (dps.sample_labels, lambda idata: dps.predict(idata, NEW)):
        with pytest.raises(ValueError, match="model is not given, and there is none in the cont"):
            read(idata)


def test_reading_a_model_without_a_mixture_says_so(idata):
    with pm.Model() as model:
        dps.finite_mixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), n_components=2, observed=[0.0, 1.0])
    for read in (dps.loo, dps.sample_labels, partial(dps.predict, new=NEW)):
        with pytest.raises(ValueError, match=r"^the model has no mixture .*, such as arviz\.loo "):
            read(idata, model=model)


def test_faults_of_other_arguments_are_named(model, idata):
    with pytest.raises(ValueError, match="partition has 3 labels, but x has 5 observations"):
        dps.predict(idata, NEW, model=model, partition=[0, 1, 1])
    with pytest.raises(ValueError, match=r"partition has shape .* give one integer for each"):
        dps.predict(idata, NEW, model=model, partition=[0.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="num_samples=0 is out of range; give an integer"):
        dps.predict(idata, NEW, model=model, num_samples=0)
    with pytest.raises(ValueError, match="var_name='y' names no mixture of the model"):
        dps.predict(idata, NEW, model=model, var_name="y")
    del (lacking := idata.copy())["posterior"]
    with pytest.raises(ValueError, match="the posterior group holds no x_weights"):
        dps.predict(lacking, NEW, model=model)
    small = declared(max_clusters=1)
    with pytest.raises(ValueError, match="have more clusters than the 1 rows kept"):
        dps.predict(idata, NEW, model=small)


def test_counts_outside_the_support_are_refused():
    with pm.Model() as model:
        dps.DPMixture("n", 1.0, dps.Poisson(1.0, 1.0), observed=np.array([[1.0], [7.0], [2.0]]))
    idata = sample(model, draws=10)
    with pytest.raises(ValueError, match=r"new has 0\.5 in column 0"):
        dps.predict(idata, [[0.5]], model=model)
    assert dps.predict(idata, [[3]], model=model)["log_predictive_density"].notnull().all()


def test_running_average_is_that_of_the_numbers(rng):
    # Draws on very different scales, in blocks of rows that differ.
    log_mass = rng.normal(size=(30, 4, 5)) + 300 * rng.normal(size=(30, 1, 1)) - 800
    log_mass[:12, :, 3] = -np.inf
    shares = rng.dirichlet(np.ones(2), size=(30, 3))
    average = RunningAverage(5, 2)
    for mass, share in zip(log_mass, shares, strict=True):
        for where in (np.array([0, 3]), np.array([4, 1, 2])):
            # The last atom is part of the remainder.
            average.add(where, mass[:, where], 2, share)
    density = logsumexp(log_mass[:, [0, 1, 3]], axis=1)
    total = logsumexp(density, axis=0)
    np.testing.assert_allclose(average.log_density, total - np.log(30))
    new = np.exp(logsumexp(log_mass[:, 3], axis=0) - total)
    np.testing.assert_allclose(average.new_probability, new)
    with np.errstate(divide="ignore"):
        shared = logsumexp(log_mass[:, :3, :, None] + np.log(shares)[:, :, None], axis=(0, 1))
    expected = np.exp(shared - logsumexp(shared, axis=1, keepdims=True)) * (1 - new)[:, None]
    np.testing.assert_allclose(average.membership, expected)
    squares = logsumexp(2 * density, axis=0)
    np.testing.assert_allclose(average.effective_draws, np.exp(2 * total - squares))


def test_impossible_rows_have_no_density():
    average = RunningAverage(1, 2)
    average.add(np.array([0]), np.full((3, 1), -np.inf), 2, np.ones((2, 2)) / 2)
    assert average.log_density[0] == -np.inf
    assert np.isnan(average.new_probability[0])


def test_a_row_far_away_takes_no_digits_of_the_others(model, idata):
    alone = dps.predict(idata, NEW[:1], model=model)
    for far in (1e12, 1e100):
        together = dps.predict(idata, np.array([NEW[0], [far, 0.0]]), model=model)
        xr.testing.assert_allclose(together.isel(new_row=[0]), alone, rtol=1e-9)
        assert np.isfinite(together["log_predictive_density"]).all()


def test_a_row_whose_density_overflows_is_refused(model, idata):
    with pytest.raises(ValueError, match=r"new has no finite density in row 1 .*; leave that row"):
        dps.predict(idata, np.array([NEW[0], [1e300, 0.0]]), model=model)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"x_weights": -1.0}, "x_weights holds values in idata that are not between 0 and 1; give"),
        ({"x_weights": 0.5}, "x_weights and x_new_weight do not sum to one .*; give"),
        ({"x_mu": np.nan}, "x_mu is NaN or infinite for a cluster in use .*; give"),
    ],
)
def test_damaged_draws_are_refused(damage, message, model, idata):
    posterior = idata["posterior"].to_dataset()
    damaged = idata.copy()
    damaged["posterior"] = posterior.assign({of: posterior[of] * by for of, by in damage.items()})
    for read in (dps.sample_labels, lambda trace, model: dps.predict(trace, NEW, model=model)):
        with pytest.raises(ValueError, match=message):
            read(damaged, model=model)
