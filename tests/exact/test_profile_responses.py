"""Responses of a profile regression, against enumeration and the density of whole rows."""

from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dpsplit as dps
from tests.support.exact_traces import exact_trace
from tests.support.families import component_of, twin_of
from tests.support.partitions import enumerate_partitions, exact_posterior
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

FAMILY, ALPHA, N_CHAINS = "ProductWithLinearRegression", 1.3, 12
# Columns are a covariate, its response, and a profile, which says the sign of the slope.
ROWS = np.array([
    [-1.0, -2.1, -2.0], [1.0, 1.8, -2.2], [0.5, 1.1, -1.7], [-1.0, 2.2, 1.9], [1.0, -1.9, 2.3]
])  # fmt: skip
GIVEN = np.array([[1.0, -1.5], [0.7, 1.5], [0.8, np.nan]])


@pytest.fixture(scope="module")
def model() -> pm.Model:
    with pm.Model() as model:
        dps.DPMixture("x", ALPHA, component_of(FAMILY, 3), observed=ROWS)
    return model


@pytest.fixture(scope="module")
def idata() -> xr.DataTree:
    idata = exact_trace(FAMILY, ROWS, ALPHA, (N_CHAINS, 60), seed=1)
    idata["observed_data"] = xr.DataTree(xr.Dataset({"x": (("x_row", "x_feature"), ROWS)}))
    return idata


def exact_mean(given: np.ndarray, knows_profile: bool = True) -> float:
    """Mean of the response over all partitions of the rows and clusters of a new row."""
    covariate, profile = given
    twin = twin_of(FAMILY, 3)
    (_, regression), (_, other) = twin.parts.values()
    law = exact_posterior(twin, ROWS, ALPHA)
    total = np.zeros(2)
    for probability, labels in zip(law, enumerate_partitions(len(ROWS)), strict=True):
        members = [ROWS[labels == k] for k in range(labels.max() + 1)]
        for own, weight in [*((own, len(own)) for own in members), (ROWS[:0], ALPHA)]:
            mass = probability * weight
            if knows_profile and np.isfinite(profile):
                mass *= np.exp(other.log_predictive(np.array([profile]), own[:, 2:]))
            coefficients = regression.posterior(own[:, :2])[0]
            total += mass, mass * (coefficients @ [1.0, covariate])
    return float(total[1] / total[0])


@pytest.mark.parametrize("row", range(len(GIVEN)))
def test_mean_response_is_that_of_all_partitions(
    row: int, model: pm.Model, idata: xr.DataTree
) -> None:
    each = [
        float(dps.predict(
            idata.isel(chain=[chain]), covariates=GIVEN[row : row + 1], model=model, random_seed=1
        )["response_mean"][0])
        for chain in range(N_CHAINS)
    ]  # fmt: skip
    assert stats.ttest_1samp(each, exact_mean(GIVEN[row])).pvalue > LEVEL
    if np.isfinite(GIVEN[row, 1]):
        # A negative control: without the profile the mean is another one.
        assert stats.ttest_1samp(each, exact_mean(GIVEN[row], knows_profile=False)).pvalue < LEVEL


def test_moments_are_those_of_the_density_of_whole_rows(
    model: pm.Model, idata: xr.DataTree
) -> None:
    """Draws count by the density of the profile: the ratio of averages, not the average ratio."""
    options: dict[str, Any] = {"model": model, "num_samples": 40, "random_seed": 2}
    found = dps.predict(idata, covariates=GIVEN, **options)
    tail = np.geomspace(20.0, 1e4, 300)[1:]
    grid = np.concatenate([-tail[::-1], np.linspace(-20.0, 20.0, 1001), tail])
    rows = np.array([[covariate, y, profile] for covariate, profile in GIVEN for y in grid])
    log_density = dps.predict(idata, rows, **options)["log_predictive_density"].values
    density = np.exp(log_density).reshape(len(GIVEN), len(grid))
    total = np.trapezoid(density, grid)
    mean = np.trapezoid(density * grid, grid) / total
    np.testing.assert_allclose(found["response_mean"], mean, atol=1e-3)
    # Rows without a response have the density of their profiles.
    alone = dps.predict(idata, np.insert(GIVEN, 1, np.nan, axis=1), **options)
    np.testing.assert_allclose(np.exp(alone["log_predictive_density"]), total, rtol=1e-3)
    np.testing.assert_allclose(found["effective_draws"], alone["effective_draws"])
    assert (found["effective_draws"][:2] < 39.0).all()
    # A negative control: draws that count alike, each with its own mean.
    few = idata.isel(chain=range(4), draw=range(10))
    ours = float(dps.predict(few, covariates=GIVEN[1:2], model=model)["response_mean"][0])
    alike = [
        float(dps.predict(few.isel(chain=[c], draw=[d]), covariates=GIVEN[1:2], model=model)[
            "response_mean"][0])
        for c in range(4) for d in range(10)
    ]  # fmt: skip
    assert abs(np.mean(alike) - ours) > 1e-2


