"""`density` as a table: margins, distribution functions and quantiles, against SciPy."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.density.feature_laws import FAR_OUT, CountLaw, NumberLaw
from pymc_dpsplit.posterior.diagnostics.probes import probe_densities
from tests.support.exact_traces import exact_trace
from tests.support.families import component_of, dataset_of


def of_line(points, which):
    """Density or distribution function of the mixture in `line_trace`."""
    laws = getattr(stats.norm(0, 1), which), getattr(stats.norm(4, 0.5), which)
    return (0.5 * laws[0](points) + 0.3 * laws[1](points)) / 0.8


def test_gaussian_table_is_that_of_scipy(line_trace):
    found = dps.density(line_trace, probabilities=[0.1, 0.5])
    assert found["density"].dims == ("grid", "statistic")
    assert (found.sizes["grid"], found["grid"].attrs["feature"]) == (500, "x")
    grid = found["grid"].to_numpy()
    for key, which in (("density", "pdf"), ("cdf", "cdf")):
        for statistic in ("mean", "eti89_lb", "eti89_ub"):
            drawn = found[key].sel(statistic=statistic)
            np.testing.assert_allclose(drawn, of_line(grid, which), rtol=1e-9)
    np.testing.assert_allclose(found["density"].sel(statistic="sd"), 0, atol=1e-12)
    quantiles = found["quantile"].sel(statistic="mean")
    np.testing.assert_allclose(of_line(quantiles.to_numpy(), "cdf"), [0.1, 0.5], rtol=1e-9)


def test_table_of_two_features_is_over_both_grids(plane_trace):
    found = dps.density(plane_trace, features=("c", "a"), grid=([0.0, 1.0], [0.0, 2.0, 4.0]))
    assert found["density"].dims == ("grid", "grid_bis", "statistic")
    assert [found[dim].attrs["feature"] for dim in ("grid", "grid_bis")] == ["c", "a"]
    assert "cdf" not in found
    alone = stats.multivariate_normal([2, 0], [[3, 0.1], [0.1, 2]])
    other = stats.multivariate_normal([0, 5], np.diag([3, 1]))
    at = [1.0, 4.0]
    expected = 0.5 * alone.pdf(at) + 0.5 * (alone.pdf(at) * 2 / 3 + other.pdf(at) / 3)
    assert float(found["density"].sel(grid=1.0, grid_bis=4.0, statistic="mean")) == pytest.approx(
        expected
    )


def test_table_given_another_feature_is_that_of_scipy(plane_trace):
    """The density of two features over that of one, and its integral."""
    grid = np.linspace(-20.0, 20.0, 4001)
    given = {"b": 0.5}
    found = dps.density(plane_trace, features="a", given=given, grid=grid, probabilities=[0.5])
    assert found.attrs["given"] == "b = 0.5"
    at, halves = np.column_stack([grid, np.full(len(grid), 0.5)]), []
    cov = [[2.0, 0.5], [0.5, 1.0]]
    first = stats.multivariate_normal([0.0, 1.0], cov), stats.norm(1.0, 1.0).pdf(0.5)
    other = stats.multivariate_normal([5.0, -5.0], np.diag([1.0, 2.0]))
    of_other = stats.norm(-5.0, np.sqrt(2.0)).pdf(0.5)
    for w, v in ((0.6, 0.3), (0.9, 0.0)):
        joint = w * first[0].pdf(at) + v * other.pdf(at)
        halves.append(joint / (w * first[1] + v * of_other))
    middle = np.mean(halves, axis=0)
    np.testing.assert_allclose(found["density"].sel(statistic="mean"), middle, rtol=1e-9)
    assert np.trapezoid(middle, grid) == pytest.approx(1.0, abs=1e-9)
    cdf = found["cdf"].sel(statistic="mean").to_numpy()
    np.testing.assert_allclose(np.gradient(cdf, grid)[1:-1], middle[1:-1], atol=1e-4)
    plane = dps.density(plane_trace, given={1: 0.5})
    assert [plane[of].attrs["feature"] for of in ("grid", "grid_bis")] == ["a", "c"]


def test_counts_given_another_count_are_a_ratio(counted):
    _, model, idata = counted
    grid = np.arange(300.0)
    found = dps.density(idata, model=model, features=0, given={1: 2}, grid=grid, num_samples=1)[
        "density"
    ].sel(statistic="mean")
    both = dps.density(idata, model=model, features=(0, 1), grid=(grid, [2.0]), num_samples=1)
    of_other = dps.density(idata, model=model, features=1, grid=[2.0], num_samples=1)
    expected = both["density"].sel(statistic="mean")[:, 0] / float(
        of_other["density"].sel(statistic="mean")[0]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert float(found.sum()) == pytest.approx(1.0, abs=1e-6)
    with pytest.raises(ValueError, match="given holds values of density zero"):
        dps.density(idata, model=model, features=0, given={1: 0.5})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"given": [1.0]}, "is no dict of values; give one"),
        ({"given": {}}, "is no dict of values; give one"),
        ({"given": {"d": 1.0}}, "given has 'd', which is no feature, or one that is asked for"),
        ({"given": {"a": 1.0}, "features": "a"}, "which is no feature, or one that is asked for"),
        ({"given": {"a": np.nan}}, "given has nan for 'a'; give a finite number"),
        ({"given": {"a": "x"}}, "given has 'x' for 'a'; give a finite number"),
        ({"given": {0: 1.0, 1: 1.0, 2: 1.0}}, "given has a value for every feature"),
    ],
)
def test_faults_of_given_values_are_named(arguments, message, plane_trace):
    with pytest.raises(ValueError, match=message):
        dps.density(plane_trace, **arguments)


def test_scalars_have_nothing_to_be_given(line_trace):
    with pytest.raises(ValueError, match="given is for a mixture of several features"):
        dps.density(line_trace, given={0: 1.0})


def test_table_goes_through_netcdf(line_trace, tmp_path):
    found = dps.density(line_trace, grid=[0.0, 1.0])
    found.to_netcdf(tmp_path / "density.nc")
    assert xr.load_dataset(tmp_path / "density.nc").equals(found)


@pytest.fixture(scope="module")
def counted():
    """A mixture of two columns of counts, and its exact draws."""
    rows = dataset_of("Poisson", "separated", 2)[:5]
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, component_of("Poisson", 2), observed=rows)
    idata = exact_trace("Poisson", rows, 1.0, (2, 20), seed=1)
    dims = ("obs", "x_feature")
    idata["observed_data"] = xr.DataTree(xr.Dataset({"x": (dims, rows)}))
    return rows, model, idata


def test_margin_of_counts_is_the_sum_over_the_other_column(counted):
    _, model, idata = counted
    high = np.arange(400.0)
    margin = dps.density(idata, model=model, features=1, grid=high, num_samples=5)
    both = dps.density(idata, model=model, features=(1, 0), grid=(high[:30], high), num_samples=5)
    summed = both["density"].sel(statistic="mean").sum("grid_bis")
    np.testing.assert_allclose(
        summed, margin["density"].sel(statistic="mean", grid=high[:30]), rtol=1e-6
    )
    assert margin.attrs["is_discrete"]
    mean = margin["density"].sel(statistic="mean").to_numpy()
    assert mean.sum() == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(margin["cdf"].sel(statistic="mean"), mean.cumsum())
    new = dps.predict(idata.isel(draw=slice(None)), np.array([[np.nan, 3.0]]), model=model)[
        "log_predictive_density"
    ]
    every = dps.density(idata, model=model, features=1, grid=[3.0], num_samples=40)
    assert float(every["density"].sel(statistic="mean")[0]) == pytest.approx(float(np.exp(new)[0]))


def test_figure_of_counts_shows_probabilities(counted):
    rows, model, idata = counted
    ax = dps.plot_density(idata, model=model, features=0)
    assert ax.get_ylabel() == "probability"
    found = dps.density(idata, model=model, features=0)["density"].sel(statistic="mean")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found)
    shares = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(shares, np.bincount(rows[:, 0].astype(int)) / len(rows))
    default = dps.plot_density(idata, model=model)
    np.testing.assert_allclose(default.lines[0].get_ydata(), found)
    with pytest.raises(ValueError, match="include one of whole numbers, which has no contours"):
        dps.plot_density(idata, model=model, features=(0, 1))


def test_other_families_need_the_model(counted):
    with pytest.raises(ValueError, match=r"mixture x is not of Gaussians.*; give model="):
        dps.density(counted[2])


@pytest.mark.parametrize("has_dims", [True, False])
def test_variables_called_as_those_of_gaussians_make_no_density_of_normals(has_dims, counted):
    rows, _, idata = counted
    rate = idata["posterior"]["x_rate"]
    dims = ("x_cluster", "x_feature")
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, component_of("Poisson", 2), observed=rows)
        named = {"x_mu": model["x_rate"], "x_sigma": pm.math.sqrt(model["x_rate"])}
        for name, of in named.items():
            pm.Deterministic(name, of, dims=dims if has_dims else None)
    expected = dps.density(idata, model=model, features=0)
    posterior = idata["posterior"].to_dataset().rename({rate.dims[3]: dims[1]})
    for name, of in (("x_mu", rate), ("x_sigma", np.sqrt(rate))):
        own = dims if has_dims else [f"{name}_dim_{i}" for i in range(2)]
        posterior[name] = (("chain", "draw", *own), of.values)
    idata = xr.DataTree.from_dict({**idata.children, "posterior": posterior})
    found = dps.density(idata, model=model, features=0)
    assert found.attrs["is_discrete"]
    xr.testing.assert_identical(found, expected)
    with pytest.raises(ValueError, match=r"mixture x is not of Gaussians.*; give model="):
        dps.density(idata)
    assert probe_densities(idata, "x", None) is None
    assert probe_densities(idata, "x", model) is not None


def test_numbers_are_integrated_to_within_the_cells():
    law = stats.expon()
    values = np.array([0.3, 1.0, 2.0])
    found = NumberLaw(lambda points: np.array([law.pdf(points[:, 0])]), 0.0, 30.0, values)
    grid = np.array([-1.0, 0.5, 2.0, 29.0])
    np.testing.assert_allclose(found.cdf(grid)[0], law.cdf(grid), atol=1e-5)
    # The law ends where the range does.
    cut = NumberLaw(found.density, 0.0, 1.0, values)
    assert np.isnan(cut.quantiles(np.array([0.3, 0.7]))).tolist() == [[False, True]]
    np.testing.assert_allclose(found.quantiles(np.array([0.5])), law.ppf(0.5), atol=1e-5)


MIXED_SCALES = {
    "infinite at 0": [stats.gamma(0.1), stats.gamma(0.5)],
    "nearly all at 0": [stats.gamma(0.02), stats.gamma(0.02, scale=1e3)],
    "scales far apart": [stats.expon(), stats.expon(scale=1e4)],
    "narrow beside wide": [stats.gamma(1e6, scale=1e-6), stats.expon(scale=1e4)],
    "heavy tail": [stats.invgamma(1.5), stats.invgamma(1.1, scale=100.0)],
    "of any sign": [stats.norm(-1e4, 1e3), stats.norm(2.0, 1e-3)],
}


@pytest.mark.parametrize("name", MIXED_SCALES)
def test_laws_of_different_scales_lose_no_mass(name, rng):
    laws = MIXED_SCALES[name]
    values = np.concatenate([law.rvs(100, random_state=rng) for law in laws])
    values = np.maximum(values, 1e-300) if name != "of any sign" else values

    def density(points):
        return np.mean([law.pdf(points[:, 0]) for law in laws], 0)[None]

    spread = np.ptp(values)
    low = 0.0 if values.min() > 0 else values.min() - FAR_OUT * spread
    found = NumberLaw(density, low, values.max() + FAR_OUT * spread, values)
    grid = np.quantile(values, np.linspace(0.02, 0.98, 25))
    expected = np.mean([law.cdf(grid) for law in laws], 0)
    np.testing.assert_allclose(found.cdf(grid)[0], expected, atol=5e-4)
    levels = np.array([0.05, 0.25, 0.75, 0.95])
    reached = np.mean([law.cdf(found.quantiles(levels)[0]) for law in laws], 0)
    np.testing.assert_allclose(reached, levels, atol=5e-4)


def test_quantiles_of_counts_are_those_of_scipy():
    law, levels = stats.poisson(4.2), np.array([0.01, 0.05, 0.5, 0.999])
    found = CountLaw(lambda points: np.array([law.pmf(points[:, 0])]), 12)
    assert found.quantiles(levels[:3]).tolist() == [law.ppf(levels[:3]).tolist()]
    assert np.isnan(CountLaw(found.density, 5).quantiles(levels[3:])).all()
    np.testing.assert_allclose(found.cdf(np.array([-2.0, 0.0, 30.0]))[0], law.cdf([-2, 0, 30]))
    with pytest.raises(ValueError, match="the counts reach 200000, more than can be tabulated"):
        CountLaw(found.density, 200_000).quantiles(levels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": [1.0, 0.0]}, "grid must hold ascending finite numbers for 1 features; give"),
        ({"grid": [np.nan]}, "grid must hold ascending finite numbers for 1 features; give"),
        ({"probabilities": [1.0]}, r"probabilities=\[1.0\] must lie between 0 and 1; give"),
    ],
)
def test_faults_of_arguments_are_named(arguments, message, line_trace):
    with pytest.raises(ValueError, match=message):
        dps.density(line_trace, **arguments)


def test_fractions_are_no_grid_of_counts(counted):
    _, model, idata = counted
    with pytest.raises(ValueError, match="grid holds fractions for a feature of whole numbers"):
        dps.density(idata, model=model, features=0, grid=[0.5])


def test_columns_of_a_product_know_whether_they_are_counted():
    mixed = dps.Product(n=dps.Poisson(1.0, 1.0), y=dps.Normal(0, 0.1, 2, 1))
    assert mixed.for_n_features(3).discrete_features(3).tolist() == [True, True, False]


def test_a_model_of_other_features_is_refused(counted):
    _, _, idata = counted
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=np.arange(5.0))
    with pytest.raises(ValueError, match="x has 2 features in idata, but 1 in the model; give"):
        dps.density(idata, model=model)
