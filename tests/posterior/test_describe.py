"""`describe_clusters`: what may be given, what comes back, and its tables and figures."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.description.cluster_description import ClusterDescription
from pymc_dpsplit.posterior.description.describe_clusters import quantities_of
from pymc_dpsplit.posterior.partitions.reference import counts_shared, reference_of
from tests.support.exact_traces import exact_trace
from tests.support.families import component_of, dataset_of

ROWS = dataset_of("Normal", "separated", 1)[:6]
REFERENCE = [7, 7, 7, 3, 3, 3]


@pytest.fixture(scope="module")
def model():
    with pm.Model(coords={"row": list("abcdef")}) as model:
        dps.DPMixture("x", 1.0, component_of("Normal", 1), observed=ROWS[:, 0], dims="row")
    return model


@pytest.fixture(scope="module")
def idata():
    return exact_trace("Normal", ROWS, 1.0, (2, 30), seed=1)


@pytest.fixture(scope="module")
def described(model, idata):
    return dps.describe_clusters(idata, REFERENCE, model=model, random_seed=1)


def made_up(**parameters):
    """A description of two clusters, of 3 and 1 rows, in 2 chains of 5 draws."""
    rng = np.random.default_rng(0)
    dims = ("chain", "draw", "x_reference_cluster")
    number = {"x_reference_cluster": [0, 1]}
    drawn = {key: (dims, rng.beta(8, 2, (2, 5, 2))) for key in ("weight", "certainty")}
    drawn |= {key: ((*dims, *own), values) for key, (own, values) in parameters.items()}
    membership = xr.DataArray(
        [[0.9, 0.1], [0.6, 0.4], [1.0, 0.0], [0.2, 0.8]], dims=("row", dims[2]), coords=number
    )
    size = xr.DataArray([3, 1], dims=dims[2], coords=number, name="size")
    coords = {**number, "feature": ["a", "b", "c"], "feature_bis": ["a", "b", "c"]}
    used = {dim for of in drawn.values() for dim in of[0]}
    draws = xr.Dataset(drawn, coords={key: of for key, of in coords.items() if key in used})
    return ClusterDescription("x", draws, size, membership, 0.5)


def many_clusters(n):
    """A description of so many clusters of one row each."""
    dim = "x_reference_cluster"
    of_clusters = {"dims": dim, "coords": {dim: np.arange(n)}}
    membership = xr.DataArray(np.eye(n), dims=("row", dim), coords=of_clusters["coords"])
    size = xr.DataArray(np.ones(n, int), **of_clusters, name="size")
    return ClusterDescription("x", made_up().draws, size, membership, 0.5)


def words_of(p, *, named=True):
    """A description of clusters with these probabilities (2, 3) of words in every draw."""
    values = np.broadcast_to(p, (2, 5, 2, 3))
    return made_up(p=(("feature" if named else "x_feature",), values))


def test_renumbering_the_clusters_of_a_draw_changes_nothing(rng):
    labels, reference = rng.integers(0, 4, 12), reference_of(rng.integers(0, 3, 12), "row", None)
    weights, mu = rng.dirichlet(np.ones(5)), rng.normal(size=(5, 2))
    order = rng.permutation(5)
    counts = counts_shared(labels, 5, reference)
    moved = counts_shared(np.argsort(order)[labels], 5, reference)
    drawn = {}
    for of_cluster in (False, True):
        found = quantities_of(weights, {"mu": mu}, counts, of_cluster=of_cluster)
        again = quantities_of(weights[order], {"mu": mu[order]}, moved, of_cluster=of_cluster)
        for key, values in found.items():
            np.testing.assert_allclose(again[key], values)
        drawn[of_cluster] = found["mu"]
    of_observations = [labels[reference.labels == r] for r in range(3)]
    np.testing.assert_allclose(drawn[False], [mu[of].mean(0) for of in of_observations])
    sizes = [np.bincount(of, minlength=5) for of in of_observations]
    np.testing.assert_allclose(drawn[True], [mu[of == of.max()].mean(0) for of in sizes])


def test_quantities_have_names_and_coordinates(described):
    whole = described.to_dataset()
    assert set(whole.data_vars) == {"size", "weight", "certainty", "mu", "sigma", "membership"}
    assert whole["x_reference_cluster"].values.tolist() == [3, 7]
    assert whole["membership"]["row"].values.tolist() == list("abcdef")
    assert whole["statistic"].values.tolist() == ["mean", "sd", "eti89_lb", "eti89_ub"]
    assert described.draws["mu"].dims == ("chain", "draw", "x_reference_cluster")
    # The data are two groups far apart, which the reference partition names.
    means = ROWS[:3].mean(), ROWS[3:].mean()
    found = whole["mu"].sel(statistic="mean", x_reference_cluster=[7, 3])
    np.testing.assert_allclose(found, means, atol=1.0)
    assert repr(described) == (
        "<ClusterDescription of x: 2 clusters of 6 observations; parameters mu, sigma>"
    )


def test_summaries_are_those_of_the_draws(described):
    drawn = described.draws["mu"].sel(x_reference_cluster=3).to_numpy().ravel()
    table = described.to_dataframe("mu")
    assert list(table.loc[3].index) == ["size", "weight", "certainty", "mu"]
    expected = [drawn.mean(), drawn.std(), *np.quantile(drawn, [0.055, 0.945])]
    np.testing.assert_allclose(table.loc[3, "mu"], expected)
    assert table.loc[3, "size"].tolist() == [3, 0, 3, 3]


def test_draws_are_thinned_alike_in_each_chain(model, idata):
    few = dps.describe_clusters(idata, REFERENCE, model=model, num_samples=9, random_seed=1)
    assert few.draws["draw"].values.tolist() == [0, 10, 19, 29]
    assert few.draws.sizes["chain"] == 2


def test_labels_of_the_trace_are_used_where_it_has_them():
    # Each draw has the atoms 10, 20 and 30; the labels say which rows have which.
    with pm.Model() as model:
        b = dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), shape=4)
        pm.Normal("y", b, 0.1, observed=[0.0, 0.1, 5.0, 5.1])
    labels = np.array([[[0, 0, 1, 2], [2, 2, 0, 0]]])
    dims = ("chain", "draw", "x_cluster")
    posterior = xr.Dataset(
        {
            "x": (("chain", "draw", "x_dim_0"), np.zeros((1, 2, 4))),
            "x_n_clusters": (dims[:2], [[3, 3]]),
            "x_new_weight": (dims[:2], np.full((1, 2), 0.1)),
            "x_weights": (dims, np.full((1, 2, 3), 0.3)),
            "x_mu": (dims, np.full((1, 2, 3), [10.0, 20.0, 30.0])),
            "x_sigma": (dims, np.ones((1, 2, 3))),
            "x_labels": (("chain", "draw", "x_dim_0"), labels),
        },
        coords={"chain": [0], "draw": [0, 1]},
    )
    found = dps.describe_clusters(
        xr.DataTree.from_dict({"posterior": posterior}), [0, 0, 1, 1], model=model
    )
    np.testing.assert_allclose(found.draws["mu"], [[[10, 25], [30, 10]]])
    np.testing.assert_allclose(found.draws["weight"], [[[0.3, 0.6], [0.3, 0.3]]])
    np.testing.assert_allclose(found.membership, [[1, 0], [1, 0], [0, 1], [0, 1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partition": [0, 1]}, "partition has 2 labels, but x has 6 observations; give one"),
        ({"partition": [0.5] * 6}, "partition has shape .* give one integer for each"),
        ({"num_samples": 0}, "num_samples=0 is out of range; give an integer of at least 1"),
        ({"ci_prob": 1.0}, "ci_prob=1.0 must lie between 0 and 1"),
        ({"parameters_of": "rows"}, "parameters_of='rows' is unknown; give 'cluster' or 'obs"),
        ({"var_name": "y"}, "var_name='y' names no mixture of the model"),
    ],
)
def test_faults_of_arguments_are_named(arguments, message, model, idata):
    with pytest.raises(ValueError, match=message):
        dps.describe_clusters(idata, **({"partition": REFERENCE, "model": model} | arguments))


def test_matrices_have_each_pair_once():
    cov = stats.wishart(5, np.eye(3)).rvs(20, random_state=1).reshape(2, 5, 2, 3, 3)
    table = made_up(cov=(("feature", "feature_bis"), cov)).to_dataframe("cov").loc[0]
    pairs = ["a, a", "a, b", "a, c", "b, b", "b, c", "c, c"]
    assert list(table.index[3:]) == [f"cov[{pair}]" for pair in pairs]
    assert table.loc["cov[a, c]", "mean"] == pytest.approx(cov[:, :, 0, 0, 2].mean())


def test_columns_and_categories_of_equal_number_are_no_matrix():
    """Two columns of two and one categories, of which a diagonal would show two of three."""
    p = np.broadcast_to([[[0.2, 0.8], [1.0, 0.0]], [[0.6, 0.4], [1.0, 0.0]]], (2, 5, 2, 2, 2))
    found = made_up(p=(("p_feature", "p_category"), p))
    names = np.array([["no", "yes"], ["red", ""]], dtype=object)
    named = found.draws.assign_coords(p_category_name=(("p_feature", "p_category"), names))
    found = replace(found, draws=named.assign_coords(p_feature=["smokes", "colour"]))
    table = found.to_dataframe().loc[0]
    expected = ["p[smokes, no]", "p[smokes, yes]", "p[colour, red]"]
    assert [key for key in table.index if key.startswith("p")] == expected
    assert table.loc["p[smokes, yes]", "mean"] == pytest.approx(0.8)
    (ax,) = dps.plot_cluster_parameters(found)
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert labels == ["smokes, no", "smokes, yes", "colour, red"]


def test_covariance_of_a_vector_is_that_of_its_draws(described):
    drawn = np.random.default_rng(3).normal(size=(2, 5, 2, 3)).cumsum(-1)
    shown = made_up(
        mu=(("feature",), drawn),
        cov=(("feature", "feature_bis"), drawn[..., None] * drawn[..., None, :]),
    )
    found = shown.covariance("mu")
    assert found.dims == ("x_reference_cluster", "feature", "feature_bis")
    expected = np.cov(drawn[:, :, 1].reshape(10, 3), rowvar=False, ddof=0)
    np.testing.assert_allclose(found.sel(x_reference_cluster=1), expected)
    sd = shown.to_dataset()["mu"].sel(statistic="sd", x_reference_cluster=1)
    np.testing.assert_allclose(np.sqrt(np.diag(found.sel(x_reference_cluster=1))), sd)
    assert found.sel(x_reference_cluster=0, feature="a", feature_bis="c").ndim == 0
    with pytest.raises(ValueError, match=r"'cov' has 2 dimensions in each .*; give a vector, of"):
        shown.covariance("cov")
    with pytest.raises(ValueError, match="'sigma' has 0 dimensions in each cluster, not one"):
        described.covariance("sigma")


def test_unknown_parameters_are_refused(described):
    for wrong in ("nu", ["mu", "nu"], []):
        with pytest.raises(ValueError, match="must name parameters of x; give some of"):
            described.to_dataframe(wrong)


def test_words_are_ordered_by_relevance():
    p = np.array([[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]])
    found = words_of(p)
    assert found.top_words(2, relevance=1.0)[0].tolist() == ["a", "b"]
    # The average, by size, is (0.6, 0.25, 0.15): b and c are those that tell the clusters apart.
    ratios = found.top_words(3, relevance=0.0)
    assert ratios[0].tolist() == ["b", "a", "c"]
    assert ratios[1].tolist() == ["c", "a", "b"]
    assert ratios.index.tolist() == [1, 2, 3]
    assert words_of(p, named=False).top_words(1, relevance=1.0)[0].tolist() == [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 must be a number of words of at least 1"),
        ({"relevance": 2}, "relevance=2 must lie between 0 and 1"),
        ({"parameter": "q"}, "parameter='q' is no vector of probabilities of words of x; give one"),
    ],
)
def test_faults_of_words_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        words_of(np.full((2, 3), 1 / 3)).top_words(**arguments)


def test_other_parameters_are_no_words(described):
    with pytest.raises(ValueError, match=r"parameter=None is no vector .* a mixture of Multinom"):
        described.top_words(1)


def test_figure_of_parameters_shows_means_and_intervals(described):
    axes = dps.plot_cluster_parameters(described, parameters="mu")
    summary = described.to_dataset()["mu"]
    means = [line.get_ydata()[0] for line in axes[0].lines]
    np.testing.assert_allclose(means, summary.sel(statistic="mean"))
    (low, high), *_ = (of.get_segments()[0][:, 1] for of in axes[0].collections)
    np.testing.assert_allclose([low, high], summary[0, 2:])
    # Colours are by size, then by number, as in plot_clusters.
    texts = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert texts == ["cluster 3: 3", "cluster 7: 3"]


def test_figure_of_a_matrix_shows_its_diagonal():
    cov = np.broadcast_to(np.diag([1.0, 2.0, 3.0]), (2, 5, 2, 3, 3))
    (ax,) = dps.plot_cluster_parameters(made_up(cov=(("feature", "feature_bis"), cov)))
    assert ax.get_ylabel() == "cov, diagonal"
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [1, 2, 3])


def test_figure_of_membership_stacks_to_one():
    ax = dps.plot_membership(made_up())
    first, second = (patch.get_data() for patch in ax.patches)
    # By largest membership, and within a cluster by it: rows 2, 0, 1 and then 3.
    np.testing.assert_allclose(first.values, [1.0, 0.9, 0.6, 0.2])
    np.testing.assert_allclose(second.values, 1.0)


def test_grey_clusters_share_an_entry_of_the_legend():
    found = dps.plot_membership(many_clusters(13)).get_legend().get_texts()
    assert [text.get_text() for text in found][9:] == ["cluster 9: 1", "3 smaller: 3"]
    assert len(dps.plot_membership(many_clusters(10)).get_legend().get_texts()) == 10


def test_figure_of_words_names_them():
    axes = dps.plot_top_words(words_of([[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]]), n=2, relevance=0.0)
    assert [[text.get_text() for text in ax.get_yticklabels()] for ax in axes] == [
        ["b", "a"],
        ["c", "a"],
    ]
    np.testing.assert_allclose([bar.get_width() for bar in axes[0].patches], [0.3, 0.6])
    assert axes[0].figure.get_supxlabel() == "probability, mean and 50 % interval"


@pytest.mark.parametrize(
    "plot", [dps.plot_cluster_parameters, dps.plot_membership, dps.plot_top_words]
)
def test_figures_of_something_else_are_refused(plot, idata):
    with pytest.raises(ValueError, match="description is a DataTree; give what describe_clusters"):
        plot(idata)


def test_too_much_for_a_figure_is_refused(described):
    with pytest.raises(ValueError, match="axes has 1 axes for 2 parameters; give one for each"):
        dps.plot_cluster_parameters(described, axes=[None])
    p = np.full((2, 5, 2, 61), 1 / 61)
    with pytest.raises(ValueError, match="p has 61 entries, too many for a figure; leave it out"):
        dps.plot_cluster_parameters(made_up(p=(("word",), p)))


def test_traces_are_of_invariant_quantities(make_trace):
    drawn = dps.plot_trace(make_trace(2, 20)).viz["plot"]
    expected = {"alpha", "x_n_clusters", "x_new_weight", "x_entropy", "x_log_joint"}
    assert set(drawn.data_vars) == expected
    only = dps.plot_trace(make_trace(2, 20), var_names="alpha")
    assert set(only.viz["plot"].data_vars) == {"alpha"}


def test_panels_of_traces_leave_room_for_labels(make_trace):
    figure = dps.plot_trace(make_trace(2, 20)).viz["figure"].item()
    figure.canvas.draw()
    boxes = [axes.get_tightbbox() for axes in figure.axes if axes.has_data()]
    overlaps = [a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i]]
    assert overlaps
    assert not any(overlaps)


@pytest.mark.parametrize("dim", ["chain", "draw"])
def test_traces_of_joined_runs_are_numbered_anew(make_trace, dim):
    run = make_trace(2, 20)
    joined = run.map_over_datasets(lambda of: xr.concat([of, of], dim) if dim in of.dims else of)
    axes = dps.plot_trace(joined).viz["plot"]["alpha"].item()
    assert all((np.diff(line.get_xdata()) > 0).all() for line in axes.lines)
    lengths = [len(line.get_xdata()) for line in axes.lines]
    assert lengths == ([20] * 4 if dim == "chain" else [40] * 2)


def test_traces_show_the_densities_that_diagnose_judges(make_trace, rng):
    shape = 2, 20, 12
    clusters = {"x_mu": rng.normal(size=shape), "x_sigma": np.ones(shape)}
    idata = make_trace(2, 20, **clusters)
    idata["observed_data"] = xr.Dataset({"x": ("row", rng.normal(size=30))})
    shown = set(dps.plot_trace(idata).viz["plot"].data_vars)
    assert "log_density[50 %]" in shown
    assert shown == {str(of) for of in dps.diagnose(idata).table["quantity"].values}
