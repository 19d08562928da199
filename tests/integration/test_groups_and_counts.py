"""Models with `groups=` and `counts=`, and what functions of a trace say of groups."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction.loo import left_out_likelihood
from pymc_dpsplit.variables import find_mixtures
from tests.reference.families import EXAMPLES
from tests.support.nine_rows import (
    HYPERPARAMETERS,
    ROWS,
    SAMPLING,
    model_with,
    trace_through,
    without_labels,
)

SUBJECTS = ["b", "a", "b", "b", "c", "a", "d", "c", "c"]
NAMES = ["b", "a", "c", "d"]


@pytest.fixture(scope="module")
def model() -> pm.Model:
    return model_with(groups=SUBJECTS)


@pytest.fixture(scope="module")
def idata(model: pm.Model, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return trace_through(tmp_path_factory.mktemp("traces"), model)


@pytest.mark.slow
def test_labels_are_those_of_groups(model: pm.Model, idata: Any) -> None:
    for trace in (idata, without_labels(idata)):
        labels = dps.sample_labels(trace, model=model, random_seed=1)
        assert labels.dims == ("chain", "draw", "x_group")
        assert list(labels["x_group"].values) == NAMES
        together = labels.sel(x_group="a") == labels.sel(x_group="c")
        assert together.mean() > 0.5
        assert (labels.sel(x_group="a") == labels.sel(x_group="b")).mean() < 0.1
    assert idata["observed_data"]["x"].shape == (9,)
    numbers = idata["constant_data"]["x_group_of_row"].values
    assert [NAMES[g] for g in numbers] == SUBJECTS
    assert float(idata["posterior"]["x_n_clusters"].max()) <= 4


def test_partitions_are_those_of_groups(model: pm.Model, idata: Any) -> None:
    similar = dps.similarity_matrix(idata, model=model)
    assert similar.shape == (4, 4)
    found = dps.point_partition(dps.sample_labels(idata, model=model), random_seed=1)
    np.testing.assert_array_equal(np.unique(found.labels, return_inverse=True)[1], [0, 1, 1, 0])
    assert dps.credible_ball(idata, found, model=model) is not None
    described = dps.describe_clusters(idata, found, model=model, random_seed=1)
    assert sorted(described.size.values) == [2, 2]
    assert described.membership.dims == ("x_group", "x_reference_cluster")
    new = dps.predict(idata, [0.1, 5.1], model=model, partition=found, random_seed=1)
    assert (new["membership_probability"].max("x_reference_cluster") > 0.7).all()
    with pytest.raises(ValueError, match="9 labels, but x has 4 observations"):
        dps.describe_clusters(idata, np.zeros(9, int), model=model)


def test_groups_are_sampled_and_read() -> None:
    """In short, for `test_features_under_every_law` has long runs under every law."""
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2.0, 2.0)
        normal = dps.Normal(0.0, 0.1, 2.0, 1.0)
        dps.DPMixture("x", alpha, normal, discount=0.1, observed=ROWS, groups=SUBJECTS)
        idata = pm.sample(
            20, tune=10, chains=1, random_seed=1, progressbar=False, quiet=True,
            compute_convergence_checks=False, dpsplit={"kernel": "collapsed"},
        )  # fmt: skip
    labels = dps.sample_labels(idata, model=model, random_seed=1)
    assert list(labels["x_group"].values) == NAMES
    together = dps.similarity_matrix(labels).to_numpy()
    assert together[1, 2] > 0.5 > together[0, 1]
    assert np.isfinite(dps.predict(idata, [0.1, 5.1], model=model)["log_predictive_density"]).all()


@pytest.mark.slow
def test_log_likelihood_has_one_value_per_group(model: pm.Model, idata: Any) -> None:
    found = pm.compute_log_likelihood(
        idata, model=model, extend_inferencedata=False, progressbar=False
    )["x"]
    assert found.dims == ("chain", "draw", "x_group")
    assert list(found["x_group"].values) == NAMES
    drawn = idata["posterior"].to_dataset().isel(chain=1, draw=-1)
    k = int(drawn["x_n_clusters"])
    mu, sigma = drawn["x_mu"].values[:k], drawn["x_sigma"].values[:k]
    own = -0.5 * ((ROWS[:, None] - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    twin = EXAMPLES["Normal"].twin(**HYPERPARAMETERS)
    for name in NAMES:
        members = np.array(SUBJECTS) == name
        masses = np.log(drawn["x_weights"].values[:k]) + own[members].sum(0)
        rest = float(np.log(drawn["x_new_weight"])) + twin.log_marginal(ROWS[members, None])
        expected = logsumexp([*masses, rest])
        value = float(found.sel(x_group=name).isel(chain=1, draw=-1))
        assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_loo_leaves_out_one_group_at_a_time(model: pm.Model, idata: Any) -> None:
    found = dps.loo(without_labels(idata), model=model, random_seed=1)
    assert found.n_data_points == 4
    assert list(found.elpd_i["x_group"].values) == NAMES


def test_loo_of_groups_of_one_row_is_that_of_rows(idata: Any) -> None:
    posterior = xr.DataTree.from_dict({"posterior": idata["posterior"].to_dataset()})
    found = []
    for arguments in ({}, {"groups": range(100, 109)}):
        model = model_with(**arguments)
        (mixture,) = find_mixtures(model).values()
        rng = np.random.default_rng(1)
        found.append(left_out_likelihood(posterior, model, mixture, 10, rng).to_numpy())
    np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.slow
def test_posterior_predictive_rows_of_a_group_share_their_cluster(
    model: pm.Model, idata: Any
) -> None:
    drawn = pm.sample_posterior_predictive(idata, model=model, random_seed=1, progressbar=False)[
        "posterior_predictive"
    ]["x"]
    is_high = drawn.values.reshape(-1, 9) > 2.5
    same = (is_high[:, 0] == is_high[:, 2]).mean()  # both of subject b
    other = (is_high[:, 0] == is_high[:, 1]).mean()
    assert same > 0.85
    assert other < 0.75
    with model_with(counts=[2] * 9) as counted, pytest.raises(ValueError, match="with counts="):
        pm.sample_prior_predictive(1, model=counted)


def test_readers_of_rows_are_right_or_refuse(model: pm.Model, idata: Any) -> None:
    assert dps.density(idata, grid=[0.0, 5.0])["density"].sizes["grid"] == 2
    assert "x" in str(dps.diagnose(idata, model=model))
    assert float(dps.plot_n_clusters(idata, model=model).get_xlim()[1]) > 0
    with pytest.raises(ValueError, match="groups of unequal numbers of rows"):
        dps.plot_density(idata)
    assert "x" in dps.plot_clusters(idata, random_seed=1).get_xlabel()


def test_clusters_of_groups_colour_their_rows(model: pm.Model, idata: Any) -> None:
    of_groups = dps.point_partition(idata, model=model, random_seed=1).partition
    of_groups = of_groups.copy(data=[0, 1, 1, 0])
    of_rows = of_groups.to_numpy()[idata["constant_data"]["x_group_of_row"].values]
    for partition in (of_groups, of_groups.to_numpy(), of_rows):
        ax = dps.plot_clusters(idata, partition=partition, like=of_groups, model=model)
        texts = ax.get_legend().get_texts()
        assert [text.get_text() for text in texts] == ["cluster 1: 5", "cluster 0: 4"]
    moved = of_groups.assign_coords(x_group=of_groups["x_group"].to_numpy()[::-1])
    with pytest.raises(ValueError, match="partition is one of other observations, by its coord"):
        dps.plot_clusters(idata, partition=moved, model=model)
    with pytest.raises(ValueError, match="like is one of other observations, by its coord"):
        dps.plot_clusters(idata, partition=of_groups, like=moved, model=model)
    with pytest.raises(ValueError, match="one integer for each of the 9 observations"):
        dps.plot_clusters(idata, partition=[0, 1, 0], model=model)


def test_other_groups_than_those_of_the_trace_are_refused(idata: Any) -> None:
    other = model_with(groups=[*SUBJECTS[:-1], "d"])
    with pytest.raises(ValueError, match=r"other groups= of x than the model has"):
        dps.sample_labels(idata, model=other)
    with pytest.raises(ValueError, match=r"other groups= of x than the model has"):
        dps.sample_labels(idata, model=model_with())
    with pytest.raises(ValueError, match=r"other counts= of x than the model has"):
        dps.sample_labels(idata, model=model_with(groups=SUBJECTS, counts=[2] * 9))


@pytest.mark.slow
def test_a_chain_starts_from_a_map_of_groups_and_goes_on(model: pm.Model, idata: Any) -> None:
    found = dps.find_map(model, random_seed=1)
    assert len(found.labels) == 4
    assert found.labels[1] == found.labels[2] != found.labels[0]
    with model:
        begun = pm.sample(**{**SAMPLING, "draws": 2, "tune": 2}, dpsplit={"start_labels": found})
        with pytest.raises(ValueError, match="start_labels has 9 labels, but x has 4"):
            pm.sample(**SAMPLING, dpsplit={"start_labels": np.zeros(9, int)})
    assert begun["posterior"].sizes["draw"] == 2
    more = dps.extend(
        idata, model, draws=3, tune=3, progressbar=False, compute_convergence_checks=False, cores=1
    )
    assert more["sample_stats"]["x_labels"].shape == (2, 63, 4)


def test_counts_are_rows_written_out() -> None:
    counts = np.array([2, 1, 3, 1, 1, 1, 4, 1, 1])
    counted = dps.find_map(model_with(groups=SUBJECTS, counts=counts), alpha=1.0, random_seed=1)
    with pm.Model() as plain:
        dps.DPMixture(
            "x", 1.0, dps.Normal(**HYPERPARAMETERS), observed=np.repeat(ROWS, counts),
            groups=np.repeat(SUBJECTS, counts),
        )  # fmt: skip
    expected = dps.find_map(plain, alpha=1.0, random_seed=1)
    assert counted.log_joint == pytest.approx(expected.log_joint, rel=1e-9)
    np.testing.assert_array_equal(counted.labels, expected.labels)


@pytest.mark.compiled  # densities are called by address
def test_components_that_are_not_conjugate_are_refused() -> None:
    free = dps.Component(pm.Laplace, mu=pm.Normal.dist(0, 1), b=1.0)
    with pm.Model(), pytest.raises(ValueError, match="whose parameters can be integrated out"):
        dps.DPMixture("x", 1.0, free, observed=ROWS, counts=[1] * 9)
