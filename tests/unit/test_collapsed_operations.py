"""The operations of the collapsed moves, and a whole scan, against naive twins of each."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import fill_predictive, predictive_size
from pymc_dpsplit.components.collapsed import (
    fill_log_predictives,
    log_predictive_without,
    new_clusters,
    new_numbers_of_sizes,
    tabulate,
)
from pymc_dpsplit.kernels.cluster_choice import (
    choose_plainly,
    choose_position,
    workspace_size,
)
from pymc_dpsplit.kernels.cluster_table import WIDE, place_of, whole_blocks
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.logarithm import log_plainly
from pymc_dpsplit.kernels.special import log_half_step, log_rising_by_halves
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.collapsed.positions import refill
from pymc_dpsplit.moves.collapsed.scan import (
    SWEEPS_UNTIL_FRESH,
    collapsed_scan,
    collapsed_sweep,
    log_densities_alone,
    successive_rows,
)
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import PartitionLaw
from tests.support.choice import chosen
from tests.support.controls import scan_of_bounds
from tests.support.family_cases import Case, case_of, over_cases, over_cases_of_quick, rows_of
from tests.support.operations import predictives, stats_of
from tests.support.triples import triples_apart

# --- kernels ------------------------------------------------------------------------------


def test_logarithm_matches_numpy(rng: np.random.Generator) -> None:
    near = 1.0 + rng.uniform(-1.0, 1.0, 300) * 10.0 ** rng.uniform(-16.0, 0.0, 300)
    values = np.concatenate([np.exp(rng.uniform(-700.0, 700.0, 300)), near[near > 0.0], [1.0, 0.5]])
    found = np.array([log_plainly(x) for x in values])
    np.testing.assert_allclose(found, np.log(values), rtol=3e-16, atol=3e-16)


@pytest.mark.parametrize("a", [1e-100, 1e-3, 0.5, 1.0, 3.3, 9.9, 10.0, 47.0, 1e6, 1e12])
def test_half_steps_of_the_gamma_function(a: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(50):
        exact = mpmath.loggamma(mpmath.mpf(a) + 0.5) - mpmath.loggamma(mpmath.mpf(a))
        assert log_half_step(a) == pytest.approx(float(exact), rel=4e-16, abs=4e-16)
        for n in (0, 1, 2, 5, 16, 33):
            exact = mpmath.loggamma(mpmath.mpf(a) + n / 2) - mpmath.loggamma(mpmath.mpf(a))
            assert log_rising_by_halves(a, n) == pytest.approx(float(exact), rel=2e-15, abs=2e-15)


@pytest.mark.parametrize("choose", [choose_position, choose_plainly], ids=["lanes", "plain"])
@pytest.mark.parametrize("n", [1, 3, 7, 8, 19])
def test_position_is_that_of_the_cumulative_mass(
    choose: Callable[..., int], n: int, rng: np.random.Generator
) -> None:
    capacity = whole_blocks(n + 1)
    for number in range(60):
        log_density, log_prior = np.full((2, capacity), np.nan)
        log_density[:n] = 2.0 * rng.standard_normal(n) - 5000.0
        log_prior[:n] = np.where(rng.random(n) < 0.3, -np.inf, rng.standard_normal(n))
        own, log_prior_own = rng.integers(-1, n), 3.0
        log_new = -5000.0 + rng.standard_normal() if number % 3 else -np.inf
        masses = np.append(log_density[:n] + log_prior[:n], log_new)
        if own >= 0:
            masses[own] = log_density[own] + log_prior_own
        elif np.isinf(masses).all():
            continue
        mass, u = special.softmax(masses), rng.random()
        found = choose(
            log_density,
            log_prior,
            own,
            log_prior_own,
            n,
            log_new,
            -5002.0,
            u,
            np.empty(workspace_size(capacity)),
        )
        assert found == chosen(mass, u)


@pytest.mark.parametrize("reference", [-1e300, -4000.0, 0.0, 4000.0, np.inf])
def test_position_depends_on_the_reference_by_rounding_only(
    reference: float, rng: np.random.Generator
) -> None:
    log_density, log_prior = 30.0 * rng.standard_normal((2, 2 * WIDE))
    given = log_density, log_prior, 2, -1.0, 11, 20.0
    for u in rng.random(50):
        found = [
            choose_position(*given, each, u, np.empty(workspace_size(2 * WIDE)))
            for each in (reference, 20.0)
        ]
        assert found[0] == found[1]


def test_position_without_mass_is_never_chosen() -> None:
    """Not even where rounding leads beyond the last mass."""
    log_density = np.full(2 * WIDE, -np.inf)
    log_density[[1, 2]] = -1e300, -1e300
    workspace = np.empty(workspace_size(2 * WIDE))
    for reference in (-1e300, 0.0):
        for u in (0.0, 0.5, 1.0 - 2.0**-53, 1.0):
            given = log_density, np.zeros(2 * WIDE), -1, 0.0, WIDE + 3, -np.inf
            assert choose_position(*given, reference, u, workspace) in (1, 2)


def test_places_in_a_table_differ() -> None:
    places = {place_of(5, p) + r * WIDE for p in range(3 * WIDE) for r in range(5)}
    assert places == set(range(3 * WIDE * 5))


# --- predictive densities under all clusters ----------------------------------------------


@jitted
def _clusters_of(prior, data, labels, n):
    """Clusters at their numbers, of which some may be empty."""
    clusters = new_clusters(prior, whole_blocks(n), new_numbers_of_sizes(labels.shape[0]))
    for k in range(n):
        members = np.flatnonzero(labels == k)
        clusters.sizes[k] = members.shape[0]
        if members.shape[0] > 0:
            cache = row_of(clusters.caches, k)
            fill_predictive(prior, stats_of(prior, data, members), cache)
            tabulate(prior, clusters, k)
    return clusters


@jitted
def _predictives(prior, data, i, clusters, n, own, drop=np.inf):
    out = np.full(whole_blocks(n), np.nan)
    keeps_digits = fill_log_predictives(prior, data, i, clusters, n, own, -np.inf, drop, out)
    return keeps_digits, out


@jitted
def _without(prior, data, labels, i, clusters):
    """By the operation on one cache, and from the other members."""
    cache = row_of(clusters.caches, labels[i])
    found = log_predictive_without(prior, data, i, cache, clusters.spare)
    scratch = np.empty(cache.shape[0])
    refill(prior, data, labels, labels[i], i, scratch)
    return found, scratch


def _labels_of(n_obs: int) -> np.ndarray:
    """Eleven numbers of clusters; one of these has no members, one has one, one has many."""
    labels = np.arange(n_obs) % 11
    labels[labels == 4] = 9
    labels[labels == 7] = 9
    labels[7] = 7
    return labels


def _twin_predictive(case: Case, i: int, members: np.ndarray) -> float:
    return float(case.twin.log_predictive(case.rows[i], case.rows[members]))


def _several_rows(n_features: int, rng: np.random.Generator) -> np.ndarray:
    rows = np.concatenate([rows_of("overlapping", n_features)] * 4)
    return rows + 0.3 * rng.standard_normal(rows.shape)


@over_cases
def test_all_predictives_match_the_twin(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, _several_rows(n_features, rng))
    n_obs = len(case.rows)
    labels = _labels_of(n_obs)
    n = labels.max() + 1
    clusters = _clusters_of(case.prior, case.data, labels, n)
    for i in range(0, n_obs, 5):
        own = labels[i] if (labels == labels[i]).sum() > 1 else -1
        keeps_digits, out = _predictives(case.prior, case.data, i, clusters, n, own)
        assert keeps_digits
        assert np.isfinite(out[:n]).all()
        for k in np.unique(labels):
            if k != own:
                twin = _twin_predictive(case, i, labels == k)
                assert out[k] == pytest.approx(twin, rel=1e-9, abs=1e-9)
        if own >= 0:
            twin = _twin_predictive(case, i, (labels == own) & (np.arange(n_obs) != i))
            assert out[own] == pytest.approx(twin, rel=1e-8, abs=1e-8)


@over_cases
def test_predictive_of_the_rest_leaves_the_cache_as_it_was(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, _several_rows(n_features, rng))
    labels = np.zeros(len(case.rows), int)
    clusters = _clusters_of(case.prior, case.data, labels, 1)
    before = [array.copy() for array in clusters[:3]]
    _, (density, *_) = _predictives(case.prior, case.data, 2, clusters, 1, 0)
    found, rest = _without(case.prior, case.data, labels, 2, clusters)
    assert found == pytest.approx(density, rel=1e-10)
    assert predictives(case.prior, case.data, rest)[2] == pytest.approx(density, rel=1e-10)
    size = predictive_size(case.prior)
    kept = slice(0, size - n_features if name == "MvNormal" else size)  # its cache has scratch
    np.testing.assert_array_equal(clusters.sizes, before[0])
    np.testing.assert_allclose(clusters.caches[:, kept], before[1][:, kept], rtol=1e-13)
    np.testing.assert_array_equal(clusters.table, before[2])


@pytest.mark.parametrize("name", ["DiagNormal", "MvNormal"])
def test_lost_digits_are_told(name: str, rng: np.random.Generator) -> None:
    """A row so far away that hardly anything is known of the others from their sum with it."""
    rows = _several_rows(3, rng)
    rows[5] += 1e6
    case = case_of(name, rows)
    labels = np.zeros(len(rows), int)
    clusters = _clusters_of(case.prior, case.data, labels, 1)
    assert not _predictives(case.prior, case.data, 5, clusters, 1, 0)[0]
    assert _predictives(case.prior, case.data, 6, clusters, 1, 0)[0]


# --- a scan -------------------------------------------------------------------------------


def _naive_scan(
    case: Case, law: PartitionLaw, clusters: list[set[int]], rng: np.random.Generator
) -> list[set[int]]:
    """Neal's algorithm 3 on sets; an empty set is a gap, which the next new cluster fills."""
    for i in range(len(case.rows)):
        (own,) = (p for p, members in enumerate(clusters) if i in members)
        masses = np.zeros(len(clusters) + 1)
        n_others = sum(len(members - {i}) > 0 for members in clusters)
        alone = _twin_predictive(case, i, np.zeros(0, int))
        new = np.exp(alone) * (law.strength + n_others * law.discount)
        for p, members in enumerate(clusters):
            others = np.array(sorted(members - {i}), int)
            if len(others):
                density = np.exp(_twin_predictive(case, i, others))
                masses[p] = (len(others) - law.discount) * density
        masses[-1] = new
        goal = chosen(masses, rng.random())
        if goal == own or (goal == len(clusters) and clusters[own] == {i}):
            continue
        if goal == len(clusters):
            empty = [p for p, members in enumerate(clusters) if not members]
            clusters = clusters if empty else [*clusters, set()]
            goal = empty[0] if empty else goal
        clusters[own].remove(i)
        clusters[goal].add(i)
    return clusters


