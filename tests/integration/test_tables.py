"""Names of tables are those of the trace, of files and of figures, whatever the order of parts."""

from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from numpy.testing import assert_array_equal

import pymc_dpsplit as dps

N = 12
# The parts, and with them the kernels, are those of other tests.
PARTS = {
    "height": dps.Normal(mu0=0.2, kappa0=0.3, a0=2.0, b0=0.6),
    "visits": dps.Poisson(1.3, 0.5),
    "colour": dps.Categorical(1.0),
}


def table() -> pd.DataFrame:
    """A frame in another order than the parts, with a missing entry in each column."""
    rng = np.random.default_rng(4)
    group = np.arange(N) % 2
    colour = pd.Series(np.where(group, "red", "blue"), dtype=object)
    colour[3] = None
    height = rng.normal(4.0 * group)
    height[5] = np.nan
    visits = pd.Series(rng.poisson(1 + 8 * group), dtype="Int64")
    visits[7] = pd.NA
    frame = pd.DataFrame({"colour": colour, "height": height, "visits": visits})
    return frame.set_index(pd.Index([f"person {i}" for i in range(N)]))


def sampled(frame: pd.DataFrame, **options: Any) -> tuple[pm.Model, xr.DataTree]:
    with pm.Model(coords=options.pop("coords", None)) as model:
        dps.DPMixture("x", 1.0, dps.Product(**PARTS), observed=frame, **options)
        idata = pm.sample(
            draws=15, tune=10, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    return model, idata


@pytest.fixture(scope="module")
def run() -> tuple[pm.Model, xr.DataTree]:
    coords = {"person": list(table().index), "column": list(table())}
    return sampled(table(), dims=("person", "column"), coords=coords)


@pytest.fixture(scope="module")
def idata(run: Any, tmp_path_factory: pytest.TempPathFactory) -> xr.DataTree:
    """The trace, read from a file."""
    path = tmp_path_factory.mktemp("trace") / "x.nc"
    run[1].to_netcdf(path)
    return az.from_netcdf(path)


@pytest.mark.slow
def test_columns_keep_their_names(idata: xr.DataTree) -> None:
    observed, frame = idata["observed_data"]["x"], table()
    codes = frame["colour"].map({"blue": 0.0, "red": 1.0})
    assert_array_equal(observed.sel(column="colour"), codes)
    assert_array_equal(observed.sel(column="height"), frame["height"])
    assert_array_equal(observed.sel(column="visits"), frame["visits"].astype("Float64"))
    assert observed.coords["person"].values.tolist() == list(frame.index)


def test_missing_entries_are_named(idata: xr.DataTree) -> None:
    entries = idata["posterior"]["x_unobserved"]
    of_person = {
        str(name): entries.sel(x_hole=name).to_numpy() for name in entries["x_hole"].values
    }
    assert list(of_person) == ["person 3, colour", "person 5, height", "person 7, visits"]
    assert set(of_person["person 3, colour"].flat) <= {0.0, 1.0}
    assert not set(of_person["person 5, height"].flat) & {0.0, 1.0}
    visits = of_person["person 7, visits"]
    assert (visits == np.rint(visits)).all()
    assert visits.max() > 1


def test_parameters_are_named(idata: xr.DataTree) -> None:
    posterior = idata["posterior"]
    assert posterior["x_visits_rate"].coords["x_visits_feature"].values.tolist() == ["visits"]
    p = posterior["x_colour_p"]
    assert p.coords["x_colour_category"].values.tolist() == ["blue", "red"]
    summary = az.summary(posterior, var_names=["x_colour_p"], kind="stats")
    assert "x_colour_p[0, colour, red]" in summary.index


def test_figures_show_the_column_they_name(idata: xr.DataTree) -> None:
    partition = np.arange(N) % 2
    ax = dps.plot_clusters(idata, partition=partition, features=["height", "colour"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("height", "colour")
    shown = np.concatenate([line.get_xdata() for line in ax.get_lines()])
    expected = np.concatenate([table()["height"][0::2], table()["height"][1::2]])
    assert_array_equal(shown, expected)


def test_figure_of_a_density_names_categories(run: Any) -> None:
    model, idata = run
    ax = dps.plot_density(idata, model=model, features="colour")
    assert ax.get_xlabel() == "colour"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["blue", "red"]
    # Whole numbers that are no codes keep their numbers.
    ax = dps.plot_density(idata, model=model, features="visits")
    assert not {"blue", "red"} & {tick.get_text() for tick in ax.get_xticklabels()}


def test_density_as_data_names_categories(run: Any) -> None:
    model, idata = run
    found = dps.density(idata, model=model, features="colour", grid=[0.0, 1.0, 2.0])
    assert found["category"].values.tolist() == ["blue", "red", ""]
    found = dps.density(idata, model=model, features=("visits", "colour"), num_samples=3)
    assert "category" not in found.coords
    assert found["category_bis"].values.tolist()[:2] == ["blue", "red"]


def test_density_of_a_column_is_that_of_rows_without_the_others(run: Any) -> None:
    """Whatever the order of the parts; a margin was once computed in the order of all columns."""
    model, idata = run
    grid = np.array([-1.0, 0.5, 4.0])
    found = dps.density(idata, model=model, features="height", grid=grid)["density"]
    rows = np.full((3, 3), np.nan)
    rows[:, 1] = grid
    expected = dps.predict(idata, rows, model=model)["log_predictive_density"]
    np.testing.assert_allclose(found.sel(statistic="mean"), np.exp(expected), rtol=1e-9)


@pytest.mark.slow
def test_the_order_of_columns_changes_no_draw(run: Any) -> None:
    """Bit for bit; also of predictions, for which columns may come in any order."""
    model, idata = run
    other_model, other = sampled(table()[list(PARTS)])
    for name in ("x_n_clusters", "x_weights", "x_height_mu", "x_visits_rate", "x_colour_p"):
        assert_array_equal(idata["posterior"][name], other["posterior"][name])
    holes = idata["posterior"]["x_unobserved"]
    assert_array_equal(holes, other["posterior"]["x_unobserved"])
    new = table()[:6]  # complete and incomplete rows
    found = dps.predict(idata, new[["visits", "height", "colour"]], model=model)
    expected = dps.predict(other, new, model=other_model)
    key = "log_predictive_density"
    np.testing.assert_allclose(found[key], expected[key], rtol=1e-12)
    labels = dps.sample_labels(idata, model=model, random_seed=2)
    assert_array_equal(labels, dps.sample_labels(other, model=other_model, random_seed=2))
    with model:
        drawn = pm.sample_posterior_predictive(idata, progressbar=False, random_seed=3)
    rows = drawn["posterior_predictive"]["x"]
    assert set(np.unique(rows.sel(column="colour"))) <= {0.0, 1.0}
    with model:
        density = pm.compute_log_likelihood(idata, progressbar=False, extend_inferencedata=False)
    with other_model:
        twin = pm.compute_log_likelihood(other, progressbar=False, extend_inferencedata=False)
    np.testing.assert_allclose(density["x"], twin["x"], rtol=1e-12)


# --- other families ---------------------------------------------------------------------------

GAUSSIAN = dps.DiagNormal(0.0, 0.1, 2.0, 1.0)


def declared(observed: Any, component: Any = GAUSSIAN, **options: Any) -> pm.Model:
    with pm.Model(coords=options.pop("coords", None)) as model:
        dps.DPMixture("x", 1.0, component, observed=observed, **options)
    return model


FRAME = pd.DataFrame({"b": [1.0, 2.0, np.nan], "a": [3.0, 4.0, 5.0]}, index=["u", "v", "w"])


def test_frames_name_rows_and_columns() -> None:
    model = declared(FRAME)
    assert model.named_vars_to_dims["x"] == ("x_row", "x_feature")
    assert model.coords["x_row"] == ("u", "v", "w")
    assert model.coords["x_feature"] == ("b", "a")
    assert model.coords["x_hole"] == ("w, b",)
    named = declared(FRAME, dims=("who", "what"))
    assert (named.coords["who"], named.coords["what"]) == (("u", "v", "w"), ("b", "a"))
    assert named.named_vars_to_dims["x_mu"] == ("x_cluster", "what")


def test_names_are_storable() -> None:
    frame = FRAME.set_axis([("b", 1), ("a", 2)], axis=1)
    frame.index = pd.MultiIndex.from_tuples([("u", 1), ("u", 2), ("v", 1)])
    model = declared(frame)
    assert model.coords["x_feature"] == ("b, 1", "a, 2")
    assert model.coords["x_row"] == ("u, 1", "u, 2", "v, 1")
    dates = declared(FRAME.set_index(pd.date_range("2020-01-01", periods=3)))
    assert np.array(dates.coords["x_row"]).dtype.kind == "M"
    plain = declared(FRAME.reset_index(drop=True))
    assert plain.coords["x_row"] is None


def test_series_name_rows() -> None:
    model = declared(FRAME["a"], dps.Normal(0.0, 0.1, 2.0, 1.0))
    assert model.named_vars_to_dims["x"] == ("x_row",)
    assert model.coords["x_row"] == ("u", "v", "w")
    bare = declared(FRAME["a"].reset_index(drop=True), dps.Normal(0.0, 0.1, 2.0, 1.0))
    assert "x" not in bare.named_vars_to_dims


def test_arrays_with_names_keep_their_dimensions() -> None:
    array = xr.DataArray(FRAME.to_numpy(), dims=("who", "what"), coords={"what": ["b", "a"]})
    model = declared(array)
    assert model.named_vars_to_dims["x"] == ("who", "what")
    assert model.coords["what"] == ("b", "a")
    assert model.named_vars_to_dims["x_mu"] == ("x_cluster", "what")
    assert "x" not in declared(xr.DataArray(FRAME.to_numpy())).named_vars_to_dims
    with pytest.raises(ValueError, match=r"dims=.* is not the order \('what', 'who'\)"):
        declared(array.T, dims=("who", "what"))


def test_frames_of_polars_name_columns() -> None:
    polars = pytest.importorskip("polars")
    model = declared(polars.DataFrame({"b": [1.0, 2.0], "a": [3.0, 4.0]}))
    assert model.coords["x_feature"] == ("b", "a")


def test_coordinates_of_the_model_go_before_names_of_the_data() -> None:
    coords = {"what": ["width", "length"]}
    model = declared(FRAME, dims=("who", "what"), coords=coords)
    assert model.coords["what"] == ("width", "length")
    with pytest.raises(ValueError, match="coordinate 'what' of the model has 'a' at position 0"):
        declared(FRAME, dims=("who", "what"), coords={"what": ["a", "b"]})


def test_categories_of_columns_that_differ_are_named() -> None:
    frame = pd.DataFrame({"eth": list("ANNA"), "age": ["F0", "F2", "F1", "F2"]})
    component, _ = dps.Product.from_data(frame).read_table(frame)
    component = component.validate_rows(np.array([[0.0, 0], [1, 2], [1, 1], [0, 2]]))
    names = component.category_names("category_p")
    assert names is not None
    assert names.tolist() == [["A", "N", ""], ["F0", "F1", "F2"]]
    assert component.families["category"].category_names("p") is None
