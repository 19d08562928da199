"""`find_map` of rows in groups climbs, and with restarts finds the highest of all partitions."""

from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import gamma as gamma_law

import pymc_dpsplit as dps
from pymc_dpsplit.estimates import climbing_in_groups
from pymc_dpsplit.estimates.climbing_in_groups import climb_groups
from pymc_dpsplit.estimates.grouped_concentrations import GroupedConcentrations
from tests.reference.franchise import all_tables, counts_of, log_law_of_tables
from tests.support.families import as_observed, component_of, twin_of
from tests.support.grouped_rows import CASES, ROWS, grouped_target
from tests.support.partitions import enumerate_partitions, partition_index

TOLERANCE = 1e-9


def model_of(family, case):
    given = CASES[case]
    with pm.Model() as model:
        dps.HDPMixture(
            "x", given.alpha, given.gamma, component_of(family, 1), groups=given.groups,
            observed=as_observed(family, ROWS[family]),
        )  # fmt: skip
    return model


def log_law(labels, groups, alpha, gamma):
    """Log probability of a partition, by the sum over all tables."""
    counts = counts_of(labels, np.unique(groups, return_inverse=True)[1])
    return logsumexp([log_law_of_tables(of, counts, alpha, gamma) for of in all_tables(counts)])


@cache
def log_joints(family, case):
    """Log joint density of the rows and each partition."""
    rows, twin, given = ROWS[family], twin_of(family, 1), CASES[case]
    return np.array([
        log_law(labels, given.groups, given.alpha, given.gamma)
        + sum(twin.log_marginal(rows[labels == k]) for k in range(labels.max() + 1))
        for labels in enumerate_partitions(len(rows)).astype(int)
    ])  # fmt: skip


def loss_of_best(family, case, n_restarts):
    """How far the partition found is below the highest, by enumeration."""
    found = dps.find_map(model_of(family, case), n_restarts=n_restarts, random_seed=3)
    exact = log_joints(family, case)
    at_found = exact[partition_index(found.labels)]
    assert found.log_joint == pytest.approx(at_found, abs=TOLERANCE)
    assert found.log_joints.max() == pytest.approx(at_found, abs=TOLERANCE)
    return exact.max() - at_found


@pytest.mark.parametrize("family", ROWS)
@pytest.mark.parametrize("case", CASES)
def test_restarts_find_the_highest_of_all_partitions(family, case):
    assert loss_of_best(family, case, 30) <= TOLERANCE


@pytest.mark.control
def test_a_single_start_misses_it():
    losses = [loss_of_best(family, case, 1) for family in ROWS for case in CASES]
    assert max(losses) > 0.01


@pytest.mark.control
def test_density_of_rows_without_groups_is_caught(monkeypatch):
    honest = climbing_in_groups.seatings_of

    def of_one_group(counts, alpha, gamma):
        return honest(counts.sum(axis=0, keepdims=True), alpha, gamma)

    monkeypatch.setattr(climbing_in_groups, "seatings_of", of_one_group)
    with pytest.raises(AssertionError):
        loss_of_best("Normal", "33", 30)


@pytest.mark.parametrize("family", ROWS)
def test_climbs_do_not_fall_and_no_merge_is_left(family):
    rng = np.random.default_rng(4)
    for case in CASES:
        model, target = model_of(family, case), grouped_target(family, CASES[case])
        with model:
            mixture = dps.HDPMixtureStep(model.free_RVs).mixture
        fixed = GroupedConcentrations(mixture, model, model.initial_point())
        every, exact = enumerate_partitions(6).astype(int), log_joints(family, case)
        for start in rng.choice(len(every), 10):
            climb = climb_groups(target, {**model.initial_point()}, fixed, every[start],
                                 rng.permutation(6), 50)  # fmt: skip
            assert climb.has_settled
            path = np.append(exact[start], climb.path)
            assert np.diff(path).min() >= -TOLERANCE
            labels = climb.summit.labels
            assert climb.objective == pytest.approx(exact[partition_index(labels)], abs=TOLERANCE)
            if labels.max() == 1:
                assert climb.objective >= exact[0] - TOLERANCE


# --- concentrations -------------------------------------------------------------------------


