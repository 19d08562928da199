"""The dimensions of a trace, as users leave them."""

import numpy as np
import pytest
import xarray as xr

from pymc_dpsplit.posterior.plots.plot_density import plot_density
from pymc_dpsplit.posterior.plots.plot_n_clusters import plot_n_clusters
from pymc_dpsplit.posterior.trace.gaussian_density import gaussian_draws
from pymc_dpsplit.posterior.trace.groups import find_observed, group_of


def test_one_draw_keeps_its_number(plane_trace):
    posterior = group_of(plane_trace.isel(chain=1, draw=2), "posterior")
    assert posterior["x_mu"].dims[:3] == ("chain", "draw", "x_cluster")
    assert (int(posterior["chain"][0]), int(posterior["draw"][0])) == (1, 2)


def test_stacked_draws_come_back_in_order(plane_trace):
    posterior = plane_trace["posterior"].to_dataset()
    shuffled = posterior.stack(sample=("chain", "draw")).isel(sample=[3, 1, 5, 0, 4, 2])
    xr.testing.assert_equal(group_of(shuffled, "posterior"), group_of(plane_trace, "posterior"))
    with pytest.raises(ValueError, match="not the same draws of every chain; give the trace"):
        group_of(shuffled.isel(sample=[0, 1, 2]), "posterior")


def test_turned_data_and_parameters_are_read_alike(plane_trace):
    expected = gaussian_draws(plane_trace, "x", (0, 2), 10, "cov")
    observed = find_observed(plane_trace, "x")
    turned = xr.DataTree.from_dict(
        {
            name: group.to_dataset().map(lambda of: of.transpose(*reversed(of.dims)))
            for name, group in plane_trace.children.items()
        }
    )
    draws = gaussian_draws(turned, "x", (0, 2), 10, "cov")
    for found, wanted in zip(draws, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    xr.testing.assert_equal(find_observed(turned, "x"), observed)


@pytest.mark.parametrize(
    ("variable", "value", "fault"),
    [
        ("x_weights", -0.1, "x_weights holds values in idata that are not between"),
        ("x_weights", np.nan, "x_weights holds values in idata that are not between"),
        ("x_mu", np.nan, "x_mu is not finite for a cluster in use"),
        ("x_cov", np.inf, "x_cov is not finite for a cluster in use"),
        ("x_cov", -1.0, "covariance of a cluster is not positive definite"),
    ],
)
def test_damaged_gaussians_are_refused(variable, value, fault, plane_trace):
    posterior = plane_trace["posterior"].to_dataset()
    values = posterior[variable].to_numpy().copy()
    values.flat[0] = value
    plane_trace["posterior"] = posterior.assign({variable: posterior[variable].copy(data=values)})
    with pytest.raises(ValueError, match=f"{fault}.*; give the trace"):
        plot_density(plane_trace)


def test_gaussians_of_other_features_are_refused(plane_trace):
    plane_trace["posterior"] = plane_trace["posterior"].to_dataset().isel(feature=[0, 1])
    with pytest.raises(ValueError, match=r"x_mu has shape \(4, 2\) .* of shape \(3,\); give"):
        plot_density(plane_trace)


def test_number_of_clusters_too_large_to_count_is_refused(line_trace):
    posterior = line_trace["posterior"].to_dataset()
    counts = posterior["x_n_clusters"]
    for most in (2_000_000_000, 10**12):
        changed = counts.where(counts < 3, most)
        line_trace["posterior"] = posterior.assign(x_n_clusters=changed)
        with pytest.raises(ValueError, match=f"x_n_clusters is .*{most} in idata, .*; give"):
            plot_n_clusters(line_trace)
