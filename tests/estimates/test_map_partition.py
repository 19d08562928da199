"""MAP-DPM: it climbs, stops at a fixed point, and with restarts finds the highest partition."""

import numpy as np
import pymc as pm
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import gamma

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.estimates.climbing import climb
from pymc_dpsplit.moves.collapsed.conditional_modes import LEAST_GAIN, climb_by_rows
from tests.reference import estimates as naive
from tests.support.datasets import DATASETS
from tests.support.families import FAMILIES, component_of, dataset_of, target_of, twin_of
from tests.support.partitions import exact_posterior, partition_index
from tests.support.quick import over_cases, over_compiled

ALPHAS = (0.3, 3.0)
LARGEST = 7  # observations, of which all 877 partitions are tried
CASES = [(name, row.n_features[-1], data) for name, row in FAMILIES.items() for data in DATASETS]
each_case = pytest.mark.parametrize(
    "case", over_cases(CASES), ids=lambda case: "-".join(map(str, case))
)
TOLERANCE = 1e-8


def model_of(component, rows, alpha):
    with pm.Model() as model:
        observed = rows if component.row_ndim else rows[:, 0]
        dps.DPMixture("x", alpha, component, observed=observed)
    return model


def gains_by_moving_one(family, rows, labels, alpha):
    """What each change of one label adds to the log joint density."""
    present = naive.log_joint(family, rows, labels, alpha)
    return [
        naive.log_joint(family, rows, naive.with_label(labels, i, k), alpha) - present
        for i in range(len(rows))
        for k in naive.choices(labels, i)
    ]


def starts_of(n_obs, n_starts):
    rng = np.random.default_rng(8)
    for _ in range(n_starts):
        labels = rng.integers(rng.integers(1, n_obs + 1), size=n_obs)
        yield np.unique(labels, return_inverse=True)[1]


def swept(target, labels):
    """Labels after one sweep in the order of the rows."""
    state = sampler.resume(target, labels.copy())
    rows = np.arange(len(labels))
    climb_by_rows(target, state.labels, state.stats, rows)
    return state.labels


@pytest.mark.slow
@each_case
def test_sweep_is_that_of_its_twin_climbs_and_ends_at_a_fixed_point(case):
    name, n_features, data = case
    rows, family = dataset_of(name, data, n_features), twin_of(name, n_features)
    for alpha in ALPHAS:
        target = target_of(component_of(name, n_features), rows, alpha)
        for labels in starts_of(len(rows), 4):
            expected = naive.sweep(family, rows, labels, alpha, LEAST_GAIN)
            assert partition_index(swept(target, labels)) == partition_index(expected)
            end = climb(target, labels, np.arange(len(rows)), 100)
            assert end.has_settled
            path = np.append(naive.log_joint(family, rows, labels, alpha), end.path)
            assert np.diff(path).min() >= -TOLERANCE
            found = naive.log_joint(family, rows, end.state.labels, alpha)
            np.testing.assert_allclose(end.objective, found, atol=TOLERANCE)
            assert max(gains_by_moving_one(family, rows, end.state.labels, alpha)) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.control
def test_sweep_that_forgets_to_remove_the_observation_is_caught():
    stuck = 0
    for name, n_features, data in CASES:
        rows, family = dataset_of(name, data, n_features), twin_of(name, n_features)
        for labels in starts_of(len(rows), 2):
            for _ in range(5):
                labels = naive.sweep_that_forgets_to_remove(family, rows, labels, 3.0)
            stuck += max(gains_by_moving_one(family, rows, labels, 3.0)) > TOLERANCE
    assert stuck > len(CASES) / 2


@pytest.mark.slow  # it enters all families
@pytest.mark.control
def test_climb_with_another_alpha_falls():
    n_falls = 0
    for name, n_features, data in CASES:
        rows, family = dataset_of(name, data, n_features), twin_of(name, n_features)
        target = target_of(component_of(name, n_features), rows, 30.0)
        for labels in starts_of(len(rows), 4):
            before = naive.log_joint(family, rows, labels, 0.3)
            n_falls += naive.log_joint(family, rows, swept(target, labels), 0.3) < before
    assert n_falls > len(CASES) / 2


