import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.partitions.similarity import similarity_matrix
from pymc_dpsplit.posterior.plots.plot_density import plot_density
from pymc_dpsplit.posterior.plots.plot_n_clusters import plot_n_clusters, plot_prior_n_clusters
from pymc_dpsplit.posterior.plots.plot_similarity import plot_similarity


def area(across, height):
    return float(np.trapezoid(height, across))


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_density_of_a_scalar(line_trace):
    ax = plot_density(line_trace)
    (line,) = ax.lines
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "density")
    assert legend_of(ax) == ["data", "89 % band", "posterior mean"]
    assert len(ax.collections) == 1
    assert sum(bar.get_height() * bar.get_width() for bar in ax.patches) == pytest.approx(1)
    # Almost all of the mass lies within the data and their margin.
    assert area(*line.get_data()) == pytest.approx(1, abs=0.01)


def test_band_has_the_probability_asked_for(line_trace):
    posterior = line_trace["posterior"].to_dataset()
    mu = posterior["x_mu"].copy(data=posterior["x_mu"].values + np.arange(6).reshape(2, 3, 1))
    line_trace["posterior"] = posterior.assign(x_mu=mu)
    wide, narrow = (
        plot_density(line_trace, ci_prob=prob, ax=plt.figure().subplots()) for prob in (0.99, 0.5)
    )
    heights = [ax.collections[0].get_paths()[0].vertices[:, 1].max() for ax in (wide, narrow)]
    assert heights[0] > heights[1]
    assert "50 % band" in legend_of(narrow)


def test_density_of_a_plane(plane_trace):
    ax = plot_density(plane_trace)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert legend_of(ax) == ["data", *(f"{share} % within" for share in (95, 80, 50, 20))]
    assert len(ax.lines[0].get_xdata()) == 10


@pytest.mark.parametrize(
    ("features", "labels"),
    [(2, ("c", "density")), ("b", ("b", "density")), (["c", 0], ("c", "a")), ((1, 2), ("b", "c"))],
)
def test_features_are_chosen(plane_trace, features, labels):
    ax = plot_density(plane_trace, features=features)
    assert (ax.get_xlabel(), ax.get_ylabel()) == labels


@pytest.mark.parametrize("features", [3, -1, "d", (0, 0), (0, 1, 2), (), 0.5, True])
def test_impossible_features_are_refused(plane_trace, features):
    with pytest.raises(ValueError, match="one or two different positions from 0 to 2, or labels"):
        plot_density(plane_trace, features=features)


def test_missing_values_are_left_out(plane_trace):
    observed = plane_trace["observed_data"].to_dataset()
    observed["x"][4, 0] = np.nan
    plane_trace["observed_data"] = observed
    assert len(plot_density(plane_trace).lines[0].get_xdata()) == 9


