"""What is computed of the trace of a `Component`, whose parameters have the names of others'."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose

import pymc_dpsplit as dps

_SAMPLING: dict[str, Any] = {
    "draws": 20, "tune": 20, "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False,
    "compute_convergence_checks": False,
}  # fmt: skip
Y = np.array([-4.2, -3.8, -4.0, 0.1, 0.3, -0.2, 4.1, 3.9, 5.5, 20.0])


@pytest.fixture(scope="module")
def sampled() -> tuple[Any, pm.Model]:
    with pm.Model() as model:
        component = dps.Component(
            pm.StudentT, nu=3.0, mu=pm.Normal.dist(0.0, 5.0), sigma=pm.HalfNormal.dist(1.0)
        )
        dps.DPMixture("x", 1.0, component, observed=Y)
        return pm.sample(**_SAMPLING), model


def test_density_is_that_of_the_model(sampled: tuple[Any, pm.Model]) -> None:
    idata, model = sampled
    with pytest.raises(ValueError, match=r"mixture x is not of Gaussians.*; give model="):
        dps.plot_density(idata)
    ax = dps.plot_density(idata, model=model)
    (line,) = ax.lines
    points, mean = line.get_data()
    # The trapezoids of a fine grid leave out what lies beyond its ends.
    assert 0.8 < np.trapezoid(mean, points) < 1.01
    new = dps.predict(idata, points, model=model)
    found = np.exp(new["log_predictive_density"].to_numpy())
    assert_allclose(np.asarray(mean), found, rtol=1e-6)


def test_predictions_average_draws_and_new_clusters(sampled: tuple[Any, pm.Model]) -> None:
    idata, model = sampled
    found = dps.predict(idata, np.array([0.0, 100.0]), model=model, partition=np.zeros(len(Y), int))
    is_new = found["new_cluster_probability"].to_numpy()
    assert ((is_new > 0.0) & (is_new < 1.0)).all()
    member = found["membership_probability"].sum("x_reference_cluster").to_numpy()
    assert_allclose(member + is_new, 1.0, rtol=1e-6)


def test_rows_without_covariates_are_refused() -> None:
    with pm.Model() as model:
        component = dps.Component(
            lambda slope, x: pm.Normal.dist(slope * x, 0.5),
            slope=pm.Normal.dist(0.0, 2.0),
            covariates={"x": np.linspace(0.0, 1.0, len(Y))},
        )
        dps.DPMixture("x", 1.0, component, observed=Y)
        idata = pm.sample(**_SAMPLING)
    with pytest.raises(ValueError, match="new holds rows without covariates"):
        dps.predict(idata, Y, model=model)
    with pytest.raises(ValueError, match="has no density of a single number"):
        dps.plot_density(idata, model=model)
    assert "log_density" not in str(dps.diagnose(idata, model=model))


def test_find_map_refuses_what_it_cannot_integrate(sampled: tuple[Any, pm.Model]) -> None:
    with pytest.raises(ValueError, match="whose parameters cannot be integrated out"):
        dps.find_map(sampled[1])
