"""What is computed of the trace of a `Component`, whose parameters have the names of others'."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.components.data_reader import DataReader
from pymc_dpsplit.pymc_component.covariates import hold

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


@pytest.mark.slow
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


X = np.linspace(0.0, 1.0, len(Y))


def regression(x: Any, y: Any) -> None:
    """Declare a mixture of slopes, with the errors of a known standard deviation."""
    component = dps.Component(
        lambda slope, x: pm.Normal.dist(slope * x, 0.5),
        slope=pm.Normal.dist(0.0, 2.0),
        covariates={"x": x},
    )
    dps.DPMixture("x", 1.0, component, observed=y)


@pytest.fixture(scope="module")
def regressed() -> tuple[Any, pm.Model]:
    with pm.Model() as model:
        regression(X, Y)
        return pm.sample(**_SAMPLING), model


def with_data() -> pm.Model:
    """The same model, with covariates and observations that may be set."""
    with pm.Model() as model:
        regression(pm.Data("at", X), pm.Data("y", Y))
    return model


def test_rows_are_predicted_given_their_covariates(regressed: tuple[Any, pm.Model]) -> None:
    """Against the terms of the mixture in SciPy; the remainder by its own average of the base."""
    idata, model = regressed
    new, x = np.array([2.0, -1.0, 0.3]), np.array([0.5, 2.0, 0.0])
    found = dps.predict(idata, new, covariates={"x": x}, model=model)
    drawn = idata["posterior"]
    slopes, weights = (drawn[f"x_{of}"].to_numpy()[0] for of in ("slope", "weights"))
    each = np.nan_to_num(weights)[..., None] * stats.norm(
        np.nan_to_num(slopes)[..., None] * x, 0.5
    ).pdf(new)
    rest = drawn["x_new_weight"].to_numpy()[0][:, None]
    alone = stats.norm(0.0, np.sqrt(4.0 * x**2 + 0.25)).pdf(new)
    expected = (each.sum(1) + rest * alone).mean(0)
    assert_allclose(np.exp(found["log_predictive_density"]), expected, rtol=0.03)
    # At x = 0 every cluster has the same density, so nothing is averaged over the base measure.
    assert float(found["log_predictive_density"][2]) == pytest.approx(
        stats.norm(0.0, 0.5).logpdf(0.3), abs=1e-6
    )


def test_responses_are_drawn_given_covariates(regressed: tuple[Any, pm.Model]) -> None:
    idata, model = regressed
    at = {"x": np.repeat([0.0, 1.0], 500)}
    drawn = dps.predict(idata, covariates=at, model=model, random_seed=1)
    assert drawn["response"].shape == (20, 1000)
    assert float(drawn["response"][:, :500].std()) == pytest.approx(0.5, rel=0.05)
    assert float(drawn["response"][:, 500:].std()) > 1.0
    assert_allclose(drawn["response_mean"], drawn["response"].mean("sample"))


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        (np.zeros(2), "covariates=.* is not a dict"),
        (
            {"z": np.zeros(2)},
            r"covariates are \['z'\], but .* declared with \['x'\]",
        ),
        ({"x": np.zeros((2, 1))}, r"covariate x has shape \(2, 1\); give shape \(M,\)"),
        ({"x": np.zeros(3)}, "covariates have 3 rows, but new has 2"),
    ],
)
def test_faults_of_new_covariates_are_named(
    covariates: Any, message: str, regressed: tuple[Any, pm.Model]
) -> None:
    idata, model = regressed
    with pytest.raises(ValueError, match=message):
        dps.predict(idata, [0.0, 1.0], covariates=covariates, model=model)


def test_rows_without_covariates_are_refused(regressed: tuple[Any, pm.Model]) -> None:
    idata, model = regressed
    with pytest.raises(ValueError, match="new holds rows without covariates"):
        dps.predict(idata, Y, model=model)
    with pytest.raises(ValueError, match="has no density of a single number"):
        dps.plot_density(idata, model=model)
    assert "log_density" not in str(dps.diagnose(idata, model=model))


def test_find_map_refuses_what_it_cannot_integrate(sampled: tuple[Any, pm.Model]) -> None:
    with pytest.raises(ValueError, match="whose parameters cannot be integrated out"):
        dps.find_map(sampled[1])


@pytest.mark.slow
def test_data_as_covariates_give_the_same_draws(regressed: tuple[Any, pm.Model]) -> None:
    with with_data():
        found = pm.sample(**_SAMPLING)
    for name in ("x_slope", "x_weights"):
        assert_array_equal(found["posterior"][name], regressed[0]["posterior"][name])
    assert_array_equal(found["constant_data"]["at"], X)


def spread_at_zero(idata: Any, n_new: int) -> float:
    """Standard deviation of responses drawn after all covariates are set to zero."""
    with with_data():
        pm.set_data({"at": np.zeros(n_new)})
        drawn = pm.sample_posterior_predictive(
            idata, var_names=["x"], random_seed=1, progressbar=False
        )
    y = drawn["posterior_predictive"]["x"]
    assert y.shape == (1, 20, n_new)
    return float(y.std())


@pytest.mark.slow
@pytest.mark.parametrize("n_new", [3, len(Y), 30])
def test_responses_are_drawn_for_data_that_are_set(
    n_new: int, regressed: tuple[Any, pm.Model]
) -> None:
    assert spread_at_zero(regressed[0], n_new) == pytest.approx(0.5, rel=0.25)


@pytest.mark.slow
@pytest.mark.control
def test_responses_to_the_first_covariates_are_caught(
    monkeypatch: pytest.MonkeyPatch, regressed: tuple[Any, pm.Model]
) -> None:
    monkeypatch.setattr(DataReader, "now", lambda self: self.found)
    assert spread_at_zero(regressed[0], len(Y)) > 1.0


@pytest.mark.slow
def test_density_is_that_of_data_that_are_set(regressed: tuple[Any, pm.Model]) -> None:
    idata, model = regressed
    other = with_data()
    kept: dict[str, Any] = {"extend_inferencedata": False, "progressbar": False}
    with other:
        pm.set_data({"at": X[::-1].copy(), "y": Y[::-1].copy()})
        found = pm.compute_log_likelihood(idata, **kept)
    with model:
        wanted = pm.compute_log_likelihood(idata, **kept)
    assert_allclose(found["x"], wanted["x"][..., ::-1])
    with other:
        pm.set_data({"at": X[:3]})
        with pytest.raises(ValueError, match="covariates have 3 rows, but observed has 10"):
            pm.compute_log_likelihood(idata, **kept)


def test_other_covariates_in_data_are_refused() -> None:
    with pm.Model():
        x = pm.Data("x", np.zeros((4, 2)))
        held = hold("x", x)
        assert isinstance(held, DataReader)
        pm.set_data({"x": np.ones((3, 2))})
        assert_array_equal(held.now(), np.ones((3, 2)))
        pm.set_data({"x": np.ones((3, 1))})
        with pytest.raises(ValueError, match=r"covariate x has shape \(3, 1\) in its pm.Data"):
            held.now()
        with pytest.raises(ValueError, match="covariate x is an expression of variables; give an"):
            hold("x", 2 * x)
