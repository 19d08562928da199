"""Mixtures of finite mixtures in models: declarations, draws, and what reads them."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.partition_law import log_probability
from pymc_dpsplit.posterior.plots.n_clusters_prior import n_clusters_prior
from pymc_dpsplit.variables import concentration_prior, find_mixtures
from tests.support.components_move import prior_of_k
from tests.support.statistics import LEVEL, count_test

NORMAL = dps.Normal(0.0, 0.1, 2.0, 1.0)
ROWS = np.array([0.0, 0.3, -0.2, 5.0, 5.3, 4.8, 0.1, 5.1])
FEW: dict[str, Any] = {
    "draws": 60,
    "tune": 40,
    "chains": 2,
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
    "random_seed": 5,
}
MEASURE = ["x_n_components", "x_n_clusters", "x_new_weight", "x_weights", "x_mu", "x_sigma"]


def mfm(gamma: Any = 1.0, n_components: Any = None, **options: Any) -> pm.Model:
    with pm.Model() as model:
        prior = 1 + pm.Poisson.dist(3.0) if n_components is None else n_components()
        options = {"observed": ROWS, **options}
        dps.MFMixture("x", gamma, NORMAL, n_components=prior, **options)
    return model


def of_two_components() -> pm.Model:
    """One or two components, so that most draws have no empty one, and a prior on gamma."""
    with pm.Model() as model:
        gamma, prior = pm.Gamma("gamma", 2.0, 2.0), 1 + pm.Bernoulli.dist(0.5)
        dps.MFMixture("x", gamma, NORMAL, n_components=prior, observed=ROWS)
    return model


# --- declaration --------------------------------------------------------------------------


def test_number_of_components_is_a_variable_of_the_mixture() -> None:
    model = mfm()
    assert [rv.name for rv in model.free_RVs] == MEASURE
    mixture = find_mixtures(model)["x"]
    assert mixture.is_finite
    assert mixture.n_components is model["x_n_components"]
    assert model["x_n_components"] in mixture.owned
    assert "x_n_components ~ MFMComponents" in model.str_repr()
    assert [rv.name for rv in of_two_components().free_RVs][1:] == [*MEASURE, "x_log_weights"]


def test_law_is_that_of_the_arguments() -> None:
    law = [*find_mixtures(mfm(0.5))["x"].law]
    discount, strength = pm.draw(law, 200, random_seed=1)
    assert (discount == -0.5).all()
    assert set(np.unique(strength / 0.5)) <= set(range(1, 20))


# PyTensor has no compiled draw of the discrete uniform distribution.
@pytest.mark.filterwarnings("ignore:Numba will use object mode")
@pytest.mark.parametrize(
    ("declare", "law"),
    [
        (lambda: 1 + pm.Poisson.dist(3.0), stats.poisson(3.0, loc=1)),
        (lambda: pm.Poisson.dist(3.0) + 1, stats.poisson(3.0, loc=1)),
        (lambda: pm.Geometric.dist(0.4), stats.geom(0.4)),
        (lambda: pm.DiscreteUniform.dist(2, 9), stats.randint(2, 10)),
        (lambda: 1 + pm.NegativeBinomial.dist(n=2, p=0.4), stats.nbinom(2, 0.4, loc=1)),
    ],
)
def test_prior_of_the_number_of_components(declare: Any, law: Any) -> None:
    model = mfm(n_components=declare)
    numbers = np.arange(1, 12)
    log_p = model.compile_logp(vars=[model["x_n_components"]])
    point = model.initial_point()
    assert np.isfinite(log_p(point))
    found = [log_p({**point, "x_n_components": np.array(m)}) for m in numbers]
    np.testing.assert_allclose(found, law.logpmf(numbers), rtol=1e-6)
    drawn = pm.draw(model["x_n_components"], 4000, random_seed=2)
    exact = law.pmf(np.arange(200))
    assert count_test(drawn.reshape(8, -1), exact) > LEVEL


@pytest.mark.compiled
def test_prior_may_depend_on_variables() -> None:
    with pm.Model() as model:
        p = pm.Beta("p", 4.0, 3.0)
        prior = 1 + pm.NegativeBinomial.dist(n=1, p=p)
        dps.MFMixture("x", 1.0, NORMAL, n_components=prior, observed=ROWS)
        idata = pm.sample(**FEW)
    numbers = np.arange(200)
    # The beta-negative-binomial distribution with parameters 1, 4 and 3.
    exact = np.zeros(201)
    grid = stats.beta(4, 3).ppf((np.arange(4000) + 0.5) / 4000)
    exact[1:] = stats.nbinom.pmf(numbers[:, None], 1, grid).mean(1)
    drawn = pm.draw(model["x_n_components"], 4000, random_seed=2)
    assert count_test(np.minimum(drawn, 200).reshape(8, -1), exact) > LEVEL
    assert np.ptp(idata["posterior"]["p"].to_numpy()) > 0
    posterior = idata["posterior"]
    assert (posterior["x_n_components"] >= posterior["x_n_clusters"]).all()


@pytest.mark.parametrize(
    ("declare", "fault"),
    [
        (lambda: 3, "n_components=3 is no distribution; .*, or use FiniteMixture"),
        (lambda: "three", "n_components='three' is no distribution"),
        (lambda: pm.Poisson.dist(3.0), "n_components may be 0 under its prior; give a dist"),
        (lambda: pm.DiscreteUniform.dist(-4, 4), "n_components may be 0 under its prior"),
        (lambda: pm.Gamma.dist(2.0, 1.0), "n_components is not a single whole number; give"),
        (lambda: pm.Geometric.dist(0.3, shape=2), "n_components is not a single whole number"),
        (lambda: pm.Geometric("m", 0.3), "n_components is the variable m of the model; give"),
        (lambda: pt.constant(3), "n_components has no log-probability; give"),
        (
            lambda: pm.Geometric.dist(pm.Beta.dist(1.0, 2.0)),
            "n_components depends on a distribution that is not in this model; declare",
        ),
    ],
)
def test_prior_that_cannot_be_is_refused(declare: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"x: {fault}"):
        mfm(n_components=declare)


def test_what_depends_on_the_number_of_components_is_refused() -> None:
    with mfm() as model:
        pm.Normal("y", model["x_n_components"], 1.0, observed=3.0)
        fault = "y depends on x_n_components, but the mixture x is sampled given"
        with pytest.raises(ValueError, match=fault):
            dps.DPSplitMerge(find_mixtures(model)["x"].owned)


def test_name_that_is_taken_is_refused() -> None:
    with pm.Model():
        pm.Normal("x_n_components")
        prior = pm.Geometric.dist(0.3)
        with pytest.raises(ValueError, match="already has a variable 'x_n_components'"):
            dps.MFMixture("x", 1.0, NORMAL, n_components=prior, observed=ROWS)


@pytest.mark.parametrize("value", [0, 2.5])
def test_initial_number_that_cannot_be_is_refused(value: Any) -> None:
    with mfm(), pytest.raises(ValueError, match=r"initvals\['x_n_components'\]"):
        pm.sample(**FEW, initvals={"x_n_components": value})


@pytest.mark.compiled
def test_start_with_too_many_clusters_is_refused_unless_the_step_searches() -> None:
    options = {"start_labels": np.arange(8)}
    with mfm():
        with pytest.raises(ValueError, match="has 8 clusters, but the mixture has 4 components"):
            pm.sample(**FEW, dpsplit={**options, "kernel": "collapsed"})
        pm.sample(**FEW, dpsplit=options)


@pytest.mark.compiled
@pytest.mark.slow
def test_search_finds_clusters_beyond_the_initial_number_of_components() -> None:
    """Given many rows, M is hardly ever above K, so that few components would remain few."""
    rng = np.random.default_rng(3)
    rows = rng.choice(np.arange(0.0, 140.0, 20.0), 3000) + rng.normal(size=3000)
    with pm.Model() as model:
        far = dps.Normal(60.0, 0.001, 2.0, 1.0)
        dps.MFMixture("x", 1.0, far, n_components=pm.Geometric.dist(0.5), observed=rows)
        assert int(model.initial_point()["x_n_components"]) == 2
        idata = pm.sample(**FEW | {"tune": 400})
    assert (idata["posterior"]["x_n_clusters"].to_numpy() >= 6).all()


# --- what reads a trace -------------------------------------------------------------------


@pytest.fixture(scope="module", params=[mfm, of_two_components])
def fitted(request: pytest.FixtureRequest) -> tuple[pm.Model, Any]:
    model = request.param()
    with model:
        return model, pm.sample(**FEW)


def test_trace_holds_the_number_of_components(fitted: tuple[pm.Model, Any]) -> None:
    posterior = fitted[1]["posterior"]
    n_components = posterior["x_n_components"].to_numpy()
    n_clusters = posterior["x_n_clusters"].to_numpy()
    assert n_components.dtype.kind == "i"
    assert (n_components >= n_clusters).all()
    is_full = n_components == n_clusters
    assert is_full.any()
    np.testing.assert_array_equal(posterior["x_new_weight"].to_numpy() == 0.0, is_full)
    if "gamma" not in posterior:  # the two clusters of the other model are always both there
        assert np.ptp(n_components) > 0


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_public_functions_follow_the_law(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    n_components = idata["posterior"]["x_n_components"].to_numpy()
    labels = dps.sample_labels(idata, model=model, random_seed=1).to_numpy()
    assert (labels.max(-1) < n_components).all()
    predicted = dps.predict(idata, np.array([0.0, 5.0, 90.0]), model=model)
    assert all(np.isfinite(predicted[key]).all() for key in predicted.data_vars)
    assert np.isfinite(dps.loo(idata, model=model).elpd)
    drawn = pm.sample_posterior_predictive(idata, model=model, progressbar=False, random_seed=1)
    assert np.isfinite(drawn["posterior_predictive"]["x"]).all()
    assert "x_n_components" in repr(dps.diagnose(idata, model=model))
    longer = dps.extend(
        idata, model, 10, tune=20, random_seed=2, cores=1, progressbar=False,
        compute_convergence_checks=False,
    )  # fmt: skip
    assert longer["posterior"].sizes["draw"] == 70


def test_prior_beside_the_posterior_is_that_of_the_model(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    prior = n_clusters_prior(idata, "x", model)
    drawn = pm.sample_prior_predictive(1000, model=model, random_seed=1)["prior"]["x_n_clusters"]
    mean = float((prior * prior["n_clusters"]).sum())
    assert abs(mean - float(drawn.mean())) < 0.3


def test_forward_draws_have_the_law() -> None:
    drawn = pm.draw(mfm(1.2)["x_n_clusters"], 4000, random_seed=3)
    exact = prior_of_k(stats.poisson(3.0, loc=1).pmf(np.arange(80)), 1.2, len(ROWS))
    assert count_test(drawn.reshape(8, -1), exact) > LEVEL


# --- the highest partition ----------------------------------------------------------------


def test_find_map_maximises_over_the_number_of_components() -> None:
    rows = np.concatenate([centre + ROWS[:3] / 3 for centre in range(0, 60, 10)])
    far = dps.Normal(25.0, 0.001, 2.0, 0.1)
    with pm.Model() as model:
        prior = pm.DiscreteUniform.dist(1, 9)
        dps.MFMixture("x", 1.0, far, n_components=prior, observed=rows)
    found = dps.find_map(model, random_seed=1)
    # More clusters than the initial point has components.
    assert int(model.initial_point()["x_n_components"]) == 5
    assert found.n_clusters == 6
    point = model.initial_point()
    law = concentration_prior(find_mixtures(model)["x"], model, point)
    assert law is not None
    heights = {}
    for m in range(6, 10):
        log_prior, at = law.given(point)(np.log(m + 0.5))
        heights[m] = log_prior + log_probability(at, np.full(6, 3.0))
    assert found.alpha == max(heights, key=lambda m: heights[m])
