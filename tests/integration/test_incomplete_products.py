"""Products with a `Component` part and missing entries: a trace, and what is read off it."""

from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln

import pymc_dpsplit as dps
from pymc_dpsplit.moves.patterns import log_density_of_present
from tests.reference.generic import FAMILIES

pytestmark = [pytest.mark.slow, pytest.mark.compiled]

_TWIN = FAMILIES["Product"]
# The columns of the data are in another order than the parts.
_ORDER = {"height": ["h"], "sex": ["s"], "time": ["t"]}
_SAMPLING: dict[str, Any] = {
    "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False,
    "compute_convergence_checks": False,
}  # fmt: skip


def declared() -> Any:
    return dps.Product(_ORDER, **_TWIN.component().families)


def frame() -> pd.DataFrame:
    """Rows of strings and numbers, in which None, NaN and NA stand for what is missing."""
    made = pd.DataFrame(_TWIN.rows[:, [1, 2, 0]], columns=list("sth"))
    made = made.astype({"s": "Int64"})
    made.loc[1, "s"] = pd.NA
    made.loc[2, "t"] = np.nan
    made.loc[3] = [pd.NA, np.nan, np.nan]
    return made.astype({"h": object}).replace({"h": {np.nan: None}})


def log_base(mu: np.ndarray, sigma: np.ndarray, p: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Log base density (K,) of log sigma, the logit of p, and the others as they are."""
    normal, binary, _ = _TWIN.parts
    precise = stats.invgamma.logpdf(sigma**2, normal.a0, scale=normal.b0) + 2.0 * np.log(sigma)
    location = stats.norm.logpdf(mu, normal.mu0, sigma / np.sqrt(normal.kappa0))
    logit = stats.beta.logpdf(p, binary.a0, binary.b0) + np.log(p) + np.log1p(-p)
    found: np.ndarray = precise + np.log(2.0) + location + logit
    return found + stats.norm.logpdf(place, 0.5, 2.0)


@pytest.fixture(scope="module")
def sampled() -> tuple[Any, pm.Model]:
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, declared(), observed=frame())
        idata = pm.sample(30, tune=30, dpsplit={"keep_labels": True}, **_SAMPLING)
    return idata, model


def test_trace_has_the_missing_entries(sampled: tuple[Any, pm.Model]) -> None:
    drawn = sampled[0]["posterior"]["x_unobserved"]
    assert drawn["x_hole"].to_numpy().tolist() == ["1, s", "2, t", "3, s", "3, t", "3, h"]
    assert (drawn.std(("chain", "draw"))[[1, 3, 4]] > 0).all()
    assert set(np.unique(drawn[..., [0, 2]])) <= {0.0, 1.0}
    assert (sampled[0]["sample_stats"]["x_exchanged"] > 0).any()


def test_log_joint_is_that_of_the_draw(sampled: tuple[Any, pm.Model]) -> None:
    """Data as completed, and the parameters that the trace has."""
    idata = sampled[0]
    labels = dps.sample_labels(idata, model=sampled[1]).to_numpy()[0]
    holes = np.isnan(frame().to_numpy(float, na_value=np.nan))
    for at in range(30):
        draw = idata["posterior"].isel(chain=0, draw=at)
        rows = frame().to_numpy(float, na_value=np.nan)
        rows[holes] = draw["x_unobserved"]
        sex, time, height = rows.T
        n = int(draw["x_n_clusters"])
        mu, sigma = (draw[f"x_height_{name}"].to_numpy()[:n] for name in ("mu", "sigma"))
        p, place = draw["x_sex_p"].to_numpy()[:n, 0], draw["x_time_mu"].to_numpy()[:n]
        # Of alpha = 1, and of parameters on the scale on which the state has them.
        fixed = gammaln(np.bincount(labels[at])).sum() - gammaln(7.0)
        fixed += log_base(mu, sigma, p, place).sum()
        density = stats.norm.logpdf(height[:, None], mu, sigma)
        density += np.where(sex[:, None] == 1.0, np.log(p), np.log1p(-p))
        density += stats.laplace.logpdf(time[:, None], place, 0.7)
        # Labels are those of the chain, and clusters are recorded by decreasing weight.
        orders = np.array(list(permutations(range(n))))
        possible = fixed + density[np.arange(6), orders[:, labels[at]]].sum(axis=1)
        found = float(idata["sample_stats"]["x_log_joint"][0, at])
        assert np.isclose(possible, found, rtol=1e-9).any()


def test_likelihood_of_a_row_is_that_of_its_present_entries(
    sampled: tuple[Any, pm.Model],
) -> None:
    idata, model = sampled
    pm.compute_log_likelihood(idata, model=model, progressbar=False)
    found = idata["log_likelihood"]["x"].to_numpy()[0]
    assert found.shape == (30, 5)  # one row has no entry
    normal, binary, _ = _TWIN.parts
    height, sex, _ = _TWIN.rows[2]
    outside = normal.log_marginal(np.array([[height]])) + binary.log_marginal(np.array([[sex]]))
    for at, value in zip(range(30), found[:, 2], strict=True):
        draw = idata["posterior"].isel(chain=0, draw=at)
        n = int(draw["x_n_clusters"])
        density = float(draw["x_new_weight"]) * np.exp(outside)
        for k in range(n):
            inside = stats.norm.pdf(height, draw["x_height_mu"][k], draw["x_height_sigma"][k])
            p = float(draw["x_sex_p"][k, 0])
            density += float(draw["x_weights"][k]) * inside * (p if sex else 1.0 - p)
        assert_allclose(value, np.log(density))


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_readers_take_such_a_trace(sampled: tuple[Any, pm.Model]) -> None:
    idata, model = sampled
    partition = dps.point_partition(dps.sample_labels(idata, model=model, random_seed=1))
    assert "time_mu" in repr(dps.describe_clusters(idata, partition, model=model))
    assert dps.loo(idata, model=model, random_seed=1).n_data_points == 5
    found = dps.predict(idata, frame(), model=model, partition=partition, random_seed=1)
    assert np.isfinite(found["log_predictive_density"]).all()
    assert float(found["log_predictive_density"][3]) == pytest.approx(0.0, abs=1e-12)
    with model:
        rows = pm.sample_posterior_predictive(idata, random_seed=1, progressbar=False)
        longer = dps.extend(idata, model, 5, tune=2, random_seed=2, progressbar=False,
                            compute_convergence_checks=False)  # fmt: skip
    assert np.isfinite(rows["posterior_predictive"]["x"]).all()
    assert longer["posterior"]["x_unobserved"].shape == (1, 35, 5)


def of_vectors() -> Any:
    place = dps.Component(pm.MvNormal, mu=pm.Normal.dist(0.0, 2.0, shape=2), cov=np.eye(2))
    return dps.Product(place=place, height=dps.Normal(0.0, 0.1, 2.0, 1.0))


def test_vectors_are_missing_as_a_whole() -> None:
    rows = np.random.default_rng(3).normal(size=(8, 3))
    rows[1, :2] = rows[2, 2] = np.nan
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, of_vectors(), observed=rows)
        drawn = pm.sample(10, tune=10, **_SAMPLING)["posterior"]["x_unobserved"]
    assert list(model.coords["x_hole"]) == ["1, 0", "1, 1", "2, 2"]
    assert (drawn.std(("chain", "draw")) > 0).all()


def test_density_of_what_is_present_is_the_sum_over_the_parts() -> None:
    rows = np.random.default_rng(3).normal(size=(6, 3))
    is_missing = np.zeros(rows.shape, bool)
    is_missing[1, :2] = is_missing[2, 2] = is_missing[3] = True
    component = of_vectors().validate_rows(rows)
    values = component.check(component.hyperparameters, 3)
    rng, labels = np.random.default_rng(1), np.array([0, 1, 2, 0, 1, 2])
    own = component.draw_base(rng, values, 3)
    places = [stats.multivariate_normal.logpdf(x, m) for x, m in
              zip(rows[:, :2], own["place_mu"][labels], strict=True)]  # fmt: skip
    heights = stats.norm.logpdf(rows[:, 2], own["height_mu"][labels], own["height_sigma"][labels])
    expected = np.where(is_missing[:, 0], 0.0, places) + np.where(is_missing[:, 2], 0.0, heights)
    found = log_density_of_present(component, rows, is_missing, own, values, labels)
    assert_allclose(found, expected)
    drawn = component.draw_missing(rng, rows, is_missing, own, labels)
    np.testing.assert_array_equal(drawn[~is_missing], rows[~is_missing])
    assert (drawn[is_missing] != rows[is_missing]).all()


def laplace_without_draws(mu: Any) -> Any:
    """A distribution of which only the density is known."""
    return pm.CustomDist.dist(mu, logp=lambda value, mu: -abs(value - mu) - np.log(2.0))


_BAD = {
    "part of a vector": (
        of_vectors,
        [[0.0, np.nan, 1.0], [0.0, 1.0, 1.0]],
        r"part 'place': observed has 1 row .* in part \(column 1 of row 0\), but Component",
    ),
    "no row": (
        declared,
        {"s": [0.0, 1.0], "t": [np.nan, np.nan], "h": [0.0, 1.0]},
        "part 'time': observed has no row that is not missing",
    ),
    "no draws": (
        lambda: dps.Product(
            time=dps.Component(laplace_without_draws, mu=pm.Normal.dist()),
            height=dps.Normal(0.0, 0.1, 2.0, 1.0),
        ),
        [[np.nan, 1.0], [0.5, 1.0]],
        "part 'time': observed has missing entries, which cannot be drawn from",
    ),
}


@pytest.mark.parametrize("fault", _BAD)
def test_what_cannot_be_imputed_is_refused(fault: str) -> None:
    make, observed, message = _BAD[fault]
    with pm.Model(), pytest.raises(ValueError, match=message) as raised:
        dps.DPMixture("x", 1.0, make(), observed=observed)
    assert str(raised.value).startswith("x: ")
    assert str(raised.value).endswith(".")
