"""Readers that compute from the model refuse a model of which `pm.set_data` has replaced data."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dpsplit as dps

ROWS, GROUPS = np.array([-2.0, -1.9, 0.1, 0.2, 2.1, 1.9]), [0, 0, 0, 1, 1, 1]
COUNTS = np.array([[0], [1], [9], [8], [30], [33]])
GIVEN: dict[str, Any] = {
    "sigma": 0.5, "alpha": 1.0, "gamma": 1.0, "rows": ROWS, "z": 0.0, "x": np.arange(6.0)
}  # fmt: skip
Reader = Callable[[xr.DataTree, pm.Model], Any]

DENSITY: dict[str, Reader] = {
    "density": lambda idata, model: dps.density(idata, model=model),
    "plot_density": lambda idata, model: dps.plot_density(idata, model=model),
}
# What each reader of a mixture of each kind depends on.
OF_LAW: dict[str, Reader] = {
    **DENSITY,
    "predict": lambda idata, model: dps.predict(idata, [0.0], model=model),
}
OF_COMPLETED: dict[str, Reader] = {
    **DENSITY,
    "predict": lambda idata, model: dps.predict(idata, [[3.0]], model=model),
}
READERS: dict[str, dict[str, tuple[Reader, set[str]]]] = {
    "DPMixture": {
        **{key: (of, {"sigma", "alpha"}) for key, of in OF_LAW.items()},
        "plot_n_clusters": (
            lambda idata, model: dps.plot_n_clusters(idata, model=model, prior=True),
            {"alpha"},
        ),
        "diagnose": (
            lambda idata, model: dps.diagnose(idata, model=model),
            {"sigma", "alpha", "rows"},
        ),
    },
    "HDPMixture": {
        **{key: (of, {"sigma", "gamma"}) for key, of in OF_LAW.items()},
        "density of a group": (
            lambda idata, model: dps.density(idata, model=model, group=1),
            {"sigma", "gamma"},
        ),
        "plot_n_clusters": (
            lambda idata, model: dps.plot_n_clusters(idata, model=model, prior=True),
            {"alpha", "gamma"},
        ),
        "diagnose": (
            lambda idata, model: dps.diagnose(idata, model=model),
            {"sigma", "gamma", "rows"},
        ),
        "group_weights": (
            lambda idata, model: dps.group_weights(idata, GROUPS, model=model),
            {"sigma", "gamma", "rows"},
        ),
    },
}
CASES = [(kind, reader) for kind, readers in READERS.items() for reader in readers]


def sampled(model: pm.Model, **options: Any) -> xr.DataTree:
    with model:
        return pm.sample(
            draws=12,
            tune=6,
            chains=2,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        )


def declared(kind: str) -> pm.Model:
    with pm.Model() as model:
        sigma, alpha, gamma, rows, _ = (
            pm.Data(name, GIVEN[name]) for name in ("sigma", "alpha", "gamma", "rows", "z")
        )
        if kind == "DPMixture":
            component = dps.NormalKnownSigma(0.0, 3.0, sigma)
            dps.DPMixture("x", 2.0 * alpha, component, observed=rows)
        else:
            component = dps.NormalKnownSigma(2.0 * sigma, 3.0, 0.5)
            of = {"groups": GROUPS, "observed": rows}
            dps.HDPMixture("x", 2.0 * alpha, 2.0 * gamma, component, **of)
    return model


@pytest.fixture(scope="module")
def traces() -> dict[str, tuple[pm.Model, xr.DataTree]]:
    models = {kind: declared(kind) for kind in READERS}
    return {kind: (model, sampled(model)) for kind, model in models.items()}


@pytest.mark.parametrize(("kind", "reader"), CASES)
def test_what_is_read_may_not_be_replaced(kind: str, reader: str, traces: Any) -> None:
    model, idata = traces[kind]
    read, depends_on = READERS[kind][reader]
    read(idata, model)
    for name in ("sigma", "alpha", "gamma", "rows", "z"):
        before = model[name].get_value()
        model.set_data(name, before + 0.5)
        try:
            if name in depends_on:
                with pytest.raises(ValueError, match=f"{name}|observations of x") as caught:
                    read(idata, model)
                assert "other values in idata than in the model; give" in str(caught.value)
            else:
                read(idata, model)
            model.set_data(name, before.copy())
            read(idata, model)
        finally:
            model.set_data(name, before)
            plt.close("all")


@pytest.mark.parametrize("reader", OF_COMPLETED)
def test_data_from_which_draws_are_completed_may_not_be_replaced(reader: str) -> None:
    """Given the labels, clusters that were not recorded are drawn from the data of the model."""
    with pm.Model() as model:
        rows = pm.Data("rows", COUNTS)
        dps.DPMixture("x", 3.0, dps.Poisson(1.0, 0.1), observed=rows, max_clusters=1)
    idata = sampled(model, dpsplit={"keep_labels": True})
    OF_COMPLETED[reader](idata, model)
    model.set_data("rows", COUNTS[::-1] + 1)
    with pytest.raises(ValueError, match="observations of x have other values in idata"):
        OF_COMPLETED[reader](idata, model)
    plt.close("all")


@pytest.mark.parametrize("reader", DENSITY)
def test_errors_are_those_of_the_data_that_were_sampled(reader: str) -> None:
    """Clusters of errors are in the trace, but not the errors, which are read from the model."""
    with pm.Model() as model:
        mean = pm.Normal("slope") * pm.Data("x", GIVEN["x"])
        component = dps.Normal(0.0, 0.1, 2.0, 1.0)
        dps.DPMixture("e", 1.0, component, observed=pm.Data("rows", ROWS) - mean)
    idata = sampled(model)
    DENSITY[reader](idata, model)
    for name in ("x", "rows"):
        model.set_data(name, GIVEN[name] + 1.0)
        with pytest.raises(ValueError, match=f"{name} has other values in idata than in the model"):
            DENSITY[reader](idata, model)
        model.set_data(name, GIVEN[name])
    plt.close("all")
