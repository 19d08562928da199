"""`extend`: what is returned and what is refused; its law is tested in tests/exact."""

import logging
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.step import dp_split_merge
from pymc_dpsplit.variables import find_mixtures
from tests.support.exact_traces import exact_trace
from tests.support.families import component_of

ROWS = np.array([-2.3, -1.9, -1.6, 1.4, 1.9, 2.2])
QUIET: dict[str, Any] = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}


def model_of(rows: np.ndarray = ROWS, alpha: Any = 1.0, **options: Any) -> pm.Model:
    with pm.Model() as model:
        pm.Data("given", [1.0, 2.0])
        dps.DPMixture("x", alpha, component_of("Normal", 1), observed=rows, **options)
    return model


def trace_of(model: pm.Model, seed: int = 1, **options: Any) -> xr.DataTree:
    with model:
        return pm.sample(draws=12, tune=6, chains=2, random_seed=seed, **QUIET, **options)


@pytest.fixture(scope="module")
def model() -> pm.Model:
    return model_of()


@pytest.fixture(scope="module")
def idata(model: pm.Model) -> xr.DataTree:
    return trace_of(model, dpsplit={"keep_labels": True})


def extended(idata: xr.DataTree, model: pm.Model, **arguments: Any) -> xr.DataTree:
    return dps.extend(idata, model, **{"draws": 5, "tune": 4, "random_seed": 1} | QUIET | arguments)


def test_new_draws_follow_the_old(
    model: pm.Model, idata: xr.DataTree, caplog: pytest.LogCaptureFixture
) -> None:
    idata = idata.copy()
    likelihood = np.zeros((2, 12, len(ROWS)))
    idata["log_likelihood"] = xr.DataTree(xr.Dataset({"x": (("chain", "draw", "n"), likelihood)}))
    before = idata["posterior"].to_dataset()
    with caplog.at_level(logging.INFO, "pymc"):
        found = extended(idata, model)
    assert list(found.children) == [of for of in idata.children if of != "log_likelihood"]
    for group in ("posterior", "sample_stats"):
        old, new = idata[group].to_dataset(), found[group].to_dataset()
        assert list(new.data_vars) == list(old.data_vars)
        assert list(new["draw"].to_numpy()) == list(range(17))
        xr.testing.assert_identical(new.isel(draw=slice(12)).drop_attrs(), old.drop_attrs())
        assert set(new.attrs) == set(old.attrs)
        assert {name: of.dtype for name, of in new.items()} == {
            name: of.dtype for name, of in old.items()
        }
    assert found["sample_stats"]["x_labels"].shape == (2, 17, len(ROWS))
    assert found["observed_data"].to_dataset().identical(idata["observed_data"].to_dataset())
    said = "Continued 2 chains from the last draw: labels drawn anew, the step tuned for 4 draws"
    assert f"{said} that are not kept, without the groups log_likelihood." in caplog.text
    xr.testing.assert_identical(idata["posterior"].to_dataset(), before)
    # The same seed gives the same draws, but not those of pm.sample.
    again = extended(idata, model)
    xr.testing.assert_equal(again["posterior"].to_dataset(), found["posterior"].to_dataset())
    new = found["posterior"]["x_new_weight"].to_numpy()
    assert len(np.unique(new)) == new.size


def test_extended_trace_is_extended_again(model: pm.Model, idata: xr.DataTree) -> None:
    part = idata.sel(chain=[1]).isel(draw=slice(4, None))
    with model:
        once = dps.extend(part, draws=3, tune=0, **QUIET)
        twice = dps.extend(once, draws=3, tune=0, **QUIET)
    assert list(twice["posterior"]["draw"].to_numpy()) == list(range(4, 18))
    assert list(twice["posterior"]["chain"].to_numpy()) == [1]
    alone = dps.extend(once["posterior"].to_dataset(), model, 2, tune=0, **QUIET)
    assert list(alone.children) == ["posterior"]
    assert alone["posterior"].sizes["draw"] == 13


def starts_seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, sampler.ChainState]]:
    """Points and states from which the chains start, filled while they do."""
    seen: list[tuple[Any, sampler.ChainState]] = []
    start = dp_split_merge.first_state

    def kept(*arguments: Any) -> sampler.ChainState:
        state = start(*arguments)
        seen.append((dict(arguments[4]), state))
        return state

    monkeypatch.setattr(dp_split_merge, "first_state", kept)
    return seen


