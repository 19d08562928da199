import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from matplotlib.colors import to_rgba

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.plots.plot_clusters import plot_clusters
from pymc_dpsplit.posterior.plots.plot_partition_uncertainty import plot_partition_uncertainty
from pymc_dpsplit.posterior.plots.value_ticks import shortened

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


def colours_of(axes):
    """Colour of every point that a scatter plot shows, by its coordinates."""
    return {
        point: line.get_color()
        for line in axes.lines
        for point in zip(*map(tuple, line.get_data()), strict=True)
    }


def test_clusters_have_the_colours_of_those_they_are_like(plane_trace):
    # By size the second would be the first, and a bound that splits or merges is numbered anew.
    centre = np.array([2, 2, 2, 2, 0, 0, 0, 1, 1, 1])
    split = np.array([0, 0, 0, 3, 1, 1, 1, 2, 2, 2])
    merged = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    axes = plt.figure().subplots(3)
    for ax, partition in zip(axes, (centre, split, merged), strict=True):
        plot_clusters(plane_trace, partition=partition, like=centre, features=(0, 1), ax=ax)
    assert legend_of(axes[0]) == ["cluster 2: 4", "cluster 0: 3", "cluster 1: 3"]
    assert legend_of(axes[1]) == ["cluster 2: 3", "cluster 0: 3", "cluster 1: 3", "cluster 3: 1"]
    assert legend_of(axes[2]) == ["cluster 0: 6", "cluster 2: 4"]
    kept, of_split, of_merged = map(colours_of, axes)
    differ = [point for point in kept if of_split[point] != kept[point]]
    observed = plane_trace["observed_data"]["x"].values
    assert differ == [tuple(observed[3, :2])]
    assert of_split[differ[0]] not in kept.values()
    assert sum(of_merged[point] != kept[point] for point in kept) == 3


@pytest.mark.control
def test_colours_by_size_are_not_those_of_another_partition(plane_trace):
    centre, other = np.repeat([0, 1], [6, 4]), np.repeat([0, 1], [4, 6])
    axes = plt.figure().subplots(3)
    for ax, partition, like in zip(axes, (centre, other, other), (None, None, centre), strict=True):
        plot_clusters(plane_trace, partition=partition, like=like, features=(0, 1), ax=ax)
    kept, by_size, alike = map(colours_of, axes)
    n_changed = [sum(kept[point] != of[point] for point in kept) for of in (by_size, alike)]
    assert n_changed == [8, 2]


@pytest.mark.slow
def test_clusters_beyond_the_colours_are_grey(line_trace):
    like = np.concatenate([np.repeat(np.arange(10), 2), 10 + np.arange(20)])
    partition = np.where(np.arange(40) < 20, like, 10)
    ax = plot_clusters(line_trace, partition=partition, like=like)
    assert legend_of(ax)[-1] == "1 more: 20"
    assert ax.lines[-1].get_color() == "0.75"
    assert len({line.get_color() for line in ax.lines}) == 11


def test_uncertainty_takes_colours_too():
    labels = np.tile(HALVES, (5, 1))
    ax = plot_partition_uncertainty(labels, partition=[1] * 3 + [0] * 7, like=HALVES)
    assert legend_of(ax)[:2] == ["cluster 1: 7", "cluster 0: 3"]
    colors = [step.get_facecolor() for step in ax.patches]
    assert colors == [to_rgba("C1"), to_rgba("C0")]


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


@pytest.fixture(scope="module")
def of_table():
    """A model of a table, and a trace as it would have."""
    frame = pd.DataFrame(
        {"colour": list("rgbrgb"), "height": np.arange(6.0) / 7, "grade": list("BABACA")}
    )
    frame["colour"] = frame["colour"].map({"r": "red", "g": "green", "b": "blue"})
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Product.from_data(frame), observed=frame)
    observed = pm.backends.arviz.find_observations(model)["x"]
    drawn = {"x_n_clusters": np.full((1, 2), 1), "x_weights": np.full((1, 2, 1), 0.9)}
    names = {"x_feature": list(frame)}
    groups = {"posterior": drawn, "observed_data": {"x": observed}}
    return model, az.from_dict(groups, dims={"x": ["x_row", "x_feature"]}, coords=names)


def texts_of(ticks):
    return [text.get_text() for text in ticks]


def test_categories_have_their_names_where_the_model_is_given(of_table):
    model, idata = of_table
    partition = [0, 0, 0, 1, 1, 1]
    axes = plot_clusters(idata, model=model, partition=partition)
    assert [ax.get_xlabel() for ax in axes[-1]] == ["colour", "height", "grade"]
    for ax in axes[:, 0]:
        assert texts_of(ax.get_xticklabels()) == ["blue", "green", "red"]
    for ax in axes[2, :2]:
        assert texts_of(ax.get_yticklabels()) == ["A", "B", "C"]
    assert not axes[0, 0].lines  # a rug would hide the names
    assert len(axes[1, 1].lines) == 2
    one = plot_clusters(
        idata, model=model, partition=partition, features="grade", ax=plt.figure().subplots()
    )
    assert texts_of(one.get_xticklabels()) == ["A", "B", "C"]
    # Without the model they are codes, whole numbers.
    ticks = plot_clusters(idata, partition=partition)[2, 0].get_yticks()
    np.testing.assert_array_equal(ticks, np.rint(ticks))


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
        (
            {"like": [0] * 3},
            r"like has shape \(3,\) and type int64; give one integer",
        ),
        ({"var_name": "y"}, "var_name='y' is no mixture of idata"),
        ({"features": 5}, "must be one to 8 different positions from 0 to 2, or labels"),
    ],
)
def test_bad_arguments_of_clusters_are_refused(plane_trace, options, message):
    with pytest.raises(ValueError, match=message):
        plot_clusters(plane_trace, **{"partition": HALVES} | options)


def drawn_box(figure, artist):
    figure.canvas.draw()
    return artist.get_window_extent()


def test_rug_does_not_touch_tick_labels(line_trace):
    ax = plot_clusters(line_trace, partition=np.repeat([1, 0], [30, 10]))
    labels = [drawn_box(ax.figure, text) for text in ax.get_xticklabels()]
    for line in ax.lines:
        rug = drawn_box(ax.figure, line)  # with half a marker on each side
        assert rug.y1 <= ax.get_window_extent().y0 + 1
        assert rug.y0 >= max(label.y1 for label in labels)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("circle", "circle"),
        ("a" * 18, "a" * 18),
        ("a long name of a shape, 12", "a long name…pe, 12"),
    ],
)
def test_long_names_are_shortened_in_the_middle(name, expected):
    assert shortened(name) == expected


def test_long_names_of_categories_leave_room_for_the_data():
    """The figure is no sliver above its tick labels."""
    names = ["a name that is so long that nobody has the time to read it", "circle", "square"]
    frame = pd.DataFrame({"shape": names * 4})
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Product.from_data(frame), observed=frame)
        idata = pm.sample(
            draws=5, tune=5, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    partition = np.tile([0, 1, 1], 4)
    clusters = plot_clusters(idata, model=model, partition=partition)
    assert texts_of(clusters.get_xticklabels())[0] == shortened(names[0])
    found = dps.describe_clusters(idata, partition, model=model, random_seed=1)
    for ax in (clusters, *dps.plot_cluster_parameters(found)):
        assert drawn_box(ax.figure, ax).height > 0.4 * ax.figure.bbox.height
