"""Variables of `pymc.dims` as alpha, hyperparameters and data of a mixture."""

from typing import Any

import numpy as np
import pymc as pm
import pymc.dims as pmd
import pytest

import pymc_dpsplit as dps

ROWS = np.array([-2.3, -1.9, -1.6, 1.4, 1.9, 2.2])
SAMPLING: dict[str, Any] = {
    "draws": 8, "tune": 8, "chains": 1, "cores": 1, "random_seed": 1,
    "progressbar": False, "compute_convergence_checks": False,
}  # fmt: skip


@pytest.mark.slow
def test_alpha_hyperparameters_and_data() -> None:
    with pm.Model(coords={"obs": range(6)}) as model:
        alpha, b0 = pmd.Gamma("alpha", 2, 2), pmd.Gamma("b0", 2, 2)
        data = pmd.Data("data", ROWS, dims="obs")
        dps.DPMixture("x", alpha, dps.Normal(0, 0.1, 2, b0), observed=data)
        assert model.named_vars_to_dims["x"] == ("obs",)
        idata = pm.sample(**SAMPLING)
        assert idata["posterior"]["alpha"].shape == (1, 8)
        assert len(np.unique(idata["posterior"]["b0"])) > 1
        np.testing.assert_array_equal(idata["observed_data"]["x"], ROWS)
        assert dps.sample_labels(idata).dims == ("chain", "draw", "obs")


def test_axes_follow_dims() -> None:
    table = np.arange(12.0).reshape(2, 6)
    with pm.Model(coords={"obs": range(6), "feature": ["a", "b"]}) as model:
        data = pmd.Data("data", table, dims=("feature", "obs"))
        component = dps.DiagNormal(0, 0.1, 2, 1)
        dps.DPMixture("x", 1.0, component, observed=data, dims=("obs", "feature"))
        np.testing.assert_array_equal(model.rvs_to_values[model["x"]].eval(), table.T)
        pm.set_data({"data": table + 1})
        np.testing.assert_array_equal(model.rvs_to_values[model["x"]].eval(), table.T + 1)


def test_data_less_a_mean_are_refused() -> None:
    with pm.Model(coords={"obs": range(6)}):
        data = pmd.Data("data", ROWS, dims="obs")
        slope = pmd.Normal("slope")
        with pytest.raises(ValueError, match=r"x: observed is an expression of pymc\.dims that"):
            dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=data - slope)


@pytest.mark.slow
def test_latent_mixture_under_a_likelihood_of_dims() -> None:
    with pm.Model(coords={"group": range(6)}):
        b = dps.DPMixture("b", 1.0, dps.Normal(0, 0.1, 2, 1), dims="group")
        mu, seen = (pmd.as_xtensor(of, dims=("group",)) for of in (b, ROWS))
        pmd.Normal("y", mu=mu, sigma=0.5, observed=seen)
        idata = pm.sample(**SAMPLING)
    # Rows are moved by NUTS alone: which factor is of which row is not known.
    assert not idata["sample_stats"]["b_exchanged"].any()
    assert len(np.unique(idata["posterior"]["b"])) > 6
