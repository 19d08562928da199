"""Draws from a trace: labels are those of its own rows, and parts of a measure stay together."""

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit.pymc_hooks import forward_draws

GROUPS, OTHERS = list("abcdef"), list("uvwxyz")
LABELS = np.repeat([0, 1], 3)
N_DRAWS = 200
SCALARS = dps.Normal(0.0, 0.1, 2.0, 1.0)
PARTS = ["b_n_clusters", "b_new_weight", "b_weights", "b_mu", "b_sigma", "b_labels"]
DRAWN = {"var_names": ["b"], "sample_vars": ["b"], "predictions": True}


def declared(groups=GROUPS, hierarchical=False):
    with pm.Model(coords={"g": groups}) as model:
        if hierarchical:
            b = dps.HDPMixture("b", 1.0, 1.0, SCALARS, groups=LABELS, dims="g")
        else:
            b = dps.DPMixture("b", 1.0, SCALARS, dims="g")
        pm.Normal("y", b, 0.5, observed=np.where(LABELS, 3.0, -3.0))
    return model


def trace(coords=None, **changes):
    """Two clusters at -3 and 3, of three groups each, in every draw."""
    by_cluster = np.full((3, 6), np.nan)
    by_cluster[:, :2] = [[0.5, 0.5], [-3.0, 3.0], [0.3, 0.3]]
    by_cluster[0, 2:] = 0.0
    weights, mu, sigma = by_cluster
    values = {
        "b_n_clusters": ((), 2),
        "b_new_weight": ((), 1e-9),
        "b_weights": (("b_cluster",), weights),
        "b_mu": (("b_cluster",), mu),
        "b_sigma": (("b_cluster",), sigma),
        "b_labels": (("g",), LABELS),
        "b": (("g",), np.where(LABELS, 3.0, -3.0)),
        **changes,
    }
    known = {"g": GROUPS} if coords is None else coords
    drawn = xr.Dataset({name: of for name, of in values.items() if of is not None}, known)
    return drawn.expand_dims(chain=1, draw=N_DRAWS)


def predicted(model, drawn, **arguments):
    with model:
        found = pm.sample_posterior_predictive(
            drawn, progressbar=False, random_seed=1, **{**DRAWN, **arguments}
        )
    return found["predictions"].to_dataset()


def means(model, drawn, **arguments):
    return predicted(model, drawn, **arguments)["b"].mean(("chain", "draw")).to_numpy()


def assert_refused(model, drawn, message, **arguments):
    with pytest.raises(ValueError, match=message) as raised:
        predicted(model, drawn, **arguments)
    assert "\n" not in str(raised.value)


# --- labels -------------------------------------------------------------------------------


def renamed():
    model = declared()
    model.set_dim("g", 6, coord_values=OTHERS)
    return model


NEW = {
    "set_dim": renamed,
    "another model": lambda: declared(OTHERS),
    "another order": lambda: declared(GROUPS[::-1]),
}


@pytest.mark.parametrize("form", NEW)
def test_new_groups_do_not_inherit_labels(form):
    """Each is of either cluster, with equal probability, in each draw."""
    found = means(NEW[form](), trace())
    assert (abs(found) < 5 * 3.1 / np.sqrt(N_DRAWS)).all()


@pytest.mark.parametrize("coords", [None, {}, {"g": np.array(GROUPS, dtype=object)}])
def test_groups_of_the_trace_keep_their_labels(coords):
    """A trace without coordinates is that of the groups of the model."""
    found = means(declared(), trace(coords))
    np.testing.assert_allclose(found, np.where(LABELS, 3.0, -3.0), atol=0.2)


def test_dates_that_pandas_reads_are_the_same_groups():
    days = np.arange("2026-01-01", "2026-01-07", dtype="datetime64[D]")
    for same in (days, days.astype("datetime64[ns]"), list(xr.DataArray(days).to_index())):
        found = means(declared(same), trace({"g": days.astype("datetime64[ns]")}))
        assert (abs(found) > 2.5).all()


def test_whole_measure_that_is_drawn_brings_labels():
    """Standardised by the parameters that these labels name, rows are standard normal."""
    found = predicted(declared(OTHERS), trace(), var_names=None, sample_vars=["b", *PARTS])
    labels = found["b_labels"].to_numpy()
    mu, sigma = (
        np.take_along_axis(found[f"b_{of}"].to_numpy(), labels, axis=2) for of in ("mu", "sigma")
    )
    z = (found["b"].to_numpy() - mu) / sigma
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / z.size)


