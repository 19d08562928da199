import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgba

from pymc_dpsplit.posterior.plot_clusters import plot_clusters
from pymc_dpsplit.posterior.plot_partition_uncertainty import plot_partition_uncertainty

HALVES = np.repeat([0, 1], [6, 4])


def legend_of(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def with_labels(trace, labels):
    posterior = trace["posterior"].to_dataset()
    trace["posterior"] = posterior.assign(x_labels=(("chain", "draw", "obs_id"), labels))
    return trace


def test_scalars_are_stacked_over_a_rug(line_trace):
    partition = np.repeat([1, 0], [30, 10])
    ax = plot_clusters(line_trace, partition=partition)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "observations")
    assert legend_of(ax) == ["cluster 1: 30", "cluster 0: 10"]
    assert sum(bar.get_height() for bar in ax.patches) == 40
    assert [len(rug.get_xdata()) for rug in ax.lines] == [30, 10]
    assert ax.patches[0].get_facecolor() == to_rgba(ax.lines[0].get_color())


def test_planes_are_scattered(plane_trace):
    ax = plot_clusters(plane_trace, partition=HALVES, features=("c", "a"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("c", "a")
    observed = plane_trace["observed_data"]["x"].values
    shown = np.stack(ax.lines[1].get_data(), axis=1)
    np.testing.assert_array_equal(shown, observed[6:][:, [2, 0]])
    assert legend_of(ax) == ["cluster 0: 6", "cluster 1: 4"]


def test_more_features_are_panels(plane_trace):
    axes = plot_clusters(plane_trace, partition=HALVES)
    assert axes.shape == (3, 3)
    visible = [[ax.get_visible() for ax in row] for row in axes]
    np.testing.assert_array_equal(visible, np.tri(3, dtype=bool))
    assert [ax.get_xlabel() for ax in axes[-1]] == ["a", "b", "c"]
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["observations", "b", "c"]
    assert [len(line.get_xdata()) for line in axes[2, 1].lines] == [6, 4]
    (legend,) = axes[0, 0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["cluster 0: 6", "cluster 1: 4"]


def test_small_clusters_share_a_colour(line_trace):
    partition = np.concatenate([np.repeat(np.arange(10), 2), 10 + np.arange(20)])
    ax = plot_clusters(line_trace, partition=partition)
    assert len(ax.lines) == 11
    assert legend_of(ax)[-1] == "20 smaller: 20"


def test_missing_entries_are_left_out_where_they_show(plane_trace):
    observed = plane_trace["observed_data"].to_dataset()
    observed["x"][4, 0] = np.nan
    plane_trace["observed_data"] = observed
    axes = plot_clusters(plane_trace, partition=HALVES)
    assert sum(bar.get_height() for bar in axes[0, 0].patches) == 9
    assert sum(bar.get_height() for bar in axes[1, 1].patches) == 10


def test_few_whole_numbers_are_jittered_and_binned(plane_trace, rng):
    codes = rng.integers(0, 3, size=(10, 3))
    plane_trace["observed_data"] = xr.Dataset({"x": (("obs_id", "feature"), codes)})
    ax = plot_clusters(plane_trace, partition=HALVES, features=(0, 1))
    shown = np.concatenate([np.stack(line.get_data(), axis=1) for line in ax.lines])
    assert (np.rint(shown) == codes[:, :2]).all()
    assert (shown != codes[:, :2]).all()
    one = plot_clusters(plane_trace, partition=[0] * 10, features=0, ax=plt.figure().subplots())
    np.testing.assert_array_equal(
        [bar.get_height() for bar in one.patches], np.bincount(codes[:, 0], minlength=3)
    )


def test_latent_values_are_averaged(line_trace):
    values = np.arange(30.0).reshape(2, 3, 5)
    posterior = line_trace["posterior"].to_dataset()
    line_trace["posterior"] = posterior.assign(x=(("chain", "draw", "group"), values))
    del line_trace["observed_data"]
    ax = plot_clusters(line_trace, partition=[0] * 5)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), values.mean((0, 1)))


def test_partition_is_found_from_the_labels_of_the_trace(plane_trace):
    kept = xr.Dataset({"x_labels": (("chain", "draw", "obs_id"), np.tile(HALVES, (2, 3, 1)))})
    plane_trace["sample_stats"] = kept
    ax = plot_clusters(plane_trace, features=(0, 1))
    assert legend_of(ax) == ["cluster 0: 6", "cluster 1: 4"]


def test_uncertainty_is_ordered_within_clusters(rng):
    labels = np.tile(HALVES, (40, 1))
    labels[:30, 7] = 0
    labels[:10, 2] = 1
    ax = plot_partition_uncertainty(labels, partition=HALVES)
    assert [len(step.get_data().values) for step in ax.patches] == [6, 4]
    heights = [step.get_data().values for step in ax.patches]
    assert all((np.diff(of) <= 0).all() for of in heights)
    assert max(heights[1]) > max(heights[0]) > 0
    assert ax.patches[1].get_data().edges[0] == 6
    assert ax.get_xlabel() == "obs, ordered by cluster"
    assert ax.get_ylabel() == "share of the others placed differently"
    mean = np.concatenate(heights).mean()
    assert legend_of(ax) == ["cluster 0: 6", "cluster 1: 4", f"mean: {mean:.2g}"]
    assert ax.lines[0].get_ydata()[0] == pytest.approx(mean)


def test_uncertainty_takes_a_trace_or_its_labels(plane_trace):
    labels = np.tile(HALVES, (2, 3, 1))
    labels[0, 0, 3] = 1
    axes = plt.figure().subplots(2)
    of_trace = with_labels(plane_trace, labels)
    assert plot_partition_uncertainty(of_trace, ax=axes[0], random_seed=1) is axes[0]
    plot_partition_uncertainty(labels, loss="vi", ax=axes[1], random_seed=1)
    assert axes[0].get_xlabel() == "obs_id, ordered by cluster"
    assert axes[1].get_ylabel() == "part in the variation of information, nats"
    assert [len(ax.patches) for ax in axes] == [2, 2]


def test_figures_of_partitions_take_axes(plane_trace):
    axes = plt.figure().subplots(2)
    shown = plot_clusters(plane_trace, partition=HALVES, features=0, ax=axes[0])
    assert shown is axes[0]
    with pytest.raises(ValueError, match="ax is given for 3 features, which take several panels"):
        plot_clusters(plane_trace, partition=HALVES, ax=axes[1])


def test_trace_without_labels_needs_the_model(plane_trace):
    for plot in (plot_clusters, plot_partition_uncertainty):
        with pytest.raises(ValueError, match=r"idata holds no x_labels.*; give model="):
            plot(plane_trace)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": [0] * 3}, "give one integer for each of the 10 observations"),
        ({"var_name": "y"}, "var_name='y' is no mixture of idata"),
        ({"features": 5}, "must be one to 8 different positions from 0 to 2, or labels"),
    ],
)
def test_bad_arguments_of_clusters_are_refused(plane_trace, options, message):
    with pytest.raises(ValueError, match=message):
        plot_clusters(plane_trace, **{"partition": HALVES} | options)