def loss_of_best(case, n_restarts, alpha):
    """How far the log joint density of the partition found is below the highest there is."""
    name, n_features, data = case
    rows = dataset_of(name, data, n_features)[:LARGEST]
    exact = exact_posterior(twin_of(name, n_features), rows, alpha)
    model = model_of(component_of(name, n_features), rows, alpha)
    found = dps.find_map(model, n_restarts=n_restarts, random_seed=3)
    return float(np.log(exact.max() / exact[partition_index(found.labels)]))


@pytest.mark.slow
@each_case
def test_restarts_find_the_highest_of_all_partitions(case):
    for alpha in ALPHAS:
        assert loss_of_best(case, 40, alpha) <= TOLERANCE


# From one cluster every climb of these small tables of counts ends on the highest.
@pytest.mark.control
@pytest.mark.parametrize("name", over_compiled(name for name in FAMILIES if name != "Multinomial"))
def test_a_single_start_misses_it(name):
    cases = ((case, alpha) for case in CASES if case[0] == name for alpha in reversed(ALPHAS))
    assert any(loss_of_best(case, 1, alpha) > 0.01 for case, alpha in cases)


# --- large enough for cached statistics to matter ------------------------------------------

MANY = np.random.default_rng(2).normal(size=(300, 2)) + np.repeat(
    [[-5.0, 0.0], [4.0, 4.0], [4.0, -4.0]], [150, 100, 50], axis=0
)


@pytest.fixture(scope="module")
def found():
    model = model_of(dps.MvNormal.from_data(MANY), MANY, 1.0)
    return dps.find_map(model, random_seed=1)


def test_clusters_that_lie_apart_are_found(found):
    assert found.var_name == "x"
    assert found.n_clusters == 3
    np.testing.assert_array_equal(found.labels, np.repeat([0, 1, 2], [150, 100, 50]))
    np.testing.assert_allclose(found.weights, np.array([150, 100, 50]) / 301.0)
    np.testing.assert_allclose(found.weights.sum() + found.new_weight, 1.0)
    means = [MANY[found.labels == k].mean(0) for k in range(3)]
    np.testing.assert_allclose(found.parameters["mu"], means, atol=0.05)
    assert found.parameters["cov"].shape == (3, 2, 2)
    assert found.log_joints.max() == pytest.approx(found.log_joint, abs=1e-9)
    assert len(found.log_joints) == 10


def test_halves_of_a_cluster_are_joined():
    """No single observation gains by leaving for the other half: eq. (12.1) alone stays."""
    rows = MANY[:150]
    target = target_of(dps.MvNormal.from_data(MANY), rows, 1.0)
    halves = (rows[:, 1] > 0.0).astype(np.int64)
    assert len(np.unique(swept(target, halves))) == 2
    assert len(climb(target, halves, np.arange(150), 100).state.stats) == 1


def test_a_seed_gives_the_same_partition_again(found):
    again = dps.find_map(model_of(dps.MvNormal.from_data(MANY), MANY, 1.0), random_seed=1)
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(found.log_joints, again.log_joints)


@pytest.mark.slow
def test_float32_gives_what_the_same_numbers_in_float64_give():
    single = MANY.astype(np.float32)
    component = dps.DiagNormal.from_data(MANY)
    ends = [
        dps.find_map(model_of(component, rows, 1.0), random_seed=1).log_joint
        for rows in (single, single.astype(np.float64))
    ]
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


# --- the concentration ----------------------------------------------------------------------


def test_alpha_is_the_best_of_the_candidates():
    model = model_of(dps.MvNormal.from_data(MANY), MANY, 1.0)
    few = {"n_restarts": 2, "random_seed": 1}
    found = dps.find_map(model, alpha=[0.01, 0.4, 50.0], **few)
    assert found.alpha == 0.4  # eq. (1.2) with K = 3, N = 300 is highest at 0.42
    ends = {a: dps.find_map(model, alpha=a, **few).log_joint for a in (0.01, 0.4, 50.0)}
    assert found.log_joint == max(ends.values()) == ends[0.4]