def test_labels_that_were_not_recorded_are_drawn_from_the_weights():
    found = means(declared(), trace(b_labels=None))
    assert (abs(found) < 5 * 3.1 / np.sqrt(N_DRAWS)).all()


def test_labels_of_other_groups_are_refused():
    both = {"var_names": ["b", "b_labels"]}
    message = r"b_labels in the trace has other coordinates of g .*; leave b_labels out of var_na"
    assert_refused(declared(OTHERS), trace(), message, **both)
    assert predicted(declared(), trace(), **both)["b_labels"].values.tolist()[0][0] == [*LABELS]


def test_new_rows_in_groups_are_refused():
    """Labels of a hierarchical mixture have no law without their groups."""
    drawn = trace(b_n_tables=((), 2))
    model = declared(OTHERS, hierarchical=True)
    assert_refused(model, drawn, r"b is drawn given the labels in the trace, .* of g than the mod")
    assert (abs(means(declared(hierarchical=True), drawn)) > 2.5).all()


# --- prior of a measure after other data ---------------------------------------------------


def z_of_prior_n_clusters(n_rows):
    """Standard score of the mean number of clusters, after data of other rows were set."""
    alpha, n_draws = 3.0, 400
    with pm.Model():
        data = pm.Data("data", np.arange(6.0))
        dps.DPMixture("x", alpha, SCALARS, observed=data)
        pm.set_data({"data": np.arange(float(n_rows))})
        drawn = pm.sample_prior_predictive(n_draws, random_seed=1)
    assert drawn["prior_predictive"]["x"].shape == (1, n_draws, n_rows)
    # Row i opens a cluster with probability alpha / (alpha + i), whatever the others do.
    opens = alpha / (alpha + np.arange(n_rows))
    error = drawn["prior"]["x_n_clusters"].to_numpy().mean() - opens.sum()
    return error / np.sqrt((opens * (1.0 - opens)).sum() / n_draws)


@pytest.mark.parametrize("n_rows", [3, 60])
def test_prior_is_that_of_the_rows_that_were_set(n_rows):
    assert abs(z_of_prior_n_clusters(n_rows)) < 4.42  # level 1e-5


@pytest.mark.control
@pytest.mark.parametrize("n_rows", [3, 60])
def test_prior_of_the_rows_that_were_declared_is_caught(n_rows, monkeypatch):
    monkeypatch.setattr(forward_draws, "_numbers_of_rows", lambda model: {})
    assert abs(z_of_prior_n_clusters(n_rows)) > 4.42


# --- parts of a measure -------------------------------------------------------------------


@pytest.mark.parametrize("part", ["b_mu", "b_n_clusters", "b_labels"])
def test_part_that_is_drawn_alone_is_refused(part):
    others = ", ".join(name for name in PARTS if name != part)
    message = rf"^b: sample_vars lists {part}, drawn together with {others}; list all of them .*\.$"
    assert_refused(declared(), trace(), message, var_names=["b", part], sample_vars=["b", part])
    assert_refused(declared(), trace(), message, var_names=["b", part], sample_vars=part)


def test_part_of_an_observed_mixture_is_refused():
    with pm.Model() as model:
        dps.DPMixture("b", 1.0, SCALARS, observed=np.where(LABELS, 3.0, -3.0))
    drawn = trace(b_labels=None, b=None)
    asked = {"var_names": ["b", "b_mu"], "predictions": True}
    assert_refused(model, drawn, "sample_vars lists b_mu, drawn tog", sample_vars=["b_mu"], **asked)
    for listed in (None, PARTS[:-1]):
        found = predicted(model, drawn, sample_vars=listed, **asked)
        assert np.isfinite(found["b"]).all()


def test_part_that_was_not_recorded_is_refused():
    message = r"^b: the trace holds b_n_clusters, .*, but not b_mu, .*; give a trace sampled .*\.$"
    assert_refused(declared(), trace(b_mu=None), message)
    asked = {"var_names": ["b_labels"], "sample_vars": None}
    assert "b_labels" in predicted(declared(), trace(b_mu=None, b=None), **asked)


def test_other_models_are_not_read():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 0.5, observed=[0.9, 1.1])
        points = [{"mu": np.array(0.5)}] * 3
        found = pm.sample_posterior_predictive(points, model=model, progressbar=False)
    assert found["posterior_predictive"]["y"].shape == (1, 3, 2)
