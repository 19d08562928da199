"""Faults that beginners make end in a sentence that helps, and results print as plain numbers."""

from datetime import date
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.posterior.plots.cluster_groups import cluster_groups


def test_alpha_may_not_be_left_out() -> None:
    with pm.Model(), pytest.raises(ValueError, match="x: alpha=None is no concentration; give"):
        dps.DPMixture("x", None, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=[0.0, 1.0])


def test_a_family_without_arguments_names_from_data() -> None:
    with pytest.raises(TypeError, match=r"give Normal\(mu0.*\), or Normal.from_data\(observed\)"):
        dps.Normal()


def test_numbers_of_numpy_print_as_plain_ones() -> None:
    assert repr(dps.Normal(np.float64(0.5), 0.1, np.int64(2), 1.0)) == (
        "Normal(mu0=0.5, kappa0=0.1, a0=2, b0=1.0)"
    )
    assert "np." not in repr(dps.Normal.from_data([0.0, 1.0, 2.0]))


def test_draws_in_the_place_of_a_partition_are_refused() -> None:
    labels = np.array([[0, 0, 1, 1]] * 3)
    with pytest.raises(ValueError, match=r"give the draws first .*credible_ball\(labels, part"):
        dps.credible_ball(labels[0], labels)


def trace() -> xr.DataTree:
    drawn = {
        "x_n_clusters": np.full((1, 2), 1),
        "x_weights": np.full((1, 2, 1), 0.9),
        "x_new_weight": np.full((1, 2), 0.1),
        "x_mu": np.zeros((1, 2, 1)),
        "x_sigma": np.ones((1, 2, 1)),
    }
    stats = {"x_entropy": np.zeros((1, 2)), "x_log_joint": np.zeros((1, 2))}
    data = {"x": np.array([-1.0, 0.3])}
    return az.from_dict({"posterior": drawn, "sample_stats": stats, "observed_data": data})


def model_of(observed: Any) -> pm.Model:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=observed)
    return model


def test_new_rows_in_a_dict_are_refused() -> None:
    with pytest.raises(ValueError, match="new is a dict of columns, which rows of Normal are not"):
        dps.predict(trace(), {"a": [0.0]}, model=model_of([-1.0, 0.3]))


NO_NUMBERS = {
    "dict": ({"a": [0.0, 1.0]}, "is a dict of columns.*give the array of one column, such as ob"),
    "dates": (pd.date_range("2020", periods=2), "give numbers, such as days since the first"),
    "dates of Python": ([date(2020, 1, 1)] * 2, "give numbers, such as days since the first"),
    "durations": (pd.to_timedelta([1, 2], "D"), "give numbers, such as the days that they last"),
    "complex": ([1j, 0.0], "give real numbers, such as real and imaginary parts in columns"),
    "ragged": ([[0.0], [1.0, 2.0]], "give rows of one length, with NaN where entries are missing"),
    "lists": (np.array([[0.0], [1.0, 2.0]], object), "give rows of one length, with NaN where"),
    "texts": (["a", "b"], "encode categories first, for instance by .cat.codes of pandas"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_the_remedy_is_that_of_the_kind_of_data(kind: str) -> None:
    observed, message = NO_NUMBERS[kind]
    with pytest.raises(ValueError, match=f"^x: observed .*{message}"):
        model_of(observed)


def test_columns_by_name_are_for_a_product_or_stacked() -> None:
    columns = {"a": [0.0, 1.0], "b": [1.0, 2.0]}
    message = r"takes an array of rows; give np.column_stack\(.*, or use Product"
    with pytest.raises(ValueError, match=message):
        dps.DiagNormal.from_data(columns)


def test_data_are_those_of_the_model_where_the_trace_has_none() -> None:
    whole, model = trace(), model_of([-1.0, 0.3])
    posterior = whole["posterior"].to_dataset()
    for alone in (posterior, az.extract(whole)):
        expected = dps.density(whole, model=model)
        xr.testing.assert_allclose(dps.density(alone, model=model), expected)
        with pytest.raises(ValueError, match=r"has no group observed_data, which .* give model="):
            dps.density(alone)
    ax = dps.plot_clusters(posterior, partition=[0, 1], model=model)
    assert len(ax.get_legend().get_texts()) == 2
    whole["observed_data"] = xr.Dataset({"z": 0.0})
    with pytest.raises(ValueError, match="neither observed_data nor posterior of idata has a var"):
        dps.density(whole)


def test_labels_given_a_model_of_other_data_are_refused() -> None:
    for read in (dps.sample_labels, dps.diagnose):
        with pytest.raises(ValueError, match="observations of x have other values in idata than"):
            read(trace(), model=model_of([5.0, 7.0]))


def test_other_data_of_a_small_scale_are_refused() -> None:
    """A number is compared with itself, not with the largest one beside it."""
    with pytest.raises(ValueError, match="observations of x have other values in idata than"):
        dps.sample_labels(trace_of([5.0, 1e-5]), model=model_of([5.0, 3e-5]))
    stored = np.array([5.0, 1e-5], np.float32)
    dps.sample_labels(trace_of(stored), model=model_of([5.0, 1e-5]))


def trace_of(observed: Any) -> xr.DataTree:
    found = trace()
    found["observed_data"] = xr.Dataset({"x": ("x_dim_0", observed)})
    return found


def test_latent_rows_with_other_data_are_refused() -> None:
    """Also where the trace has neither observations nor labels."""
    found = trace()
    del found["observed_data"]
    found["constant_data"] = xr.Dataset({"mean": 0.0})
    for mean, is_refused in ((0.0, False), (3.0, True)):
        with pm.Model() as model:
            base = dps.Normal(pm.Data("mean", mean), 0.1, 2.0, 1.0)
            x = dps.DPMixture("x", 1.0, base, shape=2)
            pm.Normal("y", x, 1.0, observed=[0.0, 1.0])
        if is_refused:
            with pytest.raises(ValueError, match="mean has other values in idata than in the"):
                dps.diagnose(found, model=model)
        else:
            dps.diagnose(found, model=model)


def test_smaller_clusters_look_like_no_other() -> None:
    labels = np.repeat(np.arange(12), np.arange(13, 1, -1))
    colours = [group.color for group in cluster_groups(labels, None, "row", len(labels))]
    assert colours[7] == "black"  # colour 7 of the cycle is a grey
    assert colours[-1] == "0.75"