@pytest.mark.slow
def test_labels_that_are_variables_are_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1)
        dps.DPMixture("x", 1.0, component_of("Normal", 1), observed=ROWS - slope * np.arange(6.0))
    idata = trace_of(model)
    seen = starts_seen(monkeypatch)
    with caplog.at_level(logging.INFO, "pymc"):
        found = extended(idata, model)
    assert "labels as recorded, all steps tuned for 4 draws" in caplog.text
    assert found["posterior"]["slope"].shape == (2, 17)
    labels = idata["posterior"]["x_labels"].to_numpy()[:, -1]
    # The first start is that of the trial draws that compile the kernels.
    for own, (_, state) in zip(labels[[0, 0, 1]], seen, strict=True):
        np.testing.assert_array_equal(state.labels, own)


@pytest.mark.slow
def test_missing_entries_and_several_mixtures() -> None:
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2, 2)
        dps.DPMixture("x", alpha, component_of("Normal", 1), observed=[*ROWS, np.nan])
        dps.DPMixture("y", alpha, component_of("Normal", 1), observed=ROWS)
    found = extended(trace_of(model), model)
    assert found["posterior"]["x_unobserved"].shape == (2, 17, 1)
    assert found["posterior"]["alpha"].shape == (2, 17)


@pytest.mark.compiled  # densities are called by address
def test_parameters_of_other_families_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    component = dps.Component(pm.StudentT, nu=4, mu=pm.Normal.dist(0, 10), sigma=1.0)
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, component, observed=ROWS)
    idata = trace_of(model)
    (mixture,) = find_mixtures(model).values()
    seen = starts_seen(monkeypatch)
    extended(idata, model)
    for point, state in seen:
        packed = mixture.component.pack({"mu": point["x_mu"][: int(point["x_n_clusters"])]}, None)
        recorded = set(packed[:, 1])
        own = set(state.stats[:, 2])
        # Other clusters were drawn from the remainder.
        assert own & recorded
        assert len(own) == len(state.stats)


def drawn(n_draws: int = 5) -> xr.DataTree:
    return exact_trace("Normal", ROWS[:, None], 1.0, (2, n_draws), seed=1)


def with_observed(values: np.ndarray) -> xr.DataTree:
    trace = drawn()
    trace["observed_data"] = xr.DataTree(xr.Dataset({"x": ("x_dim_0", values)}))
    return trace


def with_given(values: list[float]) -> xr.DataTree:
    trace = drawn()
    trace["constant_data"] = xr.DataTree(xr.Dataset({"given": ("given_dim_0", values)}))
    return trace


def without(name: str) -> xr.DataTree:
    return xr.DataTree.from_dict({"posterior": drawn()["posterior"].to_dataset().drop_vars(name)})


def with_more() -> xr.DataTree:
    posterior = drawn()["posterior"].to_dataset()
    return xr.DataTree.from_dict({"posterior": posterior.assign(z=posterior["x_n_clusters"])})


def crowded() -> xr.DataTree:
    posterior = drawn()["posterior"].to_dataset()
    counts = posterior["x_n_clusters"] + 9
    return xr.DataTree.from_dict({"posterior": posterior.assign(x_n_clusters=counts)})


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "other data": (lambda: with_observed(ROWS + 1), {}, "other values in idata"),
    "other length": (lambda: with_observed(ROWS[:-1]), {}, "x has other values in idata"),
    "other constants": (lambda: with_given([1.0, 3.0]), {}, "given has other values in idata"),
    "no parameter": (lambda: without("x_mu"), {}, "holds no x_mu, from which a chain could"),
    "more variables": (with_more, {}, "holds z, of which the model can make no more draws"),
    "thinned": (lambda: drawn().isel(draw=slice(None, None, 2)), {}, "not consecutive"),
    "no chains": (lambda: drawn().isel(chain=[]), {}, "holds no draws"),
    "pruned clusters": (crowded, {}, "x have up to 1. clusters, of which the largest 6 were"),
    "no draws wanted": (drawn, {"draws": 0}, "draws=0"),
    "start": (drawn, {"initvals": {}}, "initvals={} is given, but how a chain goes on"),
    "seed": (drawn, {"random_seed": "a"}, "random_seed='a' is no seed"),
    "labels": (drawn, {"dpsplit": {"start_clusters": 2}}, "start_clusters is given, but a chain"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, model: pm.Model) -> None:
    make, arguments, message = REFUSED[case]
    with pytest.raises(ValueError, match=message) as caught:
        dps.extend(make(), model, **arguments)
    assert str(caught.value).count(". ") == 0


