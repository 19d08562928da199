"""Readers of a trace that users have edited: read for what it is, or refused in one sentence."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import pymc_dpsplit as dps

ROWS = np.array([-3.1, -2.9, -2.4, 2.5, 3.4])
N_CHAINS, N_DRAWS, N_ROWS = 2, 10, len(ROWS)
PARTITION = np.array([0, 0, 0, 1, 1])
Edit = Callable[[Any], Any]


@cache
def model() -> pm.Model:
    with pm.Model() as declared:
        alpha = pm.Gamma("alpha", 2, 2)
        dps.DPMixture("x", alpha, dps.Normal(0, 0.1, 2, 1), observed=ROWS)
    return declared


@cache
def trace() -> xr.DataTree:
    """A trace as `pm.sample` makes it, of two or three clusters in each draw."""
    rng = np.random.default_rng(1)
    shape = (N_CHAINS, N_DRAWS)
    counts = rng.integers(2, 4, shape)
    weights, mu, sigma = np.zeros((*shape, 5)), *(np.full((*shape, 5), np.nan) for _ in "ms")
    rest = np.empty(shape)
    for place in np.ndindex(*shape):
        k = counts[place]
        *kept, rest[place] = rng.dirichlet([4.0] * k + [0.5])
        weights[place][:k] = np.sort(kept)[::-1]
        mu[place][:k], sigma[place][:k] = rng.normal(0, 3, k), rng.uniform(0.5, 2, k)
    posterior = {
        "x_n_clusters": counts,
        "x_new_weight": rest,
        "x_weights": weights,
        "x_mu": mu,
        "x_sigma": sigma,
        "alpha": rng.uniform(0.5, 2, shape),
    }
    stats = {f"x_{key}": rng.normal(size=shape) for key in ("entropy", "log_joint")}
    stats["x_labels"] = rng.integers(0, 2, (*shape, N_ROWS))
    groups = {"posterior": posterior, "sample_stats": stats, "observed_data": {"x": ROWS}}
    dims = {f"x_{key}": ["x_cluster"] for key in ("weights", "mu", "sigma")}
    return az.from_dict(groups, dims=dims)


# --- readers ------------------------------------------------------------------------------


def heights(ax: Any) -> list[float]:
    drawn = [float(bar.get_height()) for bar in ax.patches if hasattr(bar, "get_height")]
    lines = [value for line in ax.lines for value in np.ravel(line.get_ydata())]
    return [*drawn, *np.asarray(lines, float)]


def judged(idata: Any, **arguments: Any) -> Any:
    found = dps.diagnose(idata, **arguments)
    return [found.table[key].values for key in ("mean", "sd", "chain_mean")]


def without_labels(idata: Any) -> Any:
    if not isinstance(idata, xr.DataTree) or "sample_stats" not in idata.children:
        return idata
    return of_groups(lambda group: group.drop_vars("x_labels"), "sample_stats")(idata)


READERS: dict[str, Callable[[Any], Any]] = {
    "sample_labels": lambda idata: dps.sample_labels(idata, model=model(), random_seed=1),
    "sample_labels, redrawn": lambda idata: dps.sample_labels(
        without_labels(idata), model=model(), random_seed=1
    ),
    "predict": lambda idata: dps.predict(idata, [0.3, -9.0], model=model()).to_array(),
    "predict, partition": lambda idata: dps.predict(
        idata, [0.3], model=model(), partition=PARTITION, random_seed=1
    )["membership_probability"],
    "similarity_matrix": lambda idata: dps.similarity_matrix(idata, model=model(), random_seed=1),
    "similarity_matrix, alone": dps.similarity_matrix,
    "point_partition": lambda idata: dps.point_partition(idata, n_restarts=1, random_seed=1)[0],
    "credible_ball": lambda idata: dps.credible_ball(idata, PARTITION)["distance"],
    "partition_uncertainty": lambda idata: dps.partition_uncertainty(idata, PARTITION),
    "diagnose": judged,
    "diagnose, model": lambda idata: judged(idata, model=model()),
    "plot_n_clusters": lambda idata: heights(dps.plot_n_clusters(idata)),
    "plot_density": lambda idata: heights(dps.plot_density(idata)),
    "plot_clusters": lambda idata: heights(dps.plot_clusters(idata, partition=PARTITION)),
    "plot_similarity": lambda idata: dps.plot_similarity(idata).images[0].get_array().data,
    "plot_partition_uncertainty": lambda idata: heights(
        dps.plot_partition_uncertainty(idata, partition=PARTITION)
    ),
}
# Those that need the whole trace: labels kept by the step, or the data.
OF_OTHER_GROUPS = set(READERS) - {"sample_labels, redrawn", "predict", "plot_n_clusters"}


# --- edits --------------------------------------------------------------------------------


def of_groups(edit: Callable[[xr.Dataset], xr.Dataset], *groups: str) -> Edit:
    """An edit of some groups of a trace, by default those of draws."""

    def edited(idata: xr.DataTree) -> xr.DataTree:
        changed = {str(key): group.to_dataset() for key, group in idata.children.items()}
        for key in groups or ("posterior", "sample_stats"):
            changed[key] = edit(changed[key])
        return xr.DataTree.from_dict(changed)

    return edited


def in_float32(group: xr.Dataset) -> xr.Dataset:
    return group.map(lambda of: of.astype(np.float32), keep_attrs=True)


def replaced(variable: str, change: Callable[[np.ndarray], Any], group: str = "posterior") -> Edit:
    """An edit that replaces the values of a variable, of the same shape."""

    def edit(drawn: xr.Dataset) -> xr.Dataset:
        values = drawn[variable].to_numpy().copy()
        return drawn.assign({variable: drawn[variable].copy(data=change(values))})

    return of_groups(edit, group)


def first_set(value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(values: np.ndarray) -> np.ndarray:
        values = values if float(value).is_integer() else values.astype(float)
        values.flat[0] = value
        return values

    return change


def reversed_dims(group: xr.Dataset) -> xr.Dataset:
    return group.map(lambda of: of.transpose(*reversed(of.dims)))


def stacked(group: xr.Dataset) -> xr.Dataset:
    return group.stack(sample=("chain", "draw"))


def of_two_features(group: xr.Dataset) -> xr.Dataset:
    return group.assign({key: group[key].expand_dims({"f": 2}, -1) for key in ("x_mu", "x_sigma")})


# Each harmless edit with the one of the trace as it is that must read alike.
HARMLESS: dict[str, tuple[Edit, Edit]] = {
    "none": (lambda idata: idata, lambda idata: idata),
    "chain": (lambda idata: idata.isel(chain=1), lambda idata: idata.isel(chain=[1])),
    "draw": (lambda idata: idata.isel(draw=5), lambda idata: idata.isel(draw=[5])),
    "both": (
        lambda idata: idata.isel(chain=0, draw=2),
        lambda idata: idata.isel(chain=[0], draw=[2]),
    ),
    "float32": (of_groups(in_float32), lambda idata: idata),
    "transposed": (of_groups(reversed_dims), lambda idata: idata),
    "stacked": (of_groups(stacked), lambda idata: idata),
    "stacked, plain": (
        of_groups(lambda group: stacked(group).reset_index("sample")),
        lambda idata: idata,
    ),
    "posterior": (lambda idata: idata["posterior"].to_dataset(), lambda idata: idata),
    "node": (lambda idata: idata["posterior"], lambda idata: idata),
    "extracted": (az.extract, lambda idata: idata),
    "cluster": (of_groups(lambda group: group.rename(x_cluster="k"), "posterior"), lambda of: of),
}
BROKEN: dict[str, Edit] = {
    "None": lambda idata: None,
    "dict": lambda idata: {"posterior": 1},
    "str": lambda idata: "trace.nc",
    "no draws": lambda idata: idata.isel(draw=slice(0, 0)),
    "draw renamed": of_groups(lambda group: group.rename(draw="iteration")),
    "chain renamed": of_groups(lambda group: group.rename(chain="run")),
    "mean": of_groups(lambda group: group.mean("draw")),
    "ragged": of_groups(lambda group: stacked(group).isel(sample=slice(0, 11))),
}
# Labels that were kept are returned whatever the rest of a trace is.
NOT_KEPT = "^(?!sample_labels$)"
# These are refused by the readers named, and what others return does not depend on them.
WRONG: dict[str, tuple[Edit, str]] = {
    "no cluster": (replaced("x_n_clusters", first_set(0)), NOT_KEPT),
    "many clusters": (replaced("x_n_clusters", first_set(10**12)), NOT_KEPT),
    "half a cluster": (replaced("x_n_clusters", first_set(2.5)), NOT_KEPT),
    "NaN weight": (
        replaced("x_weights", first_set(np.nan)),
        "predict|redrawn|plot_density|, model",
    ),
    "negative": (replaced("x_weights", first_set(-0.25)), "predict|redrawn|plot_density|, model"),
    "double": (replaced("x_weights", lambda of: 2 * of), "predict|redrawn"),
    "NaN mu": (replaced("x_mu", first_set(np.nan)), "predict|redrawn|plot_density|, model"),
    "other D": (of_groups(of_two_features, "posterior"), "predict|redrawn|plot_density|, model"),
    "other family": (
        of_groups(lambda group: group.rename(x_mu="x_rate").drop_vars("x_sigma"), "posterior"),
        "predict|redrawn|plot_density|, model",
    ),
    "more of a family": (
        of_groups(lambda group: group.assign(x_nu=group["x_mu"]), "posterior"),
        "predict|redrawn|, model",
    ),
    "other N": (
        of_groups(lambda group: group.isel(x_labels_dim_0=[0, 1]), "sample_stats"),
        "sample_labels$|similarity|point|ball|uncertainty",
    ),
    "other draws": (
        of_groups(lambda group: group.isel(draw=slice(2, 4)), "sample_stats"),
        "labels$|similarity|point|ball|uncertainty|diagnose",
    ),
    "label": (
        replaced("x_labels", first_set(-1), "sample_stats"),
        "labels$|similarity|point|ball|uncertainty|diagnose",
    ),
    "NaN label": (
        replaced("x_labels", first_set(np.nan), "sample_stats"),
        "labels$|similarity|point|ball|uncertainty|diagnose",
    ),
}


def outcome(reader: str, idata: Any) -> Any:
    """What a reader returns, as an array; or the message with which it refuses."""
    try:
        found = READERS[reader](idata)
    except (TypeError, ValueError) as fault:
        return str(fault)
    finally:
        plt.close("all")
    if isinstance(found, list):
        return np.concatenate([np.ravel(of) for of in found])
    return np.asarray(found, float)


@cache
def expected(reader: str, edit: str) -> Any:
    return outcome(reader, HARMLESS[edit][1](trace()))


def assert_one_sentence(message: Any) -> None:
    # A fault of NumPy or xarray does not tell what to give.
    assert isinstance(message, str)
    assert re.search(r"[;,:] (give|sample with|choose|select|leave) ", message), message
    assert message.endswith(".")
    assert "\n" not in message


@given(st.sampled_from(sorted(READERS)), st.sampled_from(sorted(HARMLESS)))
def test_harmless_edits_change_nothing(reader: str, edit: str) -> None:
    found, wanted = outcome(reader, HARMLESS[edit][0](trace())), expected(reader, edit)
    is_part = edit in ("posterior", "node", "extracted") and reader in OF_OTHER_GROUPS
    if isinstance(found, str):
        assert_one_sentence(found)
        # With one draw there may be nothing to judge; a part of the trace may not do.
        assert is_part or isinstance(wanted, str)
        return
    if not is_part:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@given(
    st.sampled_from(sorted(READERS)),
    st.sampled_from(sorted(BROKEN)),
    st.sampled_from(["none", "float32", "transposed"]),
)
def test_broken_traces_are_refused(reader: str, fault: str, edit: str) -> None:
    assert_one_sentence(outcome(reader, BROKEN[fault](HARMLESS[edit][0](trace()))))


@given(st.sampled_from(sorted(READERS)), st.sampled_from(sorted(WRONG)), st.booleans())
def test_wrong_values_are_refused_where_they_matter(reader: str, fault: str, turned: bool) -> None:
    edit, by = WRONG[fault]
    found = outcome(reader, edit(of_groups(reversed_dims)(trace()) if turned else trace()))
    if isinstance(found, str) or re.search(by, reader):
        assert_one_sentence(found)
        return
    # Without its model a trace of another family is taken for what it says.
    if fault != "other family":
        np.testing.assert_allclose(found, expected(reader, "none"), rtol=1e-12)


@pytest.mark.parametrize("reader", sorted(READERS))
def test_every_reader_reads_the_trace_as_it_is(reader: str) -> None:
    assert not isinstance(expected(reader, "none"), str)
