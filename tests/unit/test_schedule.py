"""Number of iterations of a draw."""

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.step import schedule as schedule_module
from pymc_dpsplit.step.schedule import adapted_iterations, make_schedule
from tests.support.families import component_of, target_of

# Iterations that a chain gets, as multiples, for an autocorrelation time of so many draws, which
# was estimated from so many.
INCREASES = {
    ("collapsed-split-merge", 1.0, 500): 1,
    ("collapsed-split-merge", 5.0, 500): 2.5,
    ("collapsed-split-merge", 50.0, 500): 4,
    ("exact", 1.0, 500): 1,
    ("exact", 4.0, 500): 1,
    ("exact", 12.0, 480): 3,
    ("exact", 6.0, 120): 3,
    ("exact", 12.0, 120): 8,
}


@pytest.mark.parametrize(("kernel", "draws_per_time", "n_draws"), INCREASES)
def test_slow_chains_get_more_iterations(
    kernel: str, draws_per_time: float, n_draws: int, rng: np.random.Generator
) -> None:
    target = target_of(component_of("Normal", 1), rng.normal(size=(40, 1)), 1.0)
    state = sampler.resume(target, np.arange(40) % 3)
    schedule = make_schedule(kernel, target, state)._replace(n_iterations=10)
    increased = adapted_iterations(schedule, 10, kernel, target, state, draws_per_time, n_draws)
    assert increased == 10 * INCREASES[kernel, draws_per_time, n_draws]


@pytest.mark.parametrize(
    ("kernel", "draws_per_time", "wanted"),
    [
        ("collapsed-split-merge", 1.0, 5),
        ("collapsed-split-merge", 2.0, 7),
        ("collapsed-split-merge", 50.0, 40),
        ("exact", 1.0, 10),
    ],
)
def test_draws_ahead_have_fewer_collapsed_sweeps(
    kernel: str, draws_per_time: float, wanted: int, rng: np.random.Generator
) -> None:
    """At least half as many, and three draws per autocorrelation time."""
    target = target_of(component_of("Normal", 1), rng.normal(size=(40, 1)), 1.0)
    state = sampler.resume(target, np.arange(40) % 3)
    schedule = make_schedule(kernel, target, state)._replace(n_iterations=10)
    known = schedule, 10, kernel, target, state, draws_per_time, 500
    assert adapted_iterations(*known, is_ahead=True) == wanted


@pytest.mark.parametrize("n_clusters", [60, 24])
def test_clusters_with_few_members_for_their_statistics_get_a_window(
    n_clusters: int, rng: np.random.Generator
) -> None:
    """Of 21 statistics with 10 members, and with 25, which is less than 1.5 times as many."""
    n_obs = 600
    component = dps.MvNormal(np.zeros(5), 0.1, 7.0, np.eye(5))
    target = target_of(component, rng.normal(size=(n_obs, 5)), 1.0)
    few, many = (sampler.resume(target, np.arange(n_obs) % k) for k in (3, n_clusters))
    with_list, with_window = (make_schedule("exact", target, state) for state in (few, many))
    assert with_list.window == 0
    assert with_list.n_scanned == len(with_list.scan_list) > 0
    assert 0 < with_window.window == with_window.n_scanned
    assert len(with_window.scan_list) == 0
    assert make_schedule("collapsed", target, many).window == 0


@pytest.mark.parametrize(("n_obs", "n_passes"), [(300, 4), (600, 2), (1200, 1)])
def test_a_window_is_several_passes_where_drawing_parameters_takes_long(
    n_obs: int, n_passes: int, rng: np.random.Generator
) -> None:
    """Four times as long as a sweep; parameters of 66 statistics take most of that of 300 rows."""
    component = dps.MvNormal(np.zeros(10), 0.1, 12.0, np.eye(10))
    target = target_of(component, rng.normal(size=(n_obs, 10)), 1.0)
    state = sampler.resume(target, np.arange(n_obs) % 15)
    schedule = make_schedule("exact", target, state)
    assert schedule.window // n_obs == n_passes
    slow = adapted_iterations(schedule, schedule.n_iterations, "exact", target, state, 50.0, 500)
    assert slow == 4 * schedule.n_iterations


@pytest.mark.parametrize(
    ("n_features", "n_clusters", "share"), [(5, 3, 1.0 / 3.0), (5, 60, 1.0), (4, 3, 2.0 / 15.0)]
)
def test_a_settled_chain_makes_fewer_attempts(
    n_features: int, n_clusters: int, share: float, rng: np.random.Generator
) -> None:
    """A third as many, two fifteenths with few features; as many if clusters have few members."""
    component = dps.MvNormal(np.zeros(n_features), 0.1, n_features + 2.0, np.eye(n_features))
    target = target_of(component, rng.normal(size=(600, n_features)), 1.0)
    state = sampler.resume(target, np.arange(600) % n_clusters)
    searching, settled = (
        make_schedule("exact", target, state, is_settled=is_settled).attempts
        for is_settled in (False, True)
    )
    assert settled == pytest.approx(share * searching)