def test_models_without_the_mixture_are_refused() -> None:
    with pytest.raises(ValueError, match="model is not given"):
        dps.extend(drawn())
    with pm.Model() as plain:
        pm.Normal("mu")
    with pytest.raises(ValueError, match="model has no mixture"):
        dps.extend(drawn(), plain)
    with pytest.raises(ValueError, match="x_weights has shape"):
        dps.extend(drawn(), model_of(ROWS, max_clusters=3))
    with pytest.raises(ValueError, match="so labels given the stored clusters need"):
        dps.extend(drawn(), model_of(alpha=1e6))


def declare_beside(kind: str) -> None:
    if kind == "DPMixture":
        dps.DPMixture("x", 1.0, component_of("Normal", 1), observed=ROWS)
    elif kind == "HDPMixture":
        of = {"groups": [0, 0, 0, 1, 1, 1], "observed": ROWS}
        dps.HDPMixture("x", 1.0, 1.0, component_of("Normal", 1), **of)


@pytest.mark.parametrize("kind", ["alone", "DPMixture", "HDPMixture"])
def test_topics_are_not_restarted(kind: str) -> None:
    """A chain would begin with new topics, whatever is sampled beside them."""
    with pm.Model() as model:
        declare_beside(kind)
        dps.HDPTopics("w", 1.0, 1.0, 0.5, observed=[[3, 1, 0], [0, 0, 4]])
    message = r"w is an HDPTopics, .* not in a trace, .* step=Checkpoint\(folder\), which keeps"
    with pytest.raises(ValueError, match=message):
        extended(trace_of(model), model)


def test_step_refuses_a_point_that_is_no_draw(model: pm.Model) -> None:
    with pytest.raises(ValueError, match="initvals holds no whole draw of the mixture"):
        dps.DPSplitMerge(model.free_RVs, model=model, continues=True)


def test_traces_laid_out_otherwise_are_extended(idata: xr.DataTree, model: pm.Model) -> None:
    expected = extended(idata, model)["posterior"].to_dataset()
    bare = idata.map_over_datasets(
        lambda of: of.drop_vars([dim for dim in ("chain", "draw") if dim in of.coords])
    )
    xr.testing.assert_equal(extended(bare, model)["posterior"].to_dataset(), expected)


def test_dimensions_without_names_take_those_of_the_model(plane: tuple[pm.Model, Any]) -> None:
    model, idata = plane
    posterior = idata["posterior"].to_dataset()
    mu = posterior["x_mu"].drop_vars("feature").rename(feature="x_mu_dim_0")
    found = extended(posterior.assign(x_mu=mu), model)["posterior"].to_dataset()
    xr.testing.assert_equal(found, extended(posterior, model)["posterior"].to_dataset())


ROWS_OF_TWO = np.column_stack([ROWS, ROWS[::-1]])


@pytest.fixture(scope="module")
def plane() -> tuple[pm.Model, xr.DataTree]:
    with pm.Model(coords={"feature": ["a", "b"]}) as model:
        given = pm.Data("given", ROWS_OF_TWO, dims=("row", "feature"))
        component = dps.DiagNormal([0, 0], 0.1, 2.0, 1.0)
        dps.DPMixture("x", 1.0, component, observed=given, dims=("row", "feature"))
    return model, trace_of(model)


def test_transposed_data_are_the_same_data(plane: tuple[pm.Model, xr.DataTree]) -> None:
    model, idata = plane
    turned = idata.map_over_datasets(lambda of: of.transpose(*reversed(list(of.dims))))
    assert turned["observed_data"]["x"].dims == ("feature", "row")
    found, expected = (extended(of, model)["posterior"].to_dataset() for of in (turned, idata))
    xr.testing.assert_equal(found, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda of: of.rename(feature="k") if "feature" in of.dims else of,
         r"x_mu has the dimensions \('x_cluster', 'k'\) in idata, but \('x_cluster', 'feature'\)"),
        (lambda of: of.rename(x_cluster="k") if "x_cluster" in of.dims else of,
         r"has the dimensions \('k',.* in idata, but \('x_cluster',"),
        (lambda of: of.isel(feature=[1, 0]) if "x_mu" in of else of,
         r"feature has its coordinates in another order .* idata\.sel\(feature=model\.coords\["),
        (lambda of: of.isel(x_cluster=[1, 0, 2, 3, 4, 5]) if "x_mu" in of else of,
         r"x_cluster has its coordinates in another order .* give idata\.sel\(x_cluster=model"),
    ],
)  # fmt: skip
def test_dimensions_of_other_names_or_orders_are_refused(
    change: Any, message: str, plane: tuple[pm.Model, xr.DataTree]
) -> None:
    model, idata = plane
    with pytest.raises(ValueError, match=message):
        extended(idata.map_over_datasets(change), model)
