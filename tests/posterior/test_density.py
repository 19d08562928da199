"""Gaussian mixtures as a trace records them: how they are told apart, and their density."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.stats import multivariate_normal, norm

import pymc_dpsplit as dps
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.posterior.diagnostics.probes import probe_densities
from pymc_dpsplit.posterior.trace import gaussian_density
from pymc_dpsplit.posterior.trace.gaussian_density import (
    density_at,
    gaussian_draws,
    gaussian_spread,
)


def test_scalar_density_is_that_of_the_occupied_clusters(line_trace):
    points = np.linspace(-3, 6, 50)
    found = density_at(points[:, None], gaussian_draws(line_trace, "x", None, 100, "sigma"))
    expected = (0.5 * norm.pdf(points, 0, 1) + 0.3 * norm.pdf(points, 4, 0.5)) / 0.8
    assert found.shape == (6, 50)
    np.testing.assert_allclose(found, np.broadcast_to(expected, (6, 50)), rtol=1e-12)


def test_plane_density_is_the_marginal(plane_trace, rng):
    points = rng.normal(size=(20, 2)) * 3
    found = density_at(points, gaussian_draws(plane_trace, "x", (2, 0), 100, "cov"))
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
    found = density_at(points, gaussian_draws(plane_trace, "x", (0, 1), 100, "sigma"))
    expected = multivariate_normal([0, 1], np.diag([2.0, 1.0])).pdf(points)
    np.testing.assert_allclose(found[-1], expected, rtol=1e-12)


def test_reads_no_more_draws_than_asked(line_trace):
    assert gaussian_draws(line_trace, "x", None, 4, "sigma").weights.shape == (4, 3)


def test_thinned_draws_are_those_of_the_trace(plane_trace):
    # The first and the last draw, which are of different chains.
    draws = gaussian_draws(plane_trace, "x", (0, 1), 2, "cov")
    np.testing.assert_allclose(draws.weights[:, 1], [1 / 3, 0])
    np.testing.assert_allclose(draws.mu[0, 1], [5, -5])
    assert np.isfinite(draws.cov).all()


# --- which traces are of Gaussians --------------------------------------------------------


def with_more(idata: xr.DataTree, **added: tuple[str, ...]) -> xr.DataTree:
    """The trace with variables of ones more, as those of Deterministics, over these dimensions."""
    posterior = idata["posterior"].to_dataset()
    sizes = dict(posterior.sizes)
    for name, dims in added.items():
        shape = [sizes[dim] if dim in sizes else posterior.sizes["x_cluster"] for dim in dims]
        over = ("chain", "draw", *dims)
        values = np.ones((posterior.sizes["chain"], posterior.sizes["draw"], *shape))
        posterior = posterior.assign({name: (over, values)})
    idata["posterior"] = posterior
    return idata


def without(idata: xr.DataTree, *names: str) -> xr.DataTree:
    idata["posterior"] = idata["posterior"].to_dataset().drop_vars(names)
    return idata


K, D = "x_cluster", "feature"


def test_gaussians_are_told_from_their_traces(line_trace, plane_trace):
    assert gaussian_spread(line_trace, "x") == "sigma"
    assert gaussian_spread(plane_trace, "x") == "cov"
    without(plane_trace, "x_cov")
    assert gaussian_spread(plane_trace, "x") is None
    assert gaussian_spread(with_more(plane_trace, x_sigma=(K, D)), "x") == "sigma"
    assert gaussian_spread(with_more(plane_trace, x_sigma=(K,)), "x") == "sigma"


@pytest.mark.parametrize(
    ("added", "spread"),
    [
        ({"x_cov": (K,)}, "sigma"),
        ({"x_cov": ("x_cov_dim_0",)}, "sigma"),
        ({"x_cov": (K, D, "feature_bis")}, "sigma"),  # the means have no feature
        ({"x_snr": (K,), "x_log_mu": (K,), "x_scale": (K,)}, "sigma"),
        ({"x_rate": ("x_rate_dim_0", "x_rate_dim_1")}, "sigma"),
        # These may be the parameters of another family, and the Gaussian ones of the user.
        ({"x_rate": (K, D)}, None),
        ({"x_beta": (K, D)}, None),
        ({"x_height_mu": (K, D), "x_height_cov": (K, D, "feature_bis")}, None),
        ({"x_visits_rate": (K, D)}, None),
    ],
)
def test_variables_of_the_user_are_no_parameters(added, spread, line_trace):
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.assign_coords(feature=range(2), feature_bis=range(2))
    assert gaussian_spread(with_more(line_trace, **added), "x") == spread


@pytest.mark.parametrize(
    ("mu", "sigma"),
    [
        (("x_mu_dim_0",), ("x_sigma_dim_0",)),  # as Deterministics without dims
        ((K,), ()),  # a known spread with a prior
        ((K,), (K, D)),
        ((K, D, "feature_bis"), (K, D, "feature_bis")),
    ],
)
def test_parameters_of_gaussians_have_their_dimensions(mu, sigma, line_trace):
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.assign_coords(feature=range(2), feature_bis=range(2))
    without(line_trace, "x_mu", "x_sigma")
    assert gaussian_spread(with_more(line_trace, x_mu=mu, x_sigma=sigma), "x") is None


def test_sigma_computed_from_a_covariance_is_not_taken_for_it(plane_trace):
    assert gaussian_spread(with_more(plane_trace, x_sigma=(K, D)), "x") == "cov"


def test_traces_made_by_hand_need_no_names_of_dimensions(line_trace, plane_trace):
    for idata, spread in ((line_trace, "sigma"), (plane_trace, "cov")):
        posterior = idata["posterior"].to_dataset()
        bare = {
            name: (("chain", "draw", *(f"{name}_dim_{i}" for i in range(of.ndim - 2))), of.values)
            for name, of in posterior.data_vars.items()
        }
        idata["posterior"] = xr.DataTree(xr.Dataset(bare))
        assert gaussian_spread(idata, "x") == spread


def test_every_family_is_known_by_its_parameters():
    public = (getattr(dps, name) for name in dps.__all__)
    families = [of for of in public if isinstance(of, type) and issubclass(of, ComponentFamily)]
    sets = [set(of.parameters) for of in families if hasattr(of, "parameters")]
    assert len(sets) > 10
    known = [*gaussian_density._GAUSSIAN, *gaussian_density._OTHERS, {"mu"}]
    assert all(of in known for of in sets)


def test_parameters_of_the_same_names_are_not_those_of_gaussians(line_trace):
    flag = line_trace["posterior"]["x_n_clusters"]
    for is_conjugate in (True, False):
        stats = xr.Dataset({"x_is_conjugate": flag.copy(data=np.full(flag.shape, is_conjugate))})
        line_trace["sample_stats"] = xr.DataTree(stats)
        assert (gaussian_spread(line_trace, "x") == "sigma") is is_conjugate


def test_the_model_tells_the_family(line_trace, plane_trace):
    line, plane = np.linspace(-2, 5, 40), np.arange(30.0).reshape(10, 3) / 5
    counts = np.arange(40)[:, None]
    for component, rows, idata, spread in (
        (dps.Normal(0.0, 0.1, 2.0, 1.0), line, line_trace, "sigma"),
        (dps.NormalKnownSigma(0.0, 1.0, 1.0), line, line_trace, None),
        (dps.Poisson(1.0, 0.2), counts, line_trace, None),
        (dps.MvNormal.from_data(plane), plane, plane_trace, "cov"),
        (dps.SphericalNormal.from_data(plane), plane, with_more(plane_trace, x_sigma=(K,)),
         "sigma"),
    ):  # fmt: skip
        with pm.Model() as model:
            dps.DPMixture("x", 1.0, component, observed=rows)
        assert gaussian_spread(idata, "x", model) == spread


def test_a_model_without_the_mixture_leaves_it_to_the_trace(line_trace):
    with pm.Model() as model:
        dps.DPMixture("y", 1.0, dps.Poisson(1.0, 0.2), observed=np.arange(5)[:, None])
    assert gaussian_spread(line_trace, "x", model) == "sigma"


def test_the_model_of_groups_tells_the_family(line_trace):
    counts, groups = np.arange(6)[:, None], ["a", "a", "a", "b", "b", "b"]
    with pm.Model() as model:
        dps.HDPMixture("x", 1.0, 1.0, dps.Poisson(1.0, 0.2), observed=counts, groups=groups)
    assert gaussian_spread(line_trace, "x", model) is None


@pytest.mark.parametrize("dims", [(K,), ("x_cov_dim_0",), (K, D)])
@pytest.mark.parametrize("has_model", [True, False])
def test_a_variable_called_cov_changes_nothing(dims, has_model, line_trace):
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=np.linspace(-2, 5, 40))
        pm.Deterministic("x_cov", model["x_sigma"])
    given = model if has_model else None
    posterior = line_trace["posterior"].to_dataset()
    posterior = posterior.assign_coords(feature=range(2))
    line_trace["posterior"] = posterior.assign(
        x_n_clusters=posterior["x_n_clusters"] * 0 + 2,
        x_new_weight=posterior["x_n_clusters"] * 0 + 0.2,
    )
    readers = (
        lambda: dps.density(line_trace, model=given),
        lambda: probe_densities(line_trace, "x", given),
    )
    expected = [read() for read in readers]
    with_more(line_trace, x_cov=dims)
    for read, wanted in zip(readers, expected, strict=True):
        xr.testing.assert_equal(read(), wanted)


def test_draws_without_weight_are_refused(line_trace):
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.assign(x_weights=posterior["x_weights"] * 0)
    with pytest.raises(ValueError, match="record no weight"):
        gaussian_draws(line_trace, "x", None, 10, "sigma")


@pytest.mark.parametrize("group", [None, 0])
def test_draws_with_clusters_that_were_not_recorded_are_refused(group):
    """Their weights would be shared out among the clusters that were."""
    rows = np.repeat([-9.0, -3.0, 3.0, 9.0], 8) + np.tile(np.linspace(-0.3, 0.3, 8), 4)
    component = dps.Normal(0.0, 0.1, 2.0, 1.0)
    with pm.Model() as model:
        if group is None:
            dps.DPMixture("x", 1.0, component, observed=rows, max_clusters=2)
        else:
            data = {"groups": np.repeat([0, 1], 16), "observed": rows}
            dps.HDPMixture("x", 1.0, 1.0, component, max_clusters=2, **data)
        idata = pm.sample(
            draws=5, tune=20, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    for given in (None, model):
        with pytest.raises(ValueError, match=r"more clusters than the 2 rows kept.*max_clusters="):
            dps.density(idata, model=given, group=group)