def _placed(labels: np.ndarray, stats: np.ndarray) -> list[set[int]]:
    return [set(np.flatnonzero(labels == k).tolist()) for k in cluster_order(labels, stats)]


def _assert_numbered(labels: np.ndarray, clusters: list[set[int]]) -> None:
    """Clusters have the numbers of their positions, gaps left out."""
    occupied = [members for members in clusters if members]
    for k, members in enumerate(occupied):
        assert set(np.flatnonzero(labels == k).tolist()) == members
    assert labels.max() + 1 == len(occupied)


@over_cases_of_quick
def test_scan_draws_what_the_naive_scan_draws(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    """The same labels from the same uniforms; the clusters are numbered by their positions."""
    rows = _several_rows(n_features, rng)[:14]
    case = case_of(name, rows)
    law = PartitionLaw(0.4, 2.0)
    target = sampler.Target(case.prior, case.data, law)
    everyone = np.arange(len(rows))
    log_alone = log_densities_alone(case.prior, case.data, everyone)
    labels = (everyone % 5).astype(np.int32)
    stats = gather_stats(case.prior, case.data, labels, 5)
    ours, naive = np.random.default_rng(8), np.random.default_rng(8)
    for _ in range(2):
        sets = _placed(labels, stats)
        stats = collapsed_scan(target, labels, stats, ours, everyone, log_alone)
        _assert_numbered(labels, _naive_scan(case, law, sets, naive))
        fresh = gather_stats(case.prior, case.data, labels, labels.max() + 1)
        np.testing.assert_allclose(stats, fresh, rtol=1e-9, atol=1e-9)


def _scan_and_naive_scan(scan: Callable[..., np.ndarray]) -> tuple[np.ndarray, list[set[int]], int]:
    """Labels after a scan of triples, a naive scan by the same uniforms, and how many rows move."""
    rows, labels = triples_apart(np.random.default_rng(3))
    case, law = case_of("MvNormal", rows), PartitionLaw(0.0, 1.0)
    target, everyone = sampler.Target(case.prior, case.data, law), np.arange(len(rows))
    stats = gather_stats(case.prior, case.data, labels, 24)
    sets = _placed(labels, stats)
    log_alone = log_densities_alone(case.prior, case.data, everyone)
    scan(target, labels, stats, np.random.default_rng(8), everyone, log_alone)
    before = [members.copy() for members in sets]
    naive = _naive_scan(case, law, sets, np.random.default_rng(8))
    return labels, naive, sum(len(then - now) for then, now in zip(before, naive, strict=False))


def test_scan_with_far_clusters_draws_what_the_naive_scan_draws() -> None:
    labels, naive, n_moved = _scan_and_naive_scan(collapsed_scan)
    assert n_moved > 40
    _assert_numbered(labels, naive)


@pytest.mark.control
def test_scan_by_bounds_draws_other_labels() -> None:
    labels, naive, _ = _scan_and_naive_scan(scan_of_bounds(-30.0, finishes=False))
    with pytest.raises(AssertionError):
        _assert_numbered(labels, naive)


@pytest.mark.parametrize(("name", "n_features"), [("MvNormal", 9), ("DiagNormal", 18)])
def test_far_clusters_are_left_unfinished_and_near_ones_are_not(name: str, n_features: int) -> None:
    rows, numbers = triples_apart(np.random.default_rng(3), n_features)
    case, labels = case_of(name, rows), numbers % 8 * 3 + numbers // 8
    clusters = _clusters_of(case.prior, case.data, labels, 24)
    n_unfinished = 0
    for i in range(len(rows)):
        own = int(labels[i])
        _, exact = _predictives(case.prior, case.data, i, clusters, 24, own)
        _, found = _predictives(case.prior, case.data, i, clusters, 24, own, 20.0)
        is_far = exact < exact[own] - 20.0
        np.testing.assert_allclose(found[~is_far], exact[~is_far], rtol=1e-12)
        assert (found >= exact - 1e-9).all()
        assert (found[is_far] < exact[own] - 20.0).all()
        n_unfinished += (found[is_far] > exact[is_far] + 1e-9).sum()
    assert n_unfinished > 0.1 * 24 * len(rows)


@pytest.mark.parametrize(("name", "n_features"), [("Normal", 1), ("MvNormal", 2), ("Poisson", 2)])
def test_sweeps_keep_the_positions_until_they_are_made_anew(
    name: str, n_features: int, rng: np.random.Generator
) -> None:
    case = case_of(name, _several_rows(n_features, rng)[:9])
    law, n_obs = PartitionLaw(0.4, 2.0), len(case.rows)
    target = sampler.Target(case.prior, case.data, law)
    labels = (np.arange(n_obs) % 3).astype(np.int32)
    stats = gather_stats(case.prior, case.data, labels, 3)
    ours, naive = np.random.default_rng(8), np.random.default_rng(8)
    sets = _placed(labels, stats)
    n_sweeps = SWEEPS_UNTIL_FRESH + 2
    for sweep in range(n_sweeps):
        if sweep == SWEEPS_UNTIL_FRESH:
            numbered = np.empty(n_obs, np.int32)
            for k, members in enumerate(members for members in sets if members):
                numbered[sorted(members)] = k
            sets = _placed(numbered, gather_stats(*target[:2], numbered, numbered.max() + 1))
        sets = _naive_scan(case, law, sets, naive)
    schedule = sampler.Schedule(n_sweeps, 0.0, np.empty(0, np.int64))
    state = sampler.ChainState(labels, stats)
    labels, stats = sampler.advance("collapsed", target, state, ours, schedule)[0][:2]
    _assert_numbered(labels, sets)
    np.testing.assert_array_equal(
        stats, gather_stats(case.prior, case.data, labels, labels.max() + 1)
    )


@pytest.mark.parametrize("name", ["DiagNormal", "MvNormal"])
def test_scan_has_room_for_many_clusters(name: str, rng: np.random.Generator) -> None:
    """From one cluster, with a concentration under which nearly every row is alone."""
    rows = 50.0 * rng.standard_normal((60, 3))
    case = case_of(name, rows)
    target = sampler.Target(case.prior, case.data, PartitionLaw(0.0, 1e30))
    labels, everyone = np.zeros(60, np.int32), np.arange(60)
    stats = gather_stats(case.prior, case.data, labels, 1)
    log_alone = log_densities_alone(case.prior, case.data, everyone)
    stats = collapsed_scan(target, labels, stats, rng, everyone, log_alone)
    assert len(stats) > 40
    np.testing.assert_array_equal(np.bincount(labels), stats[:, 0])
    labels[:] = 0
    stats = gather_stats(case.prior, case.data, labels, 1)
    stats = collapsed_sweep(target, labels, stats, rng)
    assert len(stats) > 40
    np.testing.assert_array_equal(np.bincount(labels), stats[:, 0])


def test_row_that_hides_the_others_is_drawn_from_them(rng: np.random.Generator) -> None:
    """A cluster of rows nearby and one at 1e6, whose mass needs the members themselves."""
    rows = rng.standard_normal((12, 2))
    rows[4] = 1e6
    case = case_of("MvNormal", rows)
    target = sampler.Target(case.prior, case.data, PartitionLaw(0.0, 1.0))
    labels, listed = np.zeros(12, np.int32), np.array([4])
    stats = gather_stats(case.prior, case.data, labels, 1)
    log_alone = log_densities_alone(case.prior, case.data, listed)
    stats = collapsed_scan(target, labels, stats, rng, listed, log_alone)
    assert (labels == labels[4]).sum() == 1
    fresh = gather_stats(case.prior, case.data, labels, len(stats))
    np.testing.assert_array_equal(stats[:, 0], fresh[:, 0])


@pytest.mark.parametrize(
    "rows", [[1, 4, 6] * 3, [3, 3, 3], [2, 5, 2, 7, 2, 5], [4, 1, 4, 1, 0, 4], []]
)
def test_densities_of_a_list_are_those_of_its_observations(
    rows: list[int], rng: np.random.Generator
) -> None:
    """Whether the list is repeated, in part, or returns to its first observation in another way."""
    case = case_of("MvNormal", rng.standard_normal((8, 2)))
    one_by_one = log_densities_alone(case.prior, case.data, np.arange(8))
    listed = np.array(rows, np.int64)
    found = log_densities_alone(case.prior, case.data, listed)
    np.testing.assert_array_equal(found, one_by_one[listed])


def test_a_window_is_successive_and_begins_anywhere(rng: np.random.Generator) -> None:
    drawn = [successive_rows(5, 3, rng) for _ in range(200)]
    assert {tuple(rows) for rows in drawn} == {
        tuple((first + np.arange(3)) % 5) for first in range(5)
    }


def test_a_long_window_is_several_passes(rng: np.random.Generator) -> None:
    np.testing.assert_array_equal(successive_rows(4, 4, rng), np.arange(4))
    rows = successive_rows(4, 9, rng)
    np.testing.assert_array_equal(rows, (rows[0] + np.arange(9)) % 4)
