"""Mixtures of linear regressions through PyMC: covariates, draws, prediction and refusals."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from matplotlib import pyplot as plt
from scipy.special import logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.components.data_reader import DataReader

N = 24
_RNG = np.random.default_rng(5)
X = np.column_stack([np.linspace(-2.0, 2.0, N), _RNG.standard_normal(N)])
IS_FIRST = np.arange(N) % 2 == 0
Y = np.where(IS_FIRST, 3.0 + 2.0 * X[:, 0], -3.0 - 2.0 * X[:, 0]) + 0.2 * _RNG.standard_normal(N)
ROWS = np.column_stack([X, Y])
FRAME = pd.DataFrame(X, columns=["age", "dose"])
PRIOR = {"mu0": 0.0, "lambda0": 0.1, "a0": 2.0, "b0": 0.1}
NEW = pd.DataFrame({"dose": [0.0, 0.0, 0.0], "age": [1.5, 1.5, 1.5]})


def declared(observed, *covariates, **options) -> pm.Model:
    with pm.Model() as model:
        dps.DPMixture(
            "y", 1.0, dps.LinearRegression(*covariates, **PRIOR | options), observed=observed
        )
    return model


def sample(model, draws=40):
    with model:
        return pm.sample(
            draws=draws, tune=40, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def model():
    return declared(Y, FRAME)


@pytest.fixture(scope="module")
def idata(model):
    return sample(model)


@pytest.mark.slow
def test_coefficients_are_named_and_clusters_found(model, idata):
    beta = idata["posterior"]["y_beta"]
    assert beta.dims == ("chain", "draw", "y_cluster", "y_coefficient")
    assert beta["y_coefficient"].values.tolist() == ["intercept", "age", "dose"]
    labels = dps.point_partition(dps.sample_labels(idata, model=model, random_seed=1)).labels
    first = np.asarray(labels)[IS_FIRST]
    assert (first == first[0]).all()
    assert len(np.unique(labels)) == 2
    slopes = np.sort(beta.sel(y_coefficient="age")[..., :2].values, axis=-1).mean((0, 1))
    np.testing.assert_allclose(slopes, [-2.0, 2.0], atol=0.3)
    assert dps.diagnose(idata, model=model) is not None
    described = dps.describe_clusters(idata, IS_FIRST.astype(int), model=model)
    assert described.parameters == ["beta", "sigma"]


def test_rows_with_their_covariates_give_the_same_draws(idata):
    """Through pm.Data, which the other form cannot read."""
    with pm.Model() as model:
        data = pm.Data("rows", ROWS)
        dps.DPMixture("y", 1.0, dps.LinearRegression(**PRIOR), observed=data)
    same = sample(model)
    for name in ("y_beta", "y_sigma", "y_n_clusters"):
        np.testing.assert_allclose(
            same["posterior"][name].values, idata["posterior"][name].values, rtol=1e-9, atol=1e-9
        )


@pytest.mark.slow
def test_prediction_of_the_data_is_their_likelihood(model, idata):
    found = dps.predict(idata, Y, covariates=FRAME, model=model)
    with model:
        each = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    log_mean = logsumexp(each["y"].values, axis=(0, 1)) - np.log(80)
    np.testing.assert_allclose(found["log_predictive_density"], log_mean)


def test_new_rows_are_assigned_given_their_covariates(model, idata):
    new = [6.0, -6.0, 60.0]
    found = dps.predict(
        idata, new, covariates=NEW, model=model, partition=IS_FIRST.astype(int), random_seed=2
    )
    members = found["membership_probability"].sel(y_reference_cluster=1).values
    assert members[0] > 0.9
    assert members[1] < 0.1
    assert found["new_cluster_probability"][2] > 0.9
    # Columns of the frame are put in the order of the model.
    plain = dps.predict(idata, new, covariates=NEW[["age", "dose"]].to_numpy(), model=model)
    np.testing.assert_allclose(found["log_predictive_density"], plain["log_predictive_density"])
    # The density of the response integrates to one.
    grid = np.concatenate([-np.geomspace(1e6, 20.0, 4000), np.linspace(-20, 20, 8001)[1:-1],
                           np.geomspace(20.0, 1e6, 4000)])  # fmt: skip
    along = dps.predict(
        idata, grid, covariates=np.tile([1.5, 0.0], (len(grid), 1)), model=model, num_samples=20
    )
    assert np.trapezoid(np.exp(along["log_predictive_density"]), grid) == pytest.approx(1, abs=2e-3)


def test_responses_to_new_covariates_are_predicted(model, idata):
    """Exact moments are those of the density of a response, and of many draws."""
    found = dps.predict(idata, covariates=NEW[:1], model=model, random_seed=3)
    grid = np.linspace(-400.0, 400.0, 160_001)
    at = np.tile(NEW[["age", "dose"]].to_numpy()[:1], (len(grid), 1))
    along = dps.predict(idata, grid, covariates=at, model=model, num_samples=10)
    mass = np.exp(along["log_predictive_density"].values) * (grid[1] - grid[0])
    few = dps.predict(idata, covariates=NEW[:1], model=model, num_samples=10, random_seed=3)
    assert float(few["response_mean"][0]) == pytest.approx(mass @ grid, abs=1e-2)
    assert few["response"].shape == (10, 1)
    assert found["response"].dims == ("sample", "new_row")
    many = dps.predict(
        idata, covariates=pd.concat([NEW[:1]] * 2000), model=model, num_samples=20, random_seed=3
    )
    drawn = many["response"].values
    # Tails of the base measure are heavy: compare the median, and quartiles by their shares.
    error = drawn.mean(1) - many["response_mean"].values[0]
    assert abs(error.mean()) < 5.0 * drawn.std() / np.sqrt(drawn.size)
    assert many["response_sd"].values[0] == pytest.approx(drawn.std(), rel=0.1)


def test_responses_are_those_of_rows_that_hold_covariates(idata):
    """Names of the columns of the rows say the order of covariates."""
    frame = FRAME.assign(y=Y)
    with pm.Model() as model:
        dps.DPMixture("y", 1.0, dps.LinearRegression(**PRIOR), observed=frame)
    found = dps.predict(idata, covariates=NEW, model=model, random_seed=3)
    plain = dps.predict(idata, covariates=NEW[["age", "dose"]].to_numpy(), model=model,
                        random_seed=3)  # fmt: skip
    np.testing.assert_array_equal(found["response"], plain["response"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "new is missing; give rows, or covariates="),
        ({"covariates": [[1.0]]}, r"covariates have shape \(1, 1\), but there are 2 of them"),
        (
            {"covariates": NEW.rename(columns={"dose": "weight"})},
            "have no column 'dose'",
        ),
        ({"covariates": NEW, "partition": [0] * N}, "partition is given without new rows"),
    ],
)
def test_faults_of_predicted_responses_are_named(arguments, message, model, idata):
    with pytest.raises(ValueError, match=message):
        dps.predict(idata, model=model, **arguments)


@pytest.mark.slow
def test_responses_are_drawn_for_new_covariates(model, idata):
    n_rows = idata["posterior"].sizes["y_cluster"]
    with pm.Model():
        component = dps.LinearRegression(NEW[["age", "dose"]], **PRIOR)
        anything = pm.Data("anything", np.zeros(3))
        dps.DPMixture("y", 1.0, component, observed=anything, max_clusters=n_rows)
        drawn = pm.sample_posterior_predictive(
            idata, var_names=["y"], random_seed=1, progressbar=False
        )
    y = drawn["posterior_predictive"]["y"].values
    assert y.shape == (2, 40, 3)
    # One half of the clusters is at 6, the other at -6; some draws are of new clusters.
    assert 0.7 < np.mean(np.abs(np.abs(y) - 6.0) < 1.5) < 1.0
    assert 0.2 < np.mean(y > 0) < 0.8
    with model:
        prior = pm.sample_prior_predictive(10, random_seed=1)
    assert prior["prior_predictive"]["y"].shape == (1, 10, N)
    assert prior["prior"]["y_beta"].shape[-1] == 3


def drawn_anew(n_new, idata):
    """Rows drawn after `pm.set_data` gave covariates of another age, the same for all."""
    with pm.Model():
        x, response = pm.Data("x", X), pm.Data("response", Y)
        rows = pm.math.concatenate([x, response[:, None]], axis=1)
        dps.DPMixture("y", 1.0, dps.LinearRegression(**PRIOR), observed=rows)
        pm.set_data({"x": np.tile([1.5, 0.0], (n_new, 1)), "response": np.zeros(n_new)})
        drawn = pm.sample_posterior_predictive(
            idata, var_names=["y"], random_seed=1, progressbar=False
        )
    return drawn["posterior_predictive"]["y"].values


@pytest.mark.slow
@pytest.mark.parametrize("n_new", [3, N, 30])
def test_rows_set_anew_are_drawn_with_their_covariates(n_new, idata):
    found = drawn_anew(n_new, idata)
    assert found.shape == (2, 40, n_new, 3)
    np.testing.assert_array_equal(found[..., :2], np.broadcast_to([1.5, 0.0], (2, 40, n_new, 2)))
    y = found[..., 2]
    assert 0.7 < np.mean(np.abs(np.abs(y) - 6.0) < 1.5) < 1.0
    assert 0.2 < np.mean(y > 0) < 0.8


def with_data_as_covariates():
    with pm.Model() as model:
        component = dps.LinearRegression(pm.Data("x", X), **PRIOR)
        dps.DPMixture("y", 1.0, component, observed=pm.Data("response", Y))
    return model


def test_data_as_covariates_give_the_same_draws(idata):
    found = sample(with_data_as_covariates())
    for name in ("y_beta", "y_sigma", "y_n_clusters"):
        np.testing.assert_array_equal(
            found["posterior"][name].values, idata["posterior"][name].values
        )
    assert found["posterior"]["y_beta"]["y_coefficient"].values.tolist() == [
        "intercept",
        "x0",
        "x1",
    ]
    np.testing.assert_array_equal(found["constant_data"]["x"], X)


@pytest.mark.parametrize("n_new", [3, N, 30])
def test_responses_are_drawn_for_data_that_are_set(n_new, idata):
    with with_data_as_covariates():
        pm.set_data({"x": np.tile([1.5, 0.0], (n_new, 1))})
        drawn = pm.sample_posterior_predictive(
            idata, var_names=["y"], random_seed=1, progressbar=False
        )
    y = drawn["posterior_predictive"]["y"].values
    assert y.shape == (2, 40, n_new)
    assert 0.7 < np.mean(np.abs(np.abs(y) - 6.0) < 1.5) < 1.0
    assert 0.2 < np.mean(y > 0) < 0.8


@pytest.mark.control
def test_responses_to_the_first_covariates_are_caught(monkeypatch, idata):
    monkeypatch.setattr(DataReader, "now", lambda self: self.found)
    with with_data_as_covariates():
        pm.set_data({"x": np.tile([1.5, 0.0], (N, 1))})
        drawn = pm.sample_posterior_predictive(
            idata, var_names=["y"], random_seed=1, progressbar=False
        )
    y = drawn["posterior_predictive"]["y"].values
    assert np.mean(np.abs(np.abs(y) - 6.0) < 1.5) < 0.7


def test_density_is_that_of_data_that_are_set(model, idata):
    """No covariates of the declaration stay anywhere."""
    other, order = with_data_as_covariates(), np.arange(N)[::-1]
    with other:
        pm.set_data({"x": X[order], "response": Y[order]})
        found = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    with model:
        wanted = pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
    np.testing.assert_allclose(found["y"], wanted["y"][..., order])
    with other:
        pm.set_data({"x": X[:3]})
        with pytest.raises(ValueError, match="covariates have 3 rows, but observed has 24"):
            pm.compute_log_likelihood(idata, extend_inferencedata=False, progressbar=False)
        pm.set_data({"x": X[:, :1]})
        with pytest.raises(ValueError, match=r"covariates have shape \(24, 1\), but there are 2"):
            pm.sample_posterior_predictive(idata, var_names=["y"], progressbar=False)


@pytest.mark.slow
def test_draws_after_data_are_set_are_of_these():
    """A chain that begins afterwards reads the new covariates."""
    with pm.Model() as other:
        component = dps.LinearRegression(pm.Data("x", 0.0 * X), **PRIOR)
        dps.DPMixture("y", 1.0, component, observed=Y)
        pm.set_data({"x": X})
    beta = sample(other)["posterior"]["y_beta"].values
    slopes = np.sort(beta[:, :, :2, 1], axis=-1).mean((0, 1))
    np.testing.assert_allclose(slopes, [-2.0, 2.0], atol=0.3)


@pytest.mark.slow
@pytest.mark.control
def test_rows_drawn_with_the_covariates_of_the_declaration_are_caught(monkeypatch, idata):
    monkeypatch.setattr("pymc_dpsplit.mixture.declaration.may_grow", lambda observed: False)
    found = drawn_anew(N, idata)
    assert not np.isin(found[..., 0], 1.5).any()
    assert np.mean(np.abs(np.abs(found[..., 2]) - 6.0) < 1.5) < 0.7


@pytest.mark.slow
def test_hyperparameters_may_be_variables():
    with pm.Model() as model:
        tau = pm.Gamma("tau", 2.0, 2.0)
        scale = pm.Gamma("scale", 2.0, 2.0)
        component = dps.LinearRegression(
            X, mu0=[0.0, 1.0, 0.0], lambda0=tau * np.eye(3), a0=2.0, b0=scale
        )
        dps.DPMixture("y", 1.0, component, observed=Y)
    assert all(np.isfinite(of).all() for of in model.compile_logp(sum=False)(model.initial_point()))
    with pm.Model():
        component = dps.LinearRegression(X, **PRIOR | {"lambda0": pm.Gamma("tau", 2.0, 2.0)})
        with pytest.raises(ValueError, match=r"lambda0 is a variable of shape \(\)"):
            dps.DPMixture("y", 1.0, component, observed=Y)


def test_clusters_are_plotted_over_a_covariate(model, idata):
    ax = dps.plot_clusters(idata, partition=IS_FIRST.astype(int), over=FRAME[["age"]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("age", "y")
    drawn = np.vstack([line.get_xydata() for line in ax.lines])
    np.testing.assert_allclose(np.sort(drawn[:, 0]), X[:, 0])
    plt.close(ax.figure)
    with pytest.raises(ValueError, match=r"over has shape \(3,\), but there are 24 observations"):
        dps.plot_clusters(idata, partition=IS_FIRST.astype(int), over=[1.0, 2.0, 3.0])


def test_what_is_not_possible_is_refused(model, idata):
    with pytest.raises(ValueError, match="new holds rows without covariates"):
        dps.predict(idata, Y, model=model)
    with pytest.raises(ValueError, match=r"covariates have shape \(24, 1\), but .* shape \(M, 2\)"):
        dps.predict(idata, Y, covariates=X[:, :1], model=model)
    with pm.Model(), pytest.raises(ValueError, match="cannot be latent, as no step moves covaria"):
        dps.DPMixture("y", 1.0, dps.LinearRegression(X, **PRIOR), shape=N)
    with pm.Model():
        errors = Y - pm.Normal("mean")
        with pytest.raises(ValueError, match="is no model, as its rows hold covariates"):
            dps.DPMixture("y", 1.0, dps.LinearRegression(X, **PRIOR), observed=errors)
    with pytest.raises(ValueError, match="y: covariates have 24 rows, but observed has 23"):
        declared(Y[1:], X)
    with pm.Model(), pytest.raises(ValueError, match="covariates are an expression of variables"):
        dps.LinearRegression(2.0 * pm.Data("x", X), **PRIOR)
    with pytest.raises(ValueError, match="depends on its covariates"):
        dps.density(idata, model=model)