def test_responses_are_drawn_from_that_density(model: pm.Model, idata: xr.DataTree) -> None:
    n_rows = 2000
    many = np.repeat(GIVEN[:1], n_rows, axis=0)
    found = dps.predict(idata, covariates=many, model=model, num_samples=25, random_seed=3)
    drawn = found["response"].values
    assert found["response"].dims == ("sample", "new_row")
    # Each row is a systematic sample, so that rows are independent and their means alike.
    of_rows = drawn.mean(0)
    expected = float(found["response_mean"][0])
    assert stats.ttest_1samp(of_rows, expected).pvalue > LEVEL
    assert found["effective_draws"][0] < 24.0
    assert drawn.std() == pytest.approx(float(found["response_sd"][0]), rel=0.2)


def test_density_of_a_response_is_given_its_covariates_and_its_profile(
    model: pm.Model, idata: xr.DataTree
) -> None:
    options: dict[str, Any] = {"model": model, "num_samples": 1}
    few = np.linspace(-4.0, 4.0, 41)
    covariate, profile = GIVEN[0]
    rows = np.column_stack([np.full(41, covariate), few, np.full(41, profile)])
    known = dps.predict(idata, [[np.nan, np.nan, profile]], **options)["log_predictive_density"]
    for given, alone in (({0: covariate, 2: profile}, profile), ({0: covariate}, np.nan)):
        rows[:, 2] = alone
        joint = dps.predict(idata, rows, **options)["log_predictive_density"].values
        found = dps.density(idata, features=1, given=given, grid=few, **options)
        log_known = float(known[0]) if np.isfinite(alone) else 0.0
        np.testing.assert_allclose(
            found["density"].sel(statistic="mean"), np.exp(joint - log_known), rtol=1e-9
        )
    # By default the first features that have a density.
    for given, default in ((None, [2]), ({0: 1.0}, [1, 2]), ({0: 1.0, 2: 0.5}, [1])):
        plane = dps.density(idata, given=given, **options)
        axes = [plane[dim].attrs["feature"] for dim in plane["density"].dims[:-1]]
        assert axes == [f"x_feature {d}" for d in default]
    with pytest.raises(ValueError, match="is a law of the response given its covariates; give"):
        dps.density(idata, features=1, given={2: profile}, **options)


def test_columns_are_taken_by_name(model: pm.Model, idata: xr.DataTree) -> None:
    """In the order of another frame, with a response that is not read."""
    frame = pd.DataFrame(ROWS[:, [2, 1, 0]], columns=["law", "y", "c"])
    component = dps.Product(
        {"outcome": ["c", "y"], "covariate": "law"}, **component_of(FAMILY, 3).families
    )
    with pm.Model() as named:
        dps.DPMixture("x", ALPHA, component, observed=frame)
    new = pd.DataFrame(
        {"c": GIVEN[:, 0], "other": 1.0, "y": 9.9, "law": GIVEN[:, 1]}, index=["p", "q", "r"]
    )
    options: dict[str, Any] = {"num_samples": 20, "random_seed": 4}
    expected = dps.predict(idata, covariates=GIVEN, model=model, **options)
    for given in (new, new.drop(columns="y"), dict(new.items()),
                  xr.DataArray(new.to_numpy(), dims=["person", "of"], coords={"of": list(new)}),
                  new[["law", "c"]].to_numpy()):  # fmt: skip
        found = dps.predict(idata, covariates=given, model=named, **options)
        for key in ("response_mean", "response", "effective_draws"):
            np.testing.assert_allclose(found[key], expected[key])
    assert list(dps.predict(idata, covariates=new, model=named)["new_row"].values) == list("pqr")
    for given, message in (
        (new[["c"]], "covariates have no column 'law', which the model has; give a frame with"),
        (ROWS, r"covariates have shape \(5, 3\), but the data have 2 columns beside the response"),
        (new.assign(c=np.nan), "covariates have 3 NaN or infinite entries"),
        (new.assign(law="a"), "covariates have a column 'law' of"),
    ):
        with pytest.raises(ValueError, match=message):
            dps.predict(idata, covariates=given, model=named)