def of_one_cluster(rows: np.ndarray, kappa0: float) -> tuple[sampler.Target, sampler.ChainState]:
    n_features = rows.shape[1]
    component = dps.MvNormal(np.zeros(n_features), kappa0, n_features + 2.0, np.eye(n_features))
    target = target_of(component, rows, 1.0)
    return target, sampler.resume(target, np.zeros(len(rows), int))


def with_outliers(n_features: int, distance: float, rng: np.random.Generator) -> np.ndarray:
    rows = rng.standard_normal((600, n_features))
    rows[:n_features] = distance * np.eye(n_features)
    return rows


def test_few_features_have_a_list_of_outliers_that_sweeps_leave_in_their_cluster(
    rng: np.random.Generator,
) -> None:
    schedule = make_schedule("exact", *of_one_cluster(with_outliers(4, 8.0, rng), 1e-4))
    assert set(schedule.scan_list) >= {0, 1, 2, 3}
    assert len(schedule.scan_list) <= 20


def test_few_features_have_no_list_where_atoms_are_near_the_outliers(
    rng: np.random.Generator,
) -> None:
    schedule = make_schedule("exact", *of_one_cluster(with_outliers(2, 4.0, rng), 0.1))
    assert len(schedule.scan_list) == schedule.window == 0


def test_few_features_have_no_list_where_many_could_found_clusters(
    rng: np.random.Generator,
) -> None:
    schedule = make_schedule("exact", *of_one_cluster(rng.uniform(size=(3000, 4)), 1e-4))
    assert len(schedule.scan_list) == schedule.window == 0


def test_few_likely_founders_are_repeated_and_the_next_ones_join_them(
    rng: np.random.Generator,
) -> None:
    """Few observations can found a cluster, and a pair is one; half of the scan has others too."""
    rows = rng.normal(size=(1000, 6))
    rows[:2], rows[[70, 80]] = 20.0, -20.0
    component = dps.MvNormal(np.zeros(6), 0.001, 8.0, np.eye(6))
    target = target_of(component, rows, 1e-6)
    labels = (np.arange(1000) < 2).astype(np.int32)
    schedule = make_schedule("exact", target, sampler.resume(target, labels))
    visited, times = np.unique(schedule.scan_list, return_counts=True)
    assert {0, 1, 70, 80} < set(visited)
    others = ~np.isin(visited, [0, 1, 70, 80])
    assert (times[others] == 1).all()
    assert len(set(times[~others])) == 1
    assert times[~others][0] > 1
    once, repeated = len(visited), 4 * (times[~others][0] - 1)
    assert 0.9 * once < repeated <= once


def test_many_likely_founders_are_visited_twice(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """Half of the scan does not cover the births, so that the rest is for the same observations."""
    odds = rng.permuted(np.linspace(-1.0, 1.0, 1000))
    monkeypatch.setattr(schedule_module, "log_founding_odds", lambda target, stats: odds.copy())
    component = dps.MvNormal(np.zeros(6), 0.001, 8.0, np.eye(6))
    target = target_of(component, rng.normal(size=(1000, 6)), 1.0)
    state = sampler.resume(target, np.zeros(1000, np.int32))
    schedule = make_schedule("exact", target, state)
    visited, times = np.unique(schedule.scan_list, return_counts=True)
    assert (times == 2).all()
    np.testing.assert_array_equal(visited, np.sort(np.argsort(-odds)[: len(visited)]))


def test_no_draw_has_more_iterations_than_allowed(rng: np.random.Generator) -> None:
    target = target_of(component_of("Normal", 1), rng.normal(size=(40, 1)), 1.0)
    state = sampler.resume(target, np.arange(40) % 3)
    schedule = make_schedule("exact", target, state)
    adapted = adapted_iterations(schedule, 1, "exact", target, state, 1e9, 500)
    assert adapted == 100


@pytest.mark.parametrize(("draws_per_time", "n_iterations"), [(1.0, 10), (2.0, 20), (8.0, 80)])
def test_iterations_fall_to_what_the_last_quarter_of_tuning_needs(
    draws_per_time: float, n_iterations: int, rng: np.random.Generator
) -> None:
    target = target_of(component_of("Normal", 1), rng.normal(size=(40, 1)), 1.0)
    state = sampler.resume(target, np.arange(40) % 3)
    schedule = make_schedule("exact", target, state)._replace(n_iterations=40)
    adapted = adapted_iterations(schedule, 10, "exact", target, state, draws_per_time, 500)
    assert adapted == n_iterations
