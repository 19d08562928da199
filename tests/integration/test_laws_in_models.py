"""Pitman-Yor processes and finite mixtures in models: declarations, draws, what reads them."""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.moves.forward import draw_new_weight
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.posterior.plots.n_clusters_prior import n_clusters_prior
from pymc_dpsplit.prior.n_clusters import n_clusters_under
from pymc_dpsplit.variables import RandomMeasure, find_mixtures
from tests.support.partition_laws import LAWS, prior_under
from tests.support.partitions import n_clusters_law, partition_index
from tests.support.statistics import LEVEL, combine, count_test, mean_test, partition_test

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


def pitman_yor(alpha: Any, discount: Any = 0.25, **options: Any) -> pm.Model:
    with pm.Model() as model:
        options = {"observed": ROWS, **options}
        dps.DPMixture("x", alpha, NORMAL, discount=discount, **options)
    return model


def finite(gamma: Any = 1.0, n_components: Any = 3, **options: Any) -> pm.Model:
    with pm.Model() as model:
        options = {"observed": ROWS, **options}
        dps.FiniteMixture("x", gamma, NORMAL, n_components=n_components, **options)
    return model


def sampled_finite() -> pm.Model:
    """Two components, so that most draws have no empty one, and a prior on gamma."""
    with pm.Model() as model:
        gamma = pm.Gamma("gamma", 2.0, 2.0)
        dps.FiniteMixture("x", gamma, NORMAL, n_components=2, observed=ROWS)
    return model


def sampled_pitman_yor() -> pm.Model:
    with pm.Model() as model:
        # Labels are redrawn from the trace, for which larger discounts need too many sticks.
        alpha, discount = pm.Gamma("alpha", 2.0, 2.0), pm.Beta("discount", 1.0, 30.0)
        dps.DPMixture("x", alpha, NORMAL, discount=discount, observed=ROWS)
    return model


# --- declaration --------------------------------------------------------------------------

MEASURE = ["x_n_clusters", "x_new_weight", "x_weights", "x_mu", "x_sigma"]


def test_numbers_add_no_variable() -> None:
    assert [rv.name for rv in pitman_yor(1.0).free_RVs] == MEASURE
    assert [rv.name for rv in finite().free_RVs] == MEASURE


def test_what_varies_adds_the_sum_of_log_weights() -> None:
    for model in (sampled_finite(), sampled_pitman_yor()):
        names = [rv.name for rv in model.free_RVs]
        assert names[-6:] == [*MEASURE, "x_log_weights"]
        assert "x_log_weights" in {rv.name for rv in find_mixtures(model)["x"].owned}


def test_law_is_that_of_the_arguments() -> None:
    numbers = [number.eval() for number in find_mixtures(pitman_yor(1.5, 0.25))["x"].law]
    assert numbers == [0.25, 1.5]
    numbers = [number.eval() for number in find_mixtures(finite(0.5, 4))["x"].law]
    assert numbers == [-0.5, 2.0]


def test_no_more_rows_than_components_are_recorded() -> None:
    assert find_mixtures(finite(n_components=3))["x"].max_clusters == 3
    assert find_mixtures(finite(n_components=50))["x"].max_clusters == len(ROWS)
    assert find_mixtures(finite(n_components=3, max_clusters=7))["x"].max_clusters == 3


def test_model_is_printed_with_its_law() -> None:
    assert "DPMeasure(alpha, discount, " in sampled_pitman_yor().str_repr()


@pytest.mark.parametrize(
    ("alpha", "discount", "fault"),
    [
        (1.0, 1.0, "discount=1.0 is not from 0 to below 1; give 0"),
        (1.0, -0.1, "discount=-0.1 is not from 0 to below 1; give 0"),
        (1.0, np.nan, "discount"),
        (1.0, None, "discount=None is no discount; give 0"),
        (1.0, "a", "discount='a' is a string; give"),
        (1.0, [0.1, 0.2], "discount has shape"),
        (-0.3, 0.25, "alpha=-0.3 is not above -discount = -0.25; give a larger"),
        (-1.0, 0.0, "alpha=-1.0 must be positive; give"),
    ],
)
def test_process_that_cannot_be_is_refused(alpha: Any, discount: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=f"x: {fault}"):
        pitman_yor(alpha, discount)


def test_negative_number_beside_a_variable_is_refused() -> None:
    with pm.Model(), pytest.raises(ValueError, match=r"x: alpha=-0\.1 must be positive; give"):
        dps.DPMixture("x", -0.1, NORMAL, discount=pm.Beta("d", 1.0, 4.0), observed=ROWS)


@pytest.mark.parametrize(
    ("gamma", "n_components", "fault"),
    [
        (0.0, 3, "gamma=0.0 must be positive; give"),
        (None, 3, "gamma=None is no parameter of a Dirichlet distribution; give"),
        (1.0, 0, "n_components=0 is not a whole number from 1"),
        (1.0, 2.5, "n_components=2.5 is not a whole number from 1"),
        (1.0, None, "n_components=None is not a whole number from 1"),
    ],
)
def test_finite_mixture_that_cannot_be_is_refused(
    gamma: Any, n_components: Any, fault: str
) -> None:
    with pytest.raises(ValueError, match=f"x: {fault}"):
        finite(gamma, n_components)


