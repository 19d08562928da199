"""Models with `labels=`, and what functions of a trace say of rows with known labels."""

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy.special import gammaln, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.prediction import loo as loo_module
from pymc_dpsplit.posterior.prediction.loo import left_out_likelihood
from pymc_dpsplit.variables import find_mixtures
from pymc_dpsplit.variables.log_density import MixtureLogDensity
from tests.reference.families import EXAMPLES
from tests.support.families import as_observed, component_of, twin_of
from tests.support.families import dataset_of as rows_of
from tests.support.nine_rows import (
    HYPERPARAMETERS,
    ROWS,
    SAMPLING,
    model_with,
    trace_through,
    without_labels,
)
from tests.support.partitions import partition_index
from tests.support.quick import slow_unless
from tests.support.shared_labels import law_of_known_labels
from tests.support.statistics import LEVEL, combine, count_test, partition_test

KNOWN = [7, 3, 7, -1, 3, -1, 7, 5, -1]
ITEMS = ["label 7", "label 3", "row 3", "row 5", "label 5", "row 8"]


@pytest.fixture(scope="module")
def model() -> pm.Model:
    return model_with(labels=KNOWN)


@pytest.fixture(scope="module")
def idata(model: pm.Model, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return trace_through(tmp_path_factory.mktemp("traces"), model)


def test_labels_are_those_of_rows_and_known_ones_stay_together(model: pm.Model, idata: Any) -> None:
    for trace in (idata, without_labels(idata)):
        labels = dps.sample_labels(trace, model=model, random_seed=1)
        assert labels.dims == ("chain", "draw", "x_dim_0")
        assert labels.shape == (2, 60, 9)
        values = labels.to_numpy()
        for known in (7, 3):
            own = values[..., np.array(KNOWN) == known]
            assert (own == own[..., :1]).all()
        # Nothing keeps different labels apart, nor other rows away from them.
        assert (values[..., 1] == values[..., 7]).mean() > 0.5
        assert (values[..., 0] == values[..., 3]).mean() > 0.5
    np.testing.assert_array_equal(idata["constant_data"]["x_known_labels"], KNOWN)
    largest = idata["sample_stats"]["x_largest_share"].to_numpy()
    counts = [[np.bincount(row).max() / 9 for row in chain] for chain in
              idata["sample_stats"]["x_labels"].to_numpy()]  # fmt: skip
    np.testing.assert_allclose(largest, counts)


@pytest.mark.slow
def test_readers_take_partitions_of_rows(model: pm.Model, idata: Any) -> None:
    assert dps.similarity_matrix(idata, model=model).shape == (9, 9)
    found = dps.point_partition(dps.sample_labels(idata, model=model), random_seed=1)
    of_rows = np.asarray(found.labels)
    np.testing.assert_array_equal(of_rows == of_rows[0], ROWS < 2.5)
    described = dps.describe_clusters(idata, found, model=model, random_seed=1)
    assert sorted(described.size.values) == [4, 5]
    redrawn = dps.describe_clusters(without_labels(idata), found, model=model, random_seed=1)
    assert redrawn.membership.dims == ("x_dim_0", "x_reference_cluster")
    new = dps.predict(idata, [0.1, 5.1], model=model, partition=found, random_seed=1)
    assert (new["membership_probability"].max("x_reference_cluster") > 0.7).all()
    texts = dps.plot_clusters(idata, partition=found).get_legend().get_texts()
    assert len(texts) == 2
    assert dps.density(idata, grid=[0.0, 5.0])["density"].sizes["grid"] == 2
    assert dps.plot_density(idata) is not None
    assert "x" in str(dps.diagnose(idata, model=model))
    assert float(dps.plot_n_clusters(idata, model=model).get_xlim()[1]) > 0


def log_masses_of(drawn: xr.Dataset, name: str) -> tuple[np.ndarray, float]:
    """Log terms of the clusters of a draw for the rows of an item, and of the remainder."""
    k = int(drawn["x_n_clusters"])
    mu, sigma = drawn["x_mu"].values[:k], drawn["x_sigma"].values[:k]
    kind, number = name.split()
    members = np.array(KNOWN) == int(number) if kind == "label" else np.arange(9) == int(number)
    m, own = members.sum(), ROWS[members, None]
    density = -0.5 * ((own - mu) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi)
    masses = m * np.log(drawn["x_weights"].values[:k]) + density.sum(0)
    alpha = float(drawn["alpha"])
    together = gammaln(m) + gammaln(1 + alpha) - gammaln(m + alpha)
    twin = EXAMPLES["Normal"].twin(**HYPERPARAMETERS)
    return masses, together + twin.log_marginal(own)


def multiplicity_of(name: str) -> int:
    kind, number = name.split()
    return KNOWN.count(int(number)) if kind == "label" else 1


def test_log_likelihood_has_one_value_per_known_label_and_other_row(
    model: pm.Model, idata: Any
) -> None:
    found = pm.compute_log_likelihood(
        idata, model=model, extend_inferencedata=False, progressbar=False
    )["x"]
    assert found.dims == ("chain", "draw", "x_item")
    assert list(found["x_item"].values) == ITEMS
    drawn = idata["posterior"].to_dataset().isel(chain=1, draw=-1)
    for name in ITEMS:
        masses, rest = log_masses_of(drawn, name)
        rest += multiplicity_of(name) * float(np.log(drawn["x_new_weight"]))
        value = float(found.sel(x_item=name).isel(chain=1, draw=-1))
        assert value == pytest.approx(logsumexp([*masses, rest]), abs=1e-9)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_loo_has_one_value_per_known_label_and_other_row(model: pm.Model, idata: Any) -> None:
    found = dps.loo(idata, model=model, random_seed=1)
    assert list(found.elpd_i["x_item"].values) == ITEMS


def test_loo_leaves_out_the_rows_of_a_label(
    model: pm.Model, idata: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand, for clusters of the items that are drawn at random, so that some are alone."""
    (mixture,) = find_mixtures(model).values()
    number = {name: i for i, name in enumerate(ITEMS)}
    of_row = [number.get(f"label {k}", number.get(f"row {i}")) for i, k in enumerate(KNOWN)]
    drawn = idata["posterior"].to_dataset().isel(draw=slice(50, None))
    chosen, rng = {}, np.random.default_rng(2)
    for place in np.ndindex(2, 10):
        one = drawn.isel(chain=place[0], draw=place[1])
        chosen[float(one["x_new_weight"])] = rng.integers(int(one["x_n_clusters"]), size=6)

    def with_these(self: Any, place: Any, draw: Any, rng: Any) -> Any:
        return draw, chosen[draw.remainder][of_row]

    monkeypatch.setattr(loo_module.Members, "at", with_these)
    cut = xr.DataTree.from_dict({"posterior": drawn})
    found = left_out_likelihood(cut, model, mixture, None, np.random.default_rng(1))
    n_alone = 0
    for place in np.ndindex(2, 10):
        one = drawn.isel(chain=place[0], draw=place[1])
        clusters = chosen[float(one["x_new_weight"])]
        for name, own in zip(ITEMS, clusters, strict=True):
            masses, rest = log_masses_of(one, name)
            others = np.delete(clusters, number[name])
            weights = one["x_weights"].values[: len(masses)]
            seen = np.isin(np.arange(len(masses)), others)
            masses[~seen] = -np.inf
            unseen = float(one["x_new_weight"]) + weights[~seen].sum()
            n_alone += own not in others
            rest += multiplicity_of(name) * np.log(unseen)
            value = float(found.sel(x_item=name).isel(chain=place[0], draw=place[1]))
            assert value == pytest.approx(logsumexp([*masses, rest]), abs=1e-8)
    assert n_alone > 0


def test_labels_that_no_two_rows_share_say_nothing() -> None:
    assert find_mixtures(model_with(labels=range(9)))["x"].items.shared is None
    assert find_mixtures(model_with(labels=[-1] * 9))["x"].items.shared is None


def test_a_gradient_step_for_alpha_sees_no_data(model: pm.Model) -> None:
    """The log likelihood has alpha as an argument, which the conditional given labels has not."""
    alpha = model.rvs_to_values[model["alpha"]]
    function = model.logp_dlogp_function(
        [alpha], ravel_inputs=True, initial_point=model.initial_point()
    )
    nodes = function._pytensor_function.maker.fgraph.apply_nodes
    assert not any(isinstance(node.op, MixtureLogDensity) for node in nodes)
    (mixture,) = find_mixtures(model).values()
    parameters = {"mu": np.array([0.1, 5.0]), "sigma": np.array([0.3, 0.4])}
    measure = mixture.point_values(2, np.array([0.5, 0.4]), np.log(0.1), parameters)
    function.set_extra_values({**model.initial_point(), **measure})
    values = np.array([0.4, 2.5])
    found = [float(function(np.log([value]))[0]) for value in values]
    # Gamma(2, 2) with the Jacobian of the logarithm.
    expected = 2 * np.log(values) - 2 * values + 2 * np.log(values) + (values - 1) * np.log(0.1)
    assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-9)


def test_rows_cannot_be_drawn(model: pm.Model, idata: Any) -> None:
    with pytest.raises(ValueError, match="cannot be drawn with labels=, as its rows of a known"):
        pm.sample_posterior_predictive(idata, model=model, progressbar=False)


def test_other_labels_than_those_of_the_trace_are_refused(idata: Any) -> None:
    for other in (model_with(labels=[*KNOWN[:-1], 5]), model_with()):
        with pytest.raises(ValueError, match=r"other labels= of x than the model has"):
            dps.sample_labels(idata, model=other)


@pytest.mark.slow
def test_a_chain_starts_from_a_map_of_rows_and_goes_on(model: pm.Model, idata: Any) -> None:
    found = dps.find_map(model, random_seed=1)
    assert len(found.labels) == 9
    np.testing.assert_array_equal(found.labels == found.labels[0], ROWS < 2.5)
    sizes = np.bincount(found.labels)
    np.testing.assert_allclose(found.weights, sizes / (9 + found.alpha))
    apart = np.arange(9)
    with model:
        begun = pm.sample(**{**SAMPLING, "draws": 2, "tune": 2}, dpsplit={"start_labels": found})
        with pytest.raises(ValueError, match=r"start_labels has rows 0 and 2 in two clusters"):
            pm.sample(**SAMPLING, dpsplit={"start_labels": apart})
    assert begun["posterior"].sizes["draw"] == 2
    more = dps.extend(
        idata, model, draws=3, tune=3, progressbar=False, compute_convergence_checks=False, cores=1
    )
    assert more["sample_stats"]["x_labels"].shape == (2, 63, 9)


# --- against enumeration, alpha sampled ------------------------------------------------------

SHORT = np.array([4, 0, 4, 2, -1, 2, -1, 2])
SHAPE, RATE = 2.0, 2.0


def law_with_alpha(name: str, n_features: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Partitions of the rows, their posterior under alpha ~ Gamma, and the mean of alpha."""
    rows, twin = rows_of(name, "overlapping", n_features), twin_of(name, n_features)
    partitions, given_one = law_of_known_labels(twin, rows, SHORT, 1.0)
    n_clusters = partitions.max(1) + 1
    alpha = (np.arange(4000) + 0.5) * 0.005
    log_prior = (SHAPE - 1) * np.log(alpha) - RATE * alpha
    log_joint = (
        log_prior + gammaln(alpha) - gammaln(alpha + len(rows))
        + n_clusters[:, None] * np.log(alpha) + np.log(given_one)[:, None]
    )  # fmt: skip
    joint = np.exp(log_joint - logsumexp(log_joint))
    return partitions, joint.sum(1), float(joint.sum(0) @ alpha)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "kernel"),
    slow_unless(
        [(("Normal", 1), "exact")].__contains__,
        [
            (family, kernel)
            for family in (("Normal", 1), ("MvNormal", 2), ("Poisson", 2))
            for kernel in ("exact", "collapsed")
        ],
    ),
)
def test_draws_of_pymc_follow_the_law_of_known_labels(family: tuple[str, int], kernel: str) -> None:
    name, n_features = family
    partitions, law, mean_alpha = law_with_alpha(name, n_features)
    observed = as_observed(name, rows_of(name, "overlapping", n_features))
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        dps.DPMixture("x", alpha, component_of(name, n_features), observed=observed, labels=SHORT)
        idata = pm.sample(
            **{**SAMPLING, "draws": 2000, "tune": 300, "chains": 4},
            dpsplit={"keep_labels": True, "kernel": kernel},
        )
    kept = idata["sample_stats"]["x_labels"].to_numpy()
    some = idata["posterior"].to_dataset().isel(draw=slice(0, None, 4))
    trace = xr.DataTree.from_dict({"posterior": some})
    redrawn = dps.sample_labels(trace, model=model, random_seed=1).to_numpy()
    everything = np.sort(partition_index(partitions))
    probabilities = law[np.argsort(partition_index(partitions))]
    n_clusters = (partitions.max(1) + 1)[np.argsort(partition_index(partitions))]
    by_number = np.bincount(n_clusters, probabilities)
    for labels in (kept, redrawn):
        index = partition_index(labels)
        assert np.isin(index, everything).all()
        position = np.searchsorted(everything, index)
        p_value = combine(
            partition_test(position, probabilities), count_test(n_clusters[position], by_number)
        )
        assert p_value > LEVEL
    found = idata["posterior"]["alpha"].to_numpy()
    assert found.mean() == pytest.approx(mean_alpha, abs=0.05)


