"""Regressions of rows in groups through PyMC: both ways to give covariates, and the readers."""

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps

N = 24
_RNG = np.random.default_rng(5)
X = np.column_stack([np.linspace(-2.0, 2.0, N), _RNG.standard_normal(N)])
GROUPS = np.array(["a", "b", "c"])[np.arange(N) % 3]
_SIGN = np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
Y = _SIGN * (3.0 + 2.0 * X[:, 0]) + 0.2 * _RNG.standard_normal(N)
PRIOR = {"mu0": 0.0, "lambda0": 0.1, "a0": 2.0, "b0": 0.1}
WITH_X = {"covariates": np.array([[1.5, 0.0]] * 3), "groups": ["a", "b", "another"]}

pytestmark = pytest.mark.slow


def sampled(component, observed):
    with pm.Model() as model:
        given = {"groups": GROUPS, "group_dim": "site", "observed": observed}
        dps.HDPMixture("y", 1.0, 1.0, component, **given)
        idata = pm.sample(
            draws=60, tune=40, chains=2, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    return model, idata


@pytest.fixture(scope="module")
def apart():
    return sampled(dps.LinearRegression(X, **PRIOR), Y)


@pytest.fixture(scope="module")
def inside():
    return sampled(dps.LinearRegression(**PRIOR), np.column_stack([X, Y]))


def test_both_ways_give_the_same_draws(apart, inside):
    for name in ("y_weights", "y_beta", "y_n_tables"):
        found = [idata.posterior[name].to_numpy() for _, idata in (apart, inside)]
        np.testing.assert_allclose(*found)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")  # 120 draws
def test_both_ways_are_read_alike(apart, inside):
    for read in (dps.loo, dps.loo_groups):
        values = [
            read(idata, model=model, random_seed=1).elpd_i for model, idata in (apart, inside)
        ]
        np.testing.assert_allclose(*values, rtol=1e-6)
    responses = [
        dps.predict(idata, model=model, random_seed=1, **WITH_X)["response_mean"]
        for model, idata in (apart, inside)
    ]
    np.testing.assert_allclose(*responses)
    found = [dps.find_map(model, random_seed=1).labels for model, _ in (apart, inside)]
    np.testing.assert_array_equal(*found)


def test_responses_depend_on_the_group(apart):
    model, idata = apart
    found = dps.predict(idata, model=model, random_seed=1, **WITH_X)
    # Group a is of the cluster whose slope is positive; a group without rows is of any.
    first, second, new = found["response_mean"].to_numpy()
    assert first > 4.0
    assert second < -4.0
    assert second < new < first
    without = dps.predict(idata, covariates=WITH_X["covariates"][2:], model=model, random_seed=1)
    assert without["response_mean"][0] == pytest.approx(new)
    with pytest.raises(ValueError, match=r"groups has shape .* 3 rows; give one id"):
        dps.predict(idata, covariates=WITH_X["covariates"], groups=["a"], model=model)
    with pytest.raises(ValueError, match="new is missing; give rows, or covariates="):
        dps.predict(idata, model=model)


def test_chains_go_on(apart):
    model, idata = apart
    quiet = {"progressbar": False, "compute_convergence_checks": False, "cores": 1}
    found = dps.extend(idata, model, draws=5, tune=0, random_seed=1, **quiet)
    assert found.posterior["y_beta"].shape[:2] == (2, 65)
