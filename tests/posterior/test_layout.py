"""The dimensions of a trace, as users leave them."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
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


@pytest.mark.parametrize("names", [["a", "b"], None])
def test_features_in_another_order_than_the_model_has_are_refused(names, rng):
    """Parameters are read by position, so that they would be those of another feature."""
    rows = rng.normal([0.0, 9.0], 1.0, (8, 2))
    with pm.Model(coords=None if names is None else {"x_feature": names}) as model:
        dps.DPMixture("x", 1.0, dps.DiagNormal.from_data(rows), observed=rows)
        idata = pm.sample(
            draws=4, tune=4, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    posterior = idata["posterior"].to_dataset()
    turned = posterior.isel(x_feature=[1, 0])
    back = turned.sel(x_feature=list(model.coords["x_feature"]))
    for read in (
        lambda of: dps.predict(of, rows[:2], model=model),
        lambda of: dps.density(of, model=model),
    ):
        with pytest.raises(ValueError, match=r"x_feature has its coordinates in another order"):
            read(turned)
        xr.testing.assert_equal(read(back), read(posterior))