def test_concentrations_that_are_variables_are_at_their_modes():
    with pm.Model() as model:
        dps.HDPMixture(
            "x", pm.Gamma("alpha", 3, 2), pm.Gamma("gamma", 2, 3), component_of("Normal", 1),
            groups=CASES["2202"].groups, observed=ROWS["Normal"][:, 0],
        )  # fmt: skip
    found = dps.find_map(model, random_seed=1, n_restarts=3)

    def negative(logs):
        alpha, gamma = np.exp(logs)
        prior = gamma_law.logpdf(alpha, 3, scale=1 / 2) + gamma_law.logpdf(gamma, 2, scale=1 / 3)
        return -(prior + logs.sum() + log_law(found.labels, CASES["2202"].groups, alpha, gamma))

    best = minimize(negative, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6})
    np.testing.assert_allclose([found.alpha, found.gamma], np.exp(best.x), rtol=1e-3)
    assert negative(np.log([found.alpha, found.gamma])) <= best.fun + 1e-8


def test_prior_of_gamma_that_depends_on_alpha():
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 3, 2)
        dps.HDPMixture(
            "x", alpha, pm.Gamma("gamma", 2, alpha), component_of("Normal", 1),
            groups=CASES["2202"].groups, observed=ROWS["Normal"][:, 0],
        )  # fmt: skip
    found = dps.find_map(model, random_seed=1, n_restarts=3)

    def negative(logs):
        alpha, gamma = np.exp(logs)
        prior = gamma_law.logpdf(alpha, 3, scale=1 / 2) + gamma_law.logpdf(
            gamma, 2, scale=1 / alpha
        )
        return -(prior + logs.sum() + log_law(found.labels, CASES["2202"].groups, alpha, gamma))

    best = minimize(negative, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-6})
    np.testing.assert_allclose([found.alpha, found.gamma], np.exp(best.x), rtol=1e-3)


# --- larger data, and what is returned --------------------------------------------------------

_RNG = np.random.default_rng(2)
GROUPS = np.repeat(["a", "b", "c"], 40)
LABELS = np.r_[np.repeat([0, 1], 20), np.repeat([0, 2], 20), np.repeat([1, 2], [10, 30])]
MANY = _RNG.normal(size=(120, 2)) + np.array([[-6.0, 0.0], [5.0, 5.0], [5.0, -5.0]])[LABELS]


def model_of_many():
    with pm.Model() as model:
        dps.HDPMixture("x", 1.0, 1.5, dps.MvNormal.from_data(MANY), groups=GROUPS, observed=MANY)
    return model


@pytest.fixture(scope="module")
def found():
    return dps.find_map(model_of_many(), random_seed=1, n_restarts=4)


def test_clusters_that_lie_apart_are_found(found):
    assert (found.n_clusters, found.var_name) == (3, "x")
    assert partition_index(found.labels[::20]) == partition_index(LABELS[::20])
    assert len(np.unique(np.stack([found.labels, LABELS]), axis=1).T) == 3
    assert (np.diff(np.bincount(found.labels)) <= 0).all()
    assert found.parameters["cov"].shape == (3, 2, 2)
    means = [MANY[found.labels == k].mean(0) for k in range(3)]
    np.testing.assert_allclose(found.parameters["mu"], means, atol=0.1)


def test_weights_of_groups_follow_from_the_partition(found):
    counts = np.array([np.bincount(found.labels[g == GROUPS], minlength=3) for g in "abc"])
    expected = (counts + found.weights) / 41.0
    np.testing.assert_allclose(found.group_weights, expected)
    assert 0.0 < found.new_weight < 0.5
    assert (found.alpha, found.gamma) == (1.0, 1.5)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(ValueError, match="alpha is given, but x is an HDPMixture with two"):
        dps.find_map(model_of("Normal", "33"), alpha=2.0)
    with pm.Model() as model:
        dps.HDPMixture("x", 1.0, 1.0, component_of("Normal", 1), groups=[0, 0, 1],
                       observed=[0.0, np.nan, 1.0])  # fmt: skip
    with pytest.raises(ValueError, match="x has missing entries, and find_map needs complete"):
        dps.find_map(model)


def test_being_stopped_early_is_told():
    # The first start, one cluster, is settled at once.
    with pytest.warns(UserWarning, match="raise max_iterations"):
        dps.find_map(model_of_many(), max_iterations=1, n_restarts=4, random_seed=1)