def test_identical_data_are_drawn(line_trace):
    line_trace["observed_data"] = xr.Dataset({"x": ("x_dim_0", np.full(5, 3.0))})
    assert plot_density(line_trace).get_xlim()[1] > 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_samples": 0}, "num_samples=0 is out of range; give an integer of at least 1"),
        ({"num_samples": True}, "num_samples=True is out of range"),
        ({"ci_prob": 1.0}, "ci_prob=1.0 must lie between 0 and 1"),
        ({"features": 0}, "features is given for a mixture of scalars; leave it out"),
        ({"var_name": "y"}, "var_name='y' is no mixture of idata"),
    ],
)
def test_bad_arguments_of_density_are_refused(line_trace, arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_density(line_trace, **arguments)


def test_density_needs_values(line_trace):
    line_trace["observed_data"] = xr.Dataset()
    with pytest.raises(ValueError, match=r"neither observed_data nor posterior .* a variable x"):
        plot_density(line_trace)
    del line_trace["observed_data"]
    with pytest.raises(ValueError, match=r"has no group observed_data, .* data of x; give model="):
        plot_density(line_trace)


def latent(trace, dims, values):
    """A trace in which ``x`` is a variable of the posterior."""
    posterior = trace["posterior"].to_dataset()
    trace["posterior"] = posterior.assign(x=(("chain", "draw", *dims), values))
    del trace["observed_data"]
    return trace


def test_density_of_a_latent_scalar_is_over_its_draws(line_trace):
    values = np.arange(30.0).reshape(2, 3, 5)
    ax = plot_density(latent(line_trace, ("group",), values))
    assert legend_of(ax)[0] == "draws of x"
    assert ax.get_xlim()[1] > 29
    # Of two draws, one value in three is shown.
    few = plot_density(line_trace, num_samples=2, ax=plt.figure().subplots())
    assert sum(bar.get_height() > 0 for bar in few.patches) <= 10


def test_wide_band_does_not_hide_the_values(line_trace):
    """Narrow clusters in places that differ between draws: the band is far above the mean."""
    posterior = line_trace["posterior"].to_dataset()
    narrow = {"x_sigma": posterior["x_sigma"] * 0 + 0.01, "x_mu": posterior["x_mu"] * 0 + 2.0}
    narrow["x_mu"] = narrow["x_mu"] + np.arange(3.0)[:, None]
    line_trace["posterior"] = posterior.assign(narrow)
    values = np.linspace(0.0, 5.0, 30).reshape(2, 3, 5)
    ax = plot_density(latent(line_trace, ("group",), values), ci_prob=0.99)
    (band,) = ax.collections
    tallest = max(max(bar.get_height() for bar in ax.patches), ax.lines[0].get_ydata().max())
    assert ax.get_ylim() == (0.0, pytest.approx(2.0 * tallest))
    assert all(bar.get_zorder() > band.get_zorder() for bar in ax.patches)
    assert all(0.0 < bar.get_facecolor()[3] < 1.0 for bar in ax.patches)


def test_density_of_latent_vectors_is_over_their_draws(plane_trace, rng):
    values = rng.normal(size=(2, 3, 5, 3))
    ax = plot_density(latent(plane_trace, ("group", "feature"), values), features=("c", "a"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    found = np.stack(ax.lines[0].get_data(), axis=1)
    np.testing.assert_array_equal(found, values[..., [2, 0]].reshape(-1, 2))


def test_data_that_may_have_a_mean_need_the_model(line_trace):
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.assign(
        x_labels=(("chain", "draw", "n"), np.ones((2, 3, 4)))
    )
    with pytest.raises(ValueError, match=r"may have a mean of other variables.*; give model="):
        plot_density(line_trace)


def test_n_clusters_shows_shares(line_trace):
    posterior = line_trace["posterior"].to_dataset()
    counts = posterior["x_n_clusters"]
    line_trace["posterior"] = posterior.assign(x_n_clusters=counts.where(counts < 3, 4))
    ax = plot_n_clusters(line_trace)
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, [5 / 6, 0, 1 / 6])
    centres = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    np.testing.assert_allclose(centres, [2, 3, 4])
    np.testing.assert_allclose([line.get_ydata()[0] for line in ax.lines], [2 / 3, 1])
    assert sorted(legend_of(ax)) == ["all chains", "each chain"]
    assert ax.get_xlabel() == "number of clusters (x)"


def prior_line(ax):
    """Where the prior is drawn: numbers of clusters, and their probabilities."""
    (line,) = [line for line in ax.lines if line.get_label() == "prior"]
    return line.get_data()


def test_prior_given_is_drawn_beside_the_posterior(line_trace):
    law = dps.prior_n_clusters(2.0, 40)
    ax = plot_n_clusters(line_trace, prior=law)
    across, height = prior_line(ax)
    assert across[0] == 1
    np.testing.assert_allclose(height, law.values[: len(across)])
    assert 0.99 < height.sum() < 1.0
    assert ax.get_ylabel() == "probability"
    assert legend_of(ax) == ["each chain", "prior", "all chains"]


def test_prior_is_computed_from_the_model(line_trace):
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture("x", alpha, dps.Normal(0, 0.1, 2, 1), observed=np.linspace(-2, 5, 40))
    _, height = prior_line(plot_n_clusters(line_trace, prior=True, model=model))
    exact = dps.prior_n_clusters(stats.gamma(2, scale=1 / 4), 40).values
    # A thousand draws of alpha.
    np.testing.assert_allclose(height, exact[: len(height)], atol=0.02)


def test_prior_draws_of_the_trace_are_used(line_trace):
    drawn = xr.Dataset({"x_n_clusters": (("chain", "draw"), [[1, 1, 3, 2]])})
    line_trace["prior"] = xr.DataTree(drawn)
    across, height = prior_line(plot_n_clusters(line_trace, prior=True))
    assert across[:3].tolist() == [1, 2, 3]
    assert height[:3].tolist() == [0.5, 0.25, 0.25]


def test_prior_that_nobody_knows_is_refused(line_trace):
    with pytest.raises(ValueError, match="no draws of x_n_clusters in a group prior; give model="):
        plot_n_clusters(line_trace, prior=True)


def test_what_is_no_prior_is_refused(line_trace):
    prior = dps.elicit_alpha(40, 3, 10)
    with pytest.raises(ValueError, match="prior is a GammaPrior; give True, or what prior_n_clu"):
        plot_n_clusters(line_trace, prior=prior)


def test_prior_alone():
    ax = plot_prior_n_clusters(1.0, 300)
    across, height = prior_line(ax)
    np.testing.assert_allclose(height, dps.prior_n_clusters(1.0, 300)[: len(across)])
    assert (ax.get_xlabel(), ax.get_ylabel()) == (
        "number of clusters among 300",
        "prior probability",
    )
    assert legend_of(ax) == ["prior", "mean 6.28"]


def test_similarity_puts_clusters_together(rng):
    truth = rng.permutation(np.repeat([0, 1, 2], 10))
    ax = plot_similarity(similarity_matrix(truth[None]))
    shown = ax.images[0].get_array().data
    # Neighbours are alike but at the two borders.
    assert (np.diag(shown, 1) == 0).sum() == 2
    assert ax.get_xlabel() == "obs, ordered by similarity"
    assert ax.figure.axes[1].get_ylabel() == "probability of a shared cluster"


def test_similarity_is_ordered_by_a_partition(rng):
    partition = rng.permutation(np.repeat([0, 1, 2], [4, 12, 8]))
    labels = np.where(rng.random((2, 40, 24)) < 0.1, 3, partition)  # chain, draw, observation
    ax = plot_similarity(labels, partition=partition)
    order = np.concatenate([np.flatnonzero(partition == r) for r in (1, 2, 0)])
    matrix = similarity_matrix(labels).values
    shown = ax.images[0].get_array().data
    for block in (slice(0, 12), slice(12, 20), slice(20, 24)):
        inside = order[block]
        assert shown[block, block].sum() == pytest.approx(matrix[np.ix_(inside, inside)].sum())
    assert ax.get_ylabel() == "obs, ordered by cluster"
    edges = [line.get_ydata()[0] for line in ax.lines if line.get_xdata()[0] == 0]
    assert edges == [11.5, 19.5]
    with pytest.raises(ValueError, match="partition is given with rows"):
        plot_similarity(labels, rows=[0, 2], partition=partition)
    with pytest.raises(ValueError, match="one integer for each of the 24 observations"):
        plot_similarity(labels, partition=partition[:3])


def test_similarity_of_one_observation():
    assert plot_similarity(np.ones((1, 1))).images[0].get_array().shape == (1, 1)


@pytest.mark.parametrize(
    "matrix", [np.ones(3), np.ones((2, 3)), np.full((2, 2), 2.0), np.triu(np.ones((3, 3)))]
)
def test_what_is_no_similarity_is_refused(matrix):
    with pytest.raises(ValueError, match="is not a symmetric matrix of probabilities"):
        plot_similarity(matrix)


def test_similarity_of_a_trace(line_trace, rng):
    with pytest.raises(ValueError, match=r"idata holds no x_labels, .* give model="):
        plot_similarity(line_trace)
    shape = [line_trace["posterior"].sizes[dim] for dim in ("chain", "draw")]
    labels = rng.integers(0, 2, (*shape, 6))
    line_trace["observed_data"] = line_trace["observed_data"].to_dataset().isel(x_dim_0=range(6))
    line_trace["posterior"]["x_labels"] = xr.DataArray(labels, dims=("chain", "draw", "obs"))
    shown, matrix = plot_similarity(line_trace), plot_similarity(similarity_matrix(labels))
    np.testing.assert_array_equal(*(ax.images[0].get_array().data for ax in (shown, matrix)))
    assert plot_similarity(line_trace, rows=[0, 2]).images[0].get_array().shape == (2, 2)
    with pytest.raises(ValueError, match="rows is given with a matrix"):
        plot_similarity(np.eye(3), rows=[0, 2])
    of_posterior = plot_similarity(line_trace["posterior"].to_dataset())
    np.testing.assert_array_equal(*(ax.images[0].get_array().data for ax in (of_posterior, matrix)))
    for odd in ({}, "idata", None):
        with pytest.raises(TypeError, match=r"give the DataTree that pm\.sample returns, or an"):
            plot_similarity(odd)


def test_figures_are_drawn_on_the_axes_given(line_trace):
    axes = plt.figure().subplots(3)
    assert plot_density(line_trace, ax=axes[0]) is axes[0]
    assert plot_n_clusters(line_trace, ax=axes[1]) is axes[1]
    assert plot_similarity(np.eye(2), ax=axes[2]) is axes[2]
    assert len(plt.get_fignums()) == 1
