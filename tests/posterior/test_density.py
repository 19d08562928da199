import numpy as np
import pytest
import xarray as xr
from scipy.stats import multivariate_normal, norm

from pymc_dpsplit.posterior.trace.gaussian_density import density_at, gaussian_draws, is_gaussian


def test_scalar_density_is_that_of_the_occupied_clusters(line_trace):
    points = np.linspace(-3, 6, 50)
    found = density_at(points[:, None], gaussian_draws(line_trace, "x", None, 100))
    expected = (0.5 * norm.pdf(points, 0, 1) + 0.3 * norm.pdf(points, 4, 0.5)) / 0.8
    assert found.shape == (6, 50)
    np.testing.assert_allclose(found, np.broadcast_to(expected, (6, 50)), rtol=1e-12)


def test_plane_density_is_the_marginal(plane_trace, rng):
    points = rng.normal(size=(20, 2)) * 3
    found = density_at(points, gaussian_draws(plane_trace, "x", (2, 0), 100))
    alone = multivariate_normal([2, 0], [[3, 0.1], [0.1, 2]]).pdf(points)
    other = multivariate_normal([0, 5], np.diag([3, 1])).pdf(points)
    expected = np.repeat([alone * 2 / 3 + other / 3, alone], 3, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_sigma_per_feature(plane_trace, rng):
    posterior = plane_trace["posterior"].to_dataset()
    sigma = np.sqrt(np.diagonal(posterior["x_cov"].values, axis1=-2, axis2=-1))
    posterior["x_sigma"] = posterior["x_mu"].copy(data=sigma)
    plane_trace["posterior"] = posterior.drop_vars("x_cov")
    points = rng.normal(size=(20, 2))
    found = density_at(points, gaussian_draws(plane_trace, "x", (0, 1), 100))
    expected = multivariate_normal([0, 1], np.diag([2.0, 1.0])).pdf(points)
    np.testing.assert_allclose(found[-1], expected, rtol=1e-12)


def test_reads_no_more_draws_than_asked(line_trace):
    assert gaussian_draws(line_trace, "x", None, 4).weights.shape == (4, 3)


def test_thinned_draws_are_those_of_the_trace(plane_trace):
    # The first and the last draw, which are of different chains.
    draws = gaussian_draws(plane_trace, "x", (0, 1), 2)
    np.testing.assert_allclose(draws.weights[:, 1], [1 / 3, 0])
    np.testing.assert_allclose(draws.mu[0, 1], [5, -5])
    assert np.isfinite(draws.cov).all()


def test_other_families_are_told_apart(line_trace):
    assert is_gaussian(line_trace, "x")
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.drop_vars("x_sigma")
    assert not is_gaussian(line_trace, "x")


def test_parameters_of_the_same_names_are_not_those_of_gaussians(line_trace):
    flag = line_trace["posterior"]["x_n_clusters"]
    for is_conjugate in (True, False):
        stats = xr.Dataset({"x_is_conjugate": flag.copy(data=np.full(flag.shape, is_conjugate))})
        line_trace["sample_stats"] = xr.DataTree(stats)
        assert is_gaussian(line_trace, "x") is is_conjugate


def test_draws_without_weight_are_refused(line_trace):
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.assign(x_weights=posterior["x_weights"] * 0)
    with pytest.raises(ValueError, match="record no weight"):
        gaussian_draws(line_trace, "x", None, 10)
