"""Default grids of `density`: clusters that are narrow in the range of the data are resolved."""

import warnings

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.density.feature_laws import NumberLaw
from pymc_dpsplit.posterior.density.grids import chosen_grids
from pymc_dpsplit.posterior.plots.plot_density import _levels


def far_apart(centres, n_features: int | None = None) -> xr.DataTree:
    """Clusters of equal weight and standard deviations near 1, at these places."""
    rng, centres = np.random.default_rng(0), np.asarray(centres, float)
    features = () if n_features is None else (n_features,)
    centres = centres.reshape(-1, *(1 for _ in features)) * np.ones(features)
    shape = (2, 20, *centres.shape)
    posterior = {
        "x_weights": np.full(shape[:3], 1 / len(centres)),
        "x_mu": centres + rng.normal(0, 0.1, shape),
        "x_sigma": np.exp(rng.normal(0, 0.05, shape)),
        "x_n_clusters": np.full(shape[:2], len(centres)),
    }
    observed = {"x": np.concatenate([centres - 1, centres, centres + 1])}
    over = ["x_cluster", "feature"][: 1 + len(features)]
    dims = {"x_weights": ["x_cluster"], "x_mu": over, "x_sigma": over, "x": ["obs", *over[1:]]}
    return az.from_dict({"posterior": posterior, "observed_data": observed}, dims=dims)


@pytest.mark.parametrize(
    "centres",
    [
        [0, 1e3],
        [0, 1e5],
        np.arange(10) * 1e3,
        np.arange(60) * 20,
        np.arange(60) * 1e3,
        np.cumsum(np.geomspace(20, 1e5, 60)),
    ],
)
def test_narrow_clusters_are_resolved(centres):
    found = dps.density(far_apart(centres))
    grid = found["grid"].to_numpy()
    mean = found["density"].sel(statistic="mean").to_numpy()
    assert len(grid) <= 1000
    assert (np.diff(grid) > 0).all()
    assert np.trapezoid(mean, grid) == pytest.approx(1, abs=0.01)
    for centre in centres:
        near = np.abs(grid - centre) < 8
        share = np.trapezoid(mean[near], grid[near])
        assert share == pytest.approx(1 / len(centres), rel=0.05)
        # Of normal distributions whose means and spreads differ a little between draws.
        assert mean[near].max() * len(centres) == pytest.approx(0.397, rel=0.03)


def test_wide_clusters_have_an_even_grid():
    grid = dps.density(far_apart([0, 30]))["grid"].to_numpy()
    np.testing.assert_allclose(grid, np.linspace(grid[0], grid[-1], 500))
    plane = dps.density(far_apart([0, 10], 2))
    assert dict(plane.sizes) == {"grid": 100, "grid_bis": 100, "statistic": 4}


@pytest.mark.parametrize("centres", [[0, 1e3], np.arange(6) * 1e3])
def test_narrow_clusters_of_two_features_are_resolved(centres):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dps.density(far_apart(centres, 2))
    across, up = (found[dim].to_numpy() for dim in ("grid", "grid_bis"))
    mean = found["density"].sel(statistic="mean").to_numpy()
    assert max(mean.shape) <= 200
    mass = np.trapezoid(np.trapezoid(mean, up), across)
    assert mass == pytest.approx(1, abs=0.01)


def test_clusters_that_no_default_grid_resolves_are_reported():
    with pytest.warns(UserWarning, match=r"does not resolve all clusters.*give density a grid="):
        dps.density(far_apart(np.arange(60) * 1e3, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dps.density(far_apart(np.arange(60) * 1e3, 2), grid=([0.0, 1.0], [0.0, 1.0]))


def test_contours_enclose_their_shares_on_uneven_grids():
    """The contour that encloses a share of one normal distribution is known."""
    x = np.r_[np.linspace(-6, 0, 400), np.linspace(0, 6, 60)[1:]]
    plane = stats.norm.pdf(x)[:, None] * stats.norm.pdf(x)
    areas = np.gradient(x)[:, None] * np.gradient(x)
    found = _levels(plane.ravel(), areas.ravel())
    expected = (1 - np.array([0.95, 0.8, 0.5, 0.2])) / (2 * np.pi)
    np.testing.assert_allclose(found, expected, rtol=0.1)


def test_nothing_is_added_where_a_density_is_infinite():
    """It would be as high as the added points are near."""
    law, values = stats.gamma(0.3), np.linspace(0.01, 5, 50)

    def density(points: np.ndarray) -> np.ndarray:
        return law.pdf(points[:, 0])[None]

    (grid,) = chosen_grids(None, values[:, None], [False], [NumberLaw(density, 0.0, 5e3, values)])
    even = np.linspace(grid[0], grid[-1], 500)
    assert law.pdf(grid).max() == law.pdf(even).max()