def test_alpha_that_is_a_variable_is_at_its_mode():
    with pm.Model() as model:
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), dps.MvNormal.from_data(MANY), observed=MANY)
    found = dps.find_map(model, random_seed=1)

    def negative(log_alpha):
        alpha = np.exp(log_alpha)
        log_prior = gamma.logpdf(alpha, 2, scale=0.25) + log_alpha
        return -(log_prior + 3 * log_alpha + gammaln(alpha) - gammaln(alpha + 300))

    mode = np.exp(minimize_scalar(negative, bounds=(-5, 5), method="bounded").x)
    assert found.n_clusters == 3
    np.testing.assert_allclose(found.alpha, mode, rtol=1e-4)


@pytest.mark.slow
def test_hyperparameters_that_are_variables_are_held_at_their_values():
    rows = MANY[:, 0]
    with pm.Model() as model:
        spread = pm.Gamma("spread", 2, 2)
        dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, spread), observed=rows)
    fixed = model_of(dps.Normal(0.0, 0.1, 2.0, 3.0), rows[:, None], 1.0)
    held = dps.find_map(model, initvals={"spread": 3.0}, random_seed=1)
    assert held.log_joint == pytest.approx(dps.find_map(fixed, random_seed=1).log_joint)
    by_default = dps.find_map(model, random_seed=1)
    assert by_default.log_joint != pytest.approx(held.log_joint)


# --- errors ---------------------------------------------------------------------------------


def latent(model):
    dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), shape=4)


def incomplete(model):
    dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=[0.0, np.nan, 1.0])


def errors(model):
    mean = pm.Normal("m")
    dps.DPMixture("x", 1.0, dps.Normal(0.0, 0.1, 2.0, 1.0), observed=np.arange(3.0) - mean)


def nothing(model):
    pm.Normal("z")


MODELS = {
    latent: "x is latent, and find_map needs complete observations",
    incomplete: "x has missing entries, and find_map needs complete observations",
    errors: "the observations of x depend on other variables",
    nothing: "the model has no mixture, which find_map needs; declare one in it",
}


@pytest.mark.parametrize("declare", MODELS, ids=lambda declare: declare.__name__)
def test_model_without_complete_data_is_refused(declare):
    with pm.Model() as model:
        declare(model)
    with pytest.raises(ValueError, match=MODELS[declare]):
        dps.find_map(model)


ARGUMENTS = {
    "n_restarts=0 is out of range": {"n_restarts": 0},
    "max_iterations=1.5 is out of range": {"max_iterations": 1.5},
    "alpha=-1 is not one or several positive": {"alpha": -1},
    "alpha=.* is not one or several positive": {"alpha": [[1.0], [2.0]]},
    "alpha='1'": {"alpha": "1"},
    "var_name='y' is no mixture of the model; it has x": {"var_name": "y"},
    r"var_name=\[\] is no mixture": {"var_name": []},
    r"initvals=\[1\] is not a dict; give one": {"initvals": [1]},
    "initvals holds 'y', which is no variable": {"initvals": {"y": 1.0}},
    r"initvals\['x_n_clusters'\]=-1 is negative": {"initvals": {"x_n_clusters": -1}},
}


@pytest.mark.parametrize("message", ARGUMENTS)
def test_bad_argument_is_refused(message):
    model = model_of(dps.Normal(0.0, 0.1, 2.0, 1.0), np.zeros((3, 1)), 1.0)
    with pytest.raises(ValueError, match=message):
        dps.find_map(model, **ARGUMENTS[message])


def test_model_is_given_or_of_the_context():
    with pytest.raises(
        ValueError, match=r"model is not given, .* none in the context; give model="
    ):
        dps.find_map()
    with pytest.raises(ValueError, match="model='x' is not a model; give one"):
        dps.find_map("x")


def test_being_stopped_early_is_told():
    with pytest.warns(UserWarning, match="raise max_iterations"):
        dps.find_map(
            model_of(dps.MvNormal.from_data(MANY), MANY, 1.0),
            n_restarts=2,
            max_iterations=1,
            random_seed=1,
        )


def test_one_of_several_mixtures_is_chosen_by_name():
    with pm.Model() as model:
        for name, rows in (("x", [0.0, 0.1, 9.0]), ("y", [0.0, 0.1])):
            dps.DPMixture(name, 1.0, dps.Normal(0.0, 0.1, 2.0, 0.1), observed=rows)
    assert len(dps.find_map(model, var_name="y").labels) == 2
    with pytest.raises(ValueError, match="it has x, y"):
        dps.find_map(model)
