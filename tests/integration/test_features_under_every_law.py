"""What a Dirichlet process can do in models, Pitman-Yor processes, finite mixtures and MFMs can.

Each model has three mixtures: one with a missing entry, one of groups, and a latent one.  Each is
under another law in each of three models.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.variables import find_mixtures
from tests.integration.test_reproducibility import differences, sampled

# Nothing quick needs the kernels of groups compiled; `test_groups_and_counts` samples them plainly.
pytestmark = pytest.mark.slow

NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)
ROWS = np.array([0.0, 0.3, -0.2, 5.0, 5.3, 4.8, 0.1, 5.1])
WITH_HOLE = np.array([0.0, 0.3, np.nan, 5.0, 5.3, 4.8, 0.1, 5.1])
GROUPS = np.array([0, 0, 1, 2, 2, 3, 1, 3])
PLACES = ("incomplete", "grouped", "latent")


def pitman_yor(name: str, component: Any, **options: Any) -> Any:
    # Labels are redrawn from the trace, for which larger discounts need too many sticks.
    alpha, discount = pm.Gamma(f"{name}_alpha", 2.0, 2.0), pm.Beta(f"{name}_d", 1.0, 30.0)
    return dps.DPMixture(name, alpha, component, discount=discount, **options)


def finite(name: str, component: Any, **options: Any) -> Any:
    gamma = pm.Gamma(f"{name}_gamma", 2.0, 2.0)
    return dps.FiniteMixture(name, gamma, component, n_components=3, **options)


def mfm(name: str, component: Any, **options: Any) -> Any:
    gamma, prior = pm.Gamma(f"{name}_gamma", 2.0, 2.0), 1 + pm.Poisson.dist(3.0)
    return dps.MFMixture(name, gamma, component, n_components=prior, **options)


Law = Callable[..., Any]
LAWS: tuple[Law, ...] = (mfm, pitman_yor, finite)


def model_of(first: int) -> pm.Model:
    """Declare the three mixtures, the law of that with a missing entry given by its number."""
    incomplete, grouped, latent = (LAWS[(first + place) % 3] for place in range(3))
    with pm.Model() as model:
        incomplete("incomplete", NORMAL, observed=WITH_HOLE)
        grouped("grouped", NORMAL, observed=ROWS, groups=GROUPS)
        b = latent("latent", NORMAL, shape=len(ROWS))
        pm.Normal("y", b, 0.5, observed=ROWS)
    return model


def law_of(model: pm.Model, name: str) -> Law:
    mixture = find_mixtures(model)[name]
    if mixture.n_components is not None:
        return mfm
    return finite if mixture.is_finite else pitman_yor


OF_RUN: dict[str, Any] = {"draws": 40, "tune": 30}


@pytest.fixture(scope="module", params=range(3))
def fitted(request: pytest.FixtureRequest) -> tuple[pm.Model, Any]:
    model = model_of(request.param)
    return model, sampled(model, **OF_RUN)


@pytest.mark.parametrize("name", PLACES)
def test_draws_are_of_the_law(name: str, fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    posterior = idata["posterior"]
    n_clusters = posterior[f"{name}_n_clusters"].to_numpy()
    weights = posterior[f"{name}_weights"].to_numpy()
    rest = posterior[f"{name}_new_weight"].to_numpy()
    np.testing.assert_allclose(weights.sum(-1) + rest, 1.0)
    law = law_of(model, name)
    if law is pitman_yor:
        assert (rest > 0.0).all()
        return
    most = 3 if law is finite else posterior[f"{name}_n_components"].to_numpy()
    assert (n_clusters <= most).all()
    np.testing.assert_array_equal(rest == 0.0, n_clusters == most)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
@pytest.mark.parametrize("name", PLACES)
def test_readers_of_a_trace_follow_the_law(name: str, fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    of: dict[str, Any] = {"model": model, "var_name": name}
    labels = dps.sample_labels(idata, **of, random_seed=1)
    if name == "grouped":
        assert labels.sizes[labels.dims[-1]] == 4
    if law_of(model, name) is finite:
        assert int(labels.max()) <= 2
    found = dps.point_partition(idata, **of)
    table = dps.describe_clusters(idata, found, **of).to_dataset()
    assert np.isfinite(table["mu"]).all()
    assert np.isfinite(dps.similarity_matrix(idata, **of)).all()
    assert np.isfinite(dps.partition_uncertainty(idata, found, **of)).all()
    predicted = dps.predict(idata, np.array([0.0, 5.0, 90.0]), **of)
    assert all(np.isfinite(predicted[key]).all() for key in predicted.data_vars)
    assert np.isfinite(dps.density(idata, **of)["density"]).all()
    if name != "latent":
        assert np.isfinite(dps.loo(idata, **of).elpd)
    assert name in repr(dps.diagnose(idata, **of))


def test_point_estimate_follows_the_law(fitted: tuple[pm.Model, Any]) -> None:
    model, _ = fitted
    found = dps.find_map(model, var_name="grouped", random_seed=1, n_restarts=2)
    assert found.n_clusters == 2
    assert found.weights.sum() + found.new_weight == pytest.approx(1.0)
    for name, fault in (("incomplete", "has missing entries"), ("latent", "is latent")):
        with pytest.raises(ValueError, match=f"{name} {fault}, and find_map needs complete"):
            dps.find_map(model, var_name=name, random_seed=1)


def test_forward_draws_follow_the_law(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    prior = pm.sample_prior_predictive(20, model=model, random_seed=1)["prior"]
    for name in PLACES:
        if law_of(model, name) is mfm:
            assert (prior[f"{name}_n_clusters"] <= prior[f"{name}_n_components"]).all()
    drawn = pm.sample_posterior_predictive(idata, model=model, progressbar=False, random_seed=1)
    assert np.isfinite(drawn["posterior_predictive"]["y"]).all()


# --- the same draws -----------------------------------------------------------------------


class StoppedError(Exception):
    pass


def test_stopped_chains_go_on_as_the_same_chains(
    fitted: tuple[pm.Model, Any], tmp_path: Any
) -> None:
    model, plain = fitted

    def stop(trace: Any, draw: Any) -> None:
        if draw.chain == 1 and draw.draw_idx == 45:
            raise StoppedError

    def run(**options: Any) -> Any:
        with model:
            step = dps.Checkpoint(tmp_path, every=20)
        return sampled(model, step=step, **OF_RUN, **options)

    with pytest.raises(StoppedError):
        run(callback=stop)
    assert differences(plain, run()) == []
