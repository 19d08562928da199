"""A trace of rows in other groups than those of the model is refused by all that read groups."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps

ROWS = np.array([0.1, 5.2, 0.3, -0.2, 5.0, 4.8])
GROUPS = ["a", "b", "a", "a", "b", "b"]
QUIET: dict[str, Any] = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
MESSAGE = "idata was sampled with other groups= of x than the model has; give the model with"
# Of so few draws the tail of importance weights is too short.
pytestmark = pytest.mark.filterwarnings("ignore:Estimated shape parameter")

Reader = Callable[[xr.DataTree, pm.Model], Any]
READERS: dict[str, Reader] = {
    "loo": lambda idata, model: dps.loo(idata, model=model),
    "loo_groups": lambda idata, model: dps.loo_groups(idata, model=model, random_seed=1),
    "predict": lambda idata, model: dps.predict(idata, [0.0], model=model, groups=["a"]),
    "predict in a new group": lambda idata, model: dps.predict(
        idata, [0.0], model=model, groups=["z"]
    ),
    "predict clusters": lambda idata, model: dps.predict(
        idata, [0.0], model=model, partition=[0, 1, 0, 0, 1, 1], random_seed=1
    ),
    "sample_labels": lambda idata, model: dps.sample_labels(idata, model=model),
    "describe_clusters": lambda idata, model: dps.describe_clusters(
        idata, [0, 1, 0, 0, 1, 1], model=model
    ),
    "group_weights": lambda idata, model: dps.group_weights(
        idata, [0, 1, 0, 0, 1, 1], model=model
    ),
    "diagnose": lambda idata, model: dps.diagnose(idata, model=model),
    "extend": lambda idata, model: dps.extend(idata, model, draws=2, tune=0, **QUIET),
}  # fmt: skip
LATENT = ["loo_groups", "sample_labels", "describe_clusters", "group_weights", "diagnose", "extend"]
CASES = [("observed", key) for key in READERS] + [("latent", key) for key in LATENT]

# With the same number of rows in each group, in other groups of the same names; of other names;
# and with one more group, which has no rows.
OTHERS: dict[str, dict[str, Any]] = {
    "members": {"groups": ["a", "a", "b", "b", "a", "b"]},
    "names": {"groups": ["c" if of == "a" else "d" for of in GROUPS]},
    "number": {"groups": GROUPS, "coords": {"x_group": ["a", "b", "c"]}},
}


def declared(
    kind: str = "observed", groups: Any = GROUPS, coords: dict[str, Any] | None = None
) -> pm.Model:
    component = dps.Normal(0.0, 0.1, 2.0, 1.0)
    with pm.Model(coords=coords) as model:
        if kind == "observed":
            dps.HDPMixture("x", 1.0, 1.0, component, groups=groups, observed=ROWS)
        else:
            x = dps.HDPMixture("x", 1.0, 1.0, component, groups=groups, shape=len(ROWS))
            pm.Normal("y", x, 0.5, observed=ROWS)
    return model


def sampled(model: pm.Model) -> xr.DataTree:
    with model:
        return pm.sample(draws=30, tune=10, chains=2, random_seed=1, **QUIET)


@pytest.fixture(scope="module")
def traces() -> dict[str, xr.DataTree]:
    return {kind: sampled(declared(kind)) for kind in ("observed", "latent")}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("kind", "reader"), CASES)
def test_other_groups_are_refused(kind: str, reader: str, other: str, traces: Any) -> None:
    with pytest.raises(ValueError, match=MESSAGE):
        READERS[reader](traces[kind], declared(kind, **OTHERS[other]))


@pytest.mark.parametrize(("kind", "reader"), CASES)
def test_the_same_groups_are_read(kind: str, reader: str, traces: Any) -> None:
    READERS[reader](traces[kind], declared(kind))


def test_groups_that_are_not_read_may_be_others(traces: Any) -> None:
    """A row of a new group depends on none of them, and `density` takes those of the trace."""
    found = [
        (
            dps.predict(traces["observed"], [0.0, 5.0], model=model),
            dps.density(traces["observed"], model=model, group="a"),
        )
        for model in (declared(), declared(**OTHERS["members"]))
    ]
    for own, other in zip(*found, strict=True):
        xr.testing.assert_equal(own, other)


@pytest.mark.parametrize(
    "names",
    [
        [3, 10],
        np.array(["2020-01-01", "2020-02-01"], "datetime64[D]"),
        np.array(["2020-01-01", "2020-02-01"], "datetime64[ns]"),
    ],
    ids=["numbers", "days", "nanoseconds"],
)
def test_names_of_a_trace_from_disk_are_the_same(names: Any, tmp_path: Path) -> None:
    groups = np.asarray(names)[[int(of == "b") for of in GROUPS]]
    idata = sampled(declared(groups=groups))
    idata.to_netcdf(tmp_path / "trace.nc")
    for trace in (idata, xr.load_datatree(tmp_path / "trace.nc")):
        assert np.isfinite(dps.loo(trace, model=declared(groups=groups)).elpd)
        with pytest.raises(ValueError, match=MESSAGE):
            dps.loo(trace, model=declared(groups=groups[::-1]))


def test_groups_in_data_are_those_with_which_the_mixture_was_declared() -> None:
    """`pm.set_data` does not move rows to other groups, so that the trace is read as before."""
    with pm.Model() as model:
        groups = pm.Data("of_row", [0, 1, 0, 0, 1, 1])
        dps.HDPMixture("x", 1.0, 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), groups=groups, observed=ROWS)
    idata = sampled(model)
    before = dps.predict(idata, [0.0, 5.0], model=model, groups=[0, 1])
    model.set_data("of_row", [1, 1, 1, 0, 0, 0])
    xr.testing.assert_equal(dps.predict(idata, [0.0, 5.0], model=model, groups=[0, 1]), before)