def test_labels_of_pandas_are_read() -> None:
    for known in (pd.Series(KNOWN), pd.Series(KNOWN, dtype="Int64"), np.array(KNOWN, float)):
        shared = find_mixtures(model_with(labels=known))["x"].items.shared
        assert shared is not None
        np.testing.assert_array_equal(shared.known, KNOWN)
        assert shared.dimension_in("x") == ("x_item", ITEMS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [1, 2, 1]}, r"labels has shape \(3,\), but observed has 9 rows; give one"),
        ({"labels": [1, 1, -2, *[0] * 6]}, r"labels has -2 in row 2; give whole numbers from 0"),
        ({"labels": [1, 0.5, *[0] * 7]}, r"labels has 0.5 in row 1; give whole numbers"),
        ({"labels": [1, np.nan, *[0] * 7]}, r"labels has nan in row 1; .*-1 for rows whose label"),
        ({"labels": [1, None, *[0] * 7]}, r"labels is of type object; give whole numbers"),
        ({"labels": ["a"] * 9}, r"labels is of type <U1; give whole numbers"),
        ({"labels": [True] * 9}, r"labels is of type bool; give whole numbers"),
        ({"labels": "ab"}, r"labels .*; give whole numbers"),
        ({"labels": KNOWN, "groups": KNOWN}, r"labels and groups are both given, but rows"),
        ({"labels": KNOWN, "counts": [1] * 9}, r"labels and counts are both given, but rows"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model_with(**arguments)


def test_mixtures_whose_rows_have_no_known_labels_are_refused() -> None:
    base, known = dps.Normal(**HYPERPARAMETERS), KNOWN
    with pm.Model():
        data, mean = pm.Data("data", ROWS), pm.Normal("mean")
        with pytest.raises(ValueError, match="labels is given without observed"):
            dps.DPMixture("x", 1.0, base, shape=9, labels=known)
        for observed in (data, ROWS - mean):
            with pytest.raises(ValueError, match=r"labels is given, but observed=.* is a variable"):
                dps.DPMixture("x", 1.0, base, observed=observed, labels=known)
        with pytest.raises(ValueError, match="1 missing entries"):
            dps.DPMixture("x", 1.0, base, observed=[np.nan, *ROWS[1:]], labels=known)
        free = dps.Component(pm.Laplace, mu=pm.Normal.dist(0, 1), b=1.0)
        with pytest.raises(ValueError, match="whose parameters can be integrated out"):
            dps.DPMixture("x", 1.0, free, observed=ROWS, labels=known)
    with pm.Model(coords={"x_known_labels": range(3)}), pytest.raises(ValueError, match="taken"):
        dps.DPMixture("x", 1.0, base, observed=ROWS, labels=known)