def test_function_outside_a_model_is_named() -> None:
    with pytest.raises(ValueError, match="FiniteMixture 'x' is declared outside a model"):
        dps.FiniteMixture("x", 1.0, NORMAL, n_components=2, observed=ROWS)


@pytest.mark.parametrize(
    ("prior", "fault"),
    [
        (lambda: ("alpha", pm.Normal("alpha", -3.0, 0.1)), "alpha is .* and discount 0.25 at a"),
        (lambda: ("gamma", pm.Normal("gamma", -3.0, 0.1)), "gamma is .* at a point that its prior"),
    ],
)
def test_prior_on_impossible_laws_is_refused(prior: Any, fault: str) -> None:
    with pm.Model() as model:
        name, number = prior()
        if name == "alpha":
            dps.DPMixture("x", number, NORMAL, discount=0.25, observed=ROWS)
        else:
            dps.FiniteMixture("x", number, NORMAL, n_components=3, observed=ROWS)
        with pytest.raises(ValueError, match=f"x: {fault}"):
            dps.DPSplitMerge(find_mixtures(model)["x"].owned)


def test_start_with_too_many_clusters_is_refused() -> None:
    options = {"start_labels": np.array([0, 0, 1, 1, 2, 2, 0, 1])}
    fault = "has 3 clusters, but the mixture has 2 components; give"
    with finite(n_components=2), pytest.raises(ValueError, match=fault):
        pm.sample(**FEW, dpsplit=options)


# --- forward draws ------------------------------------------------------------------------

N = 5


def forward_p_value(name: str, labelled: bool, rng: np.random.Generator) -> float:
    """P-value of partition, number of clusters and remainder of forward draws of the measure."""
    law, log_prior = LAWS[name]
    exact = prior_under(log_prior, N)
    op = RandomMeasure("x", NORMAL, N, 1, N, labelled, law.discount < 0.0)
    n_clusters, rests, labels = [], [], []
    for _ in range(8000):
        drawn, weights, rest = op._draw_partition(rng, law)
        n_clusters.append(len(weights))
        rests.append((rest, rest * len(weights)))
        labels.append(drawn)
        assert weights.sum() + rest == pytest.approx(1.0)
    of_k = n_clusters_law(exact, N)
    k = np.arange(N + 1)
    a = np.maximum(law.strength + k * law.discount, 0.0)
    first, second = (
        a / (N + law.strength),
        a * (a + 1) / (N + law.strength) / (N + law.strength + 1),
    )
    means = np.array([of_k @ first, of_k @ (k * first)])
    variances = np.array([of_k @ second, of_k @ (k**2 * second)]) - means**2
    found = [
        count_test(np.reshape(n_clusters, (8, -1)), of_k),
        mean_test(np.reshape(rests, (8, -1, 2)), means, variances),
    ]
    if labelled:
        index = partition_index(np.array(labels)).reshape(8, -1)
        found.append(partition_test(index, exact))
    return combine(*found)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("name", LAWS)
def test_forward_draws_have_the_law(name: str, labelled: bool, rng: np.random.Generator) -> None:
    assert forward_p_value(name, labelled, rng) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize("name", ["Pitman-Yor", "finite"])
def test_remainder_drawn_before_the_partition_is_caught(
    name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(rng: np.random.Generator, law: PartitionLaw, n_obs: int, n_clusters: int) -> float:
        return draw_new_weight(rng, law, n_obs, 0)

    monkeypatch.setattr("pymc_dpsplit.variables.measure.draw_new_weight", first)
    assert forward_p_value(name, False, rng) < LEVEL


@pytest.mark.slow
def test_prior_predictive_rows_are_of_the_process() -> None:
    """Five rows of a finite mixture of one component are alike, and of a Pitman-Yor process not."""
    near = dps.Normal(0.0, 1e-4, 50.0, 1e-3)  # clusters far apart, and narrow
    with pm.Model() as model:
        dps.FiniteMixture("x", 1.0, near, n_components=1, observed=ROWS)
        dps.DPMixture("y", 5.0, near, discount=0.9, observed=ROWS)
    drawn = pm.sample_prior_predictive(20, model=model, random_seed=1)["prior_predictive"]
    assert np.ptp(drawn["x"].to_numpy(), axis=-1).max() < 0.1
    assert np.ptp(drawn["y"].to_numpy(), axis=-1).min() > 0.1


# --- what reads a trace -------------------------------------------------------------------


@pytest.fixture(scope="module", params=[sampled_finite, sampled_pitman_yor])
def fitted(request: pytest.FixtureRequest) -> tuple[pm.Model, Any]:
    model = request.param()
    with model:
        return model, pm.sample(**FEW)


@pytest.mark.slow
def test_trace_holds_the_weights_and_their_sum(fitted: tuple[pm.Model, Any]) -> None:
    posterior = fitted[1]["posterior"]
    weights = posterior["x_weights"].to_numpy()
    with np.errstate(divide="ignore"):
        logs = np.where(weights > 0, np.log(weights), 0.0).sum(-1)
    np.testing.assert_allclose(posterior["x_log_weights"], logs, rtol=1e-9)
    total = weights.sum(-1) + posterior["x_new_weight"].to_numpy()
    np.testing.assert_allclose(total, 1.0)


def test_full_mixture_has_no_remainder(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    if not find_mixtures(model)["x"].is_finite:
        pytest.skip("a process is never full")
    posterior = idata["posterior"]
    is_full = posterior["x_n_clusters"].to_numpy() == 2
    assert is_full.any()
    np.testing.assert_array_equal(posterior["x_new_weight"].to_numpy() == 0.0, is_full)
    # Gamma moves also where the mixture is full.
    assert np.ptp(posterior["gamma"].to_numpy()[is_full]) > 0


@pytest.mark.slow
def test_public_functions_follow_the_law(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    n_clusters = idata["posterior"]["x_n_clusters"].to_numpy()
    labels = dps.sample_labels(idata, model=model, random_seed=1).to_numpy()
    if find_mixtures(model)["x"].is_finite:
        assert labels.max() <= 1
    assert labels.shape == (*n_clusters.shape, len(ROWS))
    predicted = dps.predict(idata, np.array([0.0, 5.0, 90.0]), model=model)
    assert all(np.isfinite(predicted[key]).all() for key in predicted.data_vars)
    of_grid = dps.density(idata, model=model, grid=np.linspace(-30.0, 35.0, 400))["density"]
    mean = of_grid.sel(statistic="mean") if "statistic" in of_grid.dims else of_grid
    assert 0.95 < np.trapezoid(mean, np.linspace(-30.0, 35.0, 400)) < 1.01
    drawn = pm.sample_posterior_predictive(idata, model=model, progressbar=False, random_seed=1)
    assert np.isfinite(drawn["posterior_predictive"]["x"]).all()
    assert "x" in repr(dps.diagnose(idata, model=model))
    found = dps.find_map(model, random_seed=1)
    assert found.weights.sum() + found.new_weight == pytest.approx(1.0)
    assert found.n_clusters == 2


@pytest.mark.compiled
def test_labels_that_need_too_many_atoms_are_refused() -> None:
    with pitman_yor(1.0, 0.6) as model:
        idata = pm.sample(**FEW)
    fault = "discount is 0.6 in a draw of idata, .*; sample with dpsplit="
    with pytest.raises(ValueError, match=fault):
        dps.sample_labels(idata, model=model, random_seed=1)
    with pytest.raises(ValueError, match=fault):
        dps.loo(idata, model=model, random_seed=1)


@pytest.mark.slow
def test_chains_go_on_from_the_trace(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    longer = dps.extend(
        idata, model, 10, tune=20, random_seed=2, cores=1, progressbar=False,
        compute_convergence_checks=False,
    )  # fmt: skip
    assert longer["posterior"].sizes["draw"] == 70


def test_prior_of_the_number_of_clusters_follows_the_law() -> None:
    for name in ("finite", "Pitman-Yor"):
        law, log_prior = LAWS[name]
        expected = n_clusters_law(prior_under(log_prior, N), N)[1:]
        found = n_clusters_under(np.array([law.discount]), np.array([law.strength]), N)
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.slow
def test_prior_beside_the_posterior_is_that_of_the_model(fitted: tuple[pm.Model, Any]) -> None:
    model, idata = fitted
    prior = n_clusters_prior(idata, "x", model)
    drawn = pm.sample_prior_predictive(1000, model=model, random_seed=1)["prior"]["x_n_clusters"]
    mean = float((prior * prior["n_clusters"]).sum())
    assert abs(mean - float(drawn.mean())) < 0.6


def test_find_map_takes_no_alpha_of_a_finite_mixture() -> None:
    with pytest.raises(ValueError, match="finite number of components; leave"):
        dps.find_map(finite(), alpha=1.0)


@pytest.mark.slow
def test_weight_that_underflows_keeps_its_logarithm() -> None:
    """With gamma near 0 the empty components have weights below the smallest number."""
    with pm.Model():
        gamma = pm.Gamma("gamma", 2.0, 2e5)
        dps.FiniteMixture("x", gamma, NORMAL, n_components=20, observed=ROWS)
        idata = pm.sample(**FEW)
    posterior = idata["posterior"]
    assert (posterior["x_new_weight"] == 0.0).any()
    assert (posterior["x_n_clusters"] < 20).all()
    # NUTS sees the logarithm, so that gamma moves.
    assert len(np.unique(posterior["gamma"])) > 60
    assert 0.1 < stats.gamma(2.0, scale=5e-6).cdf(posterior["gamma"]).mean() < 0.99
