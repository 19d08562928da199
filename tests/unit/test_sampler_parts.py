"""The parts that moves are made of, each on its own: bookkeeping exactly, laws of draws tested."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.collapsed.scan_list import (
    choose_scan_list,
    expected_births_in_sweeps,
    likeliest_founders,
    log_founding_odds,
    members_of_tiny_clusters,
)
from pymc_dpsplit.moves.forward import (
    draw_block_sizes,
    draw_new_weight,
    draw_occupied_weights,
    draw_seating,
)
from pymc_dpsplit.moves.measure import break_remainder, draw_measure
from pymc_dpsplit.moves.partition import (
    apply_merge,
    apply_split,
    entropy,
    gather_stats,
    log_joint,
    members_of,
)
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.split_merge.allocation import allocate, order_by_block
from pymc_dpsplit.moves.split_merge.division import no_anchors
from pymc_dpsplit.moves.split_merge.launch import fill_log_odds, fit_pair
from pymc_dpsplit.moves.split_merge.selection import (
    draw_cluster,
    draw_pair,
    log_marginals,
    log_pair_probability,
)
from pymc_dpsplit.moves.start import draw_n_start
from pymc_dpsplit.moves.sweep import threaded_sweep as by_threads
from pymc_dpsplit.moves.sweep.assignment import (
    is_renumbered,
    slice_sweep,
    strip_bounds,
    strip_count,
    total_strips,
)
from pymc_dpsplit.moves.sweep.density import fill_log_mixture, log_prior_predictive
from pymc_dpsplit.moves.sweep.redraw import redraw_labels
from tests.support.families import component_of, target_of, twin_of
from tests.support.moves import MOVES, sweep, threaded_sweep
from tests.support.partitions import crp_n_clusters, enumerate_partitions, partition_index
from tests.support.quick import COMPILED_FAMILY, QUICK_MOVE, slow_unless
from tests.support.statistics import LEVEL, combine, partition_test, two_sample_test

N_DRAWS = 20_000
ALPHA = 1.3


def target_for(rows: np.ndarray, family: str = "MvNormal", alpha: float = ALPHA) -> sampler.Target:
    """Target of a family with its test hyperparameters."""
    return target_of(component_of(family, rows.shape[1]), rows, alpha)


def cloud(rng: np.random.Generator, n_obs: int, n_features: int = 2) -> np.ndarray:
    """Rows in three groups that touch."""
    centres = 2.0 * rng.standard_normal((3, n_features))
    return centres[rng.integers(3, size=n_obs)] + rng.standard_normal((n_obs, n_features))


def state_of(target: sampler.Target, n_clusters: int) -> sampler.ChainState:
    """Observations dealt to clusters in turn, the first cluster twice as often."""
    dealt = np.arange(len(target.data)) % (n_clusters + 1) % n_clusters
    return sampler.resume(target, dealt)


def stream_of(rng: np.random.Generator) -> np.ndarray:
    """Stream of a key from the generator."""
    return new_stream(np.uint64(draw_key(rng)))


def assert_sound(target: sampler.Target, state: sampler.ChainState) -> None:
    """Labels are 0 .. K - 1, all occupied, and statistics are those of the labels."""
    n_clusters = len(state.stats)
    assert state.labels.min() == 0
    sizes = np.bincount(state.labels, minlength=n_clusters)
    assert len(sizes) == n_clusters
    assert sizes.min() > 0
    np.testing.assert_array_equal(state.stats[:, 0], sizes)
    fresh = gather_stats(target.prior, target.data, state.labels, n_clusters)
    np.testing.assert_allclose(state.stats, fresh, rtol=1e-9, atol=1e-9)


# --- bookkeeping --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes",
    [range(1, 400), range(4000, 4200), range(8100, 8300), [65_535, 65_536, 100_001, 10**6 + 1]],
    ids=str,
)
def test_strips_cover_everything_once(sizes: range | list[int]) -> None:
    for n_obs in sizes:
        bounds = [strip_bounds(n_obs, strip) for strip in range(strip_count(n_obs))]
        assert bounds[0][0] == 0
        assert bounds[-1][1] == n_obs
        for (start, stop), (following, _) in pairwise(bounds):
            assert start < stop == following
            assert stop % TILE == 0


def test_totals_leave_out_atoms_without_observations(rng: np.random.Generator) -> None:
    strip_stats = rng.standard_normal((3, 5, 4))
    strip_stats[:, :, 0] = rng.integers(1, 9, (3, 5))
    strip_stats[:, [1, 4]] = strip_stats[0, 2] = 0.0
    totals, renumbered = total_strips(strip_stats)
    np.testing.assert_array_equal(renumbered, [0, -1, 1, 2, -1])
    np.testing.assert_allclose(totals, strip_stats.sum(0)[[0, 2, 3]], rtol=1e-13)
    assert is_renumbered(renumbered, 3)
    # Atoms that were last leave the others their numbers.
    same, renumbered = total_strips(strip_stats[:, [0, 2, 3, 4]])
    np.testing.assert_array_equal(same, totals)
    assert not is_renumbered(renumbered, 3)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("least_shared", [0, 10**9])
@pytest.mark.parametrize("family", ["MvNormal", "DiagNormal"])
def test_threads_change_nothing(
    family: str, least_shared: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_threads, "_LEAST_SHARED", least_shared)
    target = target_for(cloud(rng, 20_000), family)
    assert strip_count(20_000) > 1
    state = state_of(target, 4)
    for seed in range(3):
        alone = sweep(slice_sweep)(target, state, np.random.default_rng(seed))
        shared = threaded_sweep(target, state, np.random.default_rng(seed))
        np.testing.assert_array_equal(alone.labels, shared.labels)
        np.testing.assert_array_equal(alone.stats, shared.stats)
        state = alone


def test_each_sweep_in_threads_is_chosen_by_the_present_law(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on one thread: the strength may leave the range of sweeps with sticks within a draw."""
    target, made = target_for(cloud(rng, 40), "DiagNormal"), []
    breaks = iter([True, True, False, True])  # the first one chooses to use threads at all
    monkeypatch.setattr(sampler, "strip_count", lambda _: 2)
    monkeypatch.setattr(sampler, "breaks_sticks", lambda *_: next(breaks))

    def with_sticks(target: Any, labels: Any, stats: Any, rng: Any, atoms: Any, pool: Any) -> Any:
        made.append("sticks")
        return stats, atoms

    def without(target: Any, labels: Any, stats: Any, rng: Any) -> Any:
        made.append("collapsed")
        return stats

    monkeypatch.setattr(sampler, "threaded_sweep", with_sticks)
    monkeypatch.setattr(sampler, "collapsed_sweep", without)
    schedule = sampler.Schedule(3, 0.0, np.empty(0, np.int64))
    with ThreadPoolExecutor(1) as pool:
        sampler.advance("exact", target, state_of(target, 3), rng, schedule, pool)
    assert made == ["sticks", "collapsed", "sticks"]


@pytest.mark.compiled
@pytest.mark.parametrize("family", slow_unless(COMPILED_FAMILY.__eq__, ["MvNormal", "DiagNormal"]))
@pytest.mark.parametrize("name", slow_unless(QUICK_MOVE.__eq__, MOVES))
def test_statistics_follow_the_labels(name: str, family: str, rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 200), family)
    state = sampler.start(target, rng, 6)
    n_changes = 0
    for _ in range(100):
        before = state.labels.copy()
        following = MOVES[name](target, state, rng)
        np.testing.assert_array_equal(state.labels, before)  # the state given stays as it was
        state = following
        assert_sound(target, state)
        n_changes += not np.array_equal(state.labels, before)
    assert n_changes > 0


def test_split_and_merge_are_inverse(rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 60))
    for a, b in combinations(range(4), 2):
        state = state_of(target, 4)
        labels = state.labels.copy()
        merged = apply_merge(labels, state.stats, b, a)
        assert_sound(target, sampler.ChainState(labels, merged))
        members = members_of(labels, merged, a, a)
        side = (state.labels[members] == b).astype(np.int8)
        again = apply_split(labels, merged, a, members, side, state.stats[a], state.stats[b])
        assert_sound(target, sampler.ChainState(labels, again))
        assert partition_of(labels) == partition_of(state.labels)


def partition_of(labels: np.ndarray) -> set[frozenset[int]]:
    """Blocks of a partition."""
    return {frozenset(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels)}


def test_members_are_in_ascending_order(rng: np.random.Generator) -> None:
    state = state_of(target_for(cloud(rng, 40)), 3)
    one = members_of(state.labels, state.stats, 1, 1)
    both = members_of(state.labels, state.stats, 2, 0)
    np.testing.assert_array_equal(one, np.flatnonzero(state.labels == 1))
    np.testing.assert_array_equal(both, np.flatnonzero(state.labels != 1))


@pytest.mark.parametrize("n_start", [None, 1, 7, 200])
def test_start_is_a_valid_partition(n_start: int | None, rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 120))
    for _ in range(5):
        state = sampler.start(target, rng, n_start)
        assert_sound(target, state)
        assert len(state.stats) <= (n_start or 50)
    assert n_start != 1 or len(state.stats) == 1


@pytest.mark.parametrize("n_obs", [1, 6, 1000])
def test_number_of_starting_clusters_is_log_uniform(n_obs: int, rng: np.random.Generator) -> None:
    most = min(50, n_obs)
    draws = np.array([draw_n_start(rng, n_obs) for _ in range(N_DRAWS)])
    assert draws.min() >= 1
    assert draws.max() <= most
    expected = np.diff(np.log(np.arange(1, most + 2))) / math.log(most + 1)
    if most > 1:
        counts = np.bincount(draws - 1, minlength=most)
        assert stats.chisquare(counts, N_DRAWS * expected).pvalue > LEVEL
        assert stats.chisquare(counts).pvalue < LEVEL


def test_joint_density_and_entropy_match_the_twin(rng: np.random.Generator) -> None:
    rows = cloud(rng, 30)
    state = state_of(target := target_for(rows), 4)
    twin, sizes = twin_of("MvNormal", 2), np.bincount(state.labels)
    expected = special.gammaln(ALPHA) - special.gammaln(ALPHA + 30) + 4 * math.log(ALPHA)
    expected += sum(special.gammaln(n) for n in sizes)
    expected += sum(twin.log_marginal(rows[state.labels == k]) for k in range(4))
    assert log_joint(target, state.stats) == pytest.approx(expected, rel=1e-10)
    assert entropy(state.stats) == pytest.approx(stats.entropy(sizes))


# --- allocation ---------------------------------------------------------------------------


def test_blocks_are_a_fixed_partition_of_the_members(rng: np.random.Generator) -> None:
    members = np.sort(rng.choice(10**6, 40_000, replace=False))
    ordered, bounds = order_by_block(members)
    np.testing.assert_array_equal(np.sort(ordered), members)
    some = np.sort(rng.choice(members, 1000, replace=False))
    fewer, fewer_bounds = order_by_block(some)
    for b in range(len(bounds) - 1):
        block = fewer[fewer_bounds[b] : fewer_bounds[b + 1]]
        # A member stays in its block whoever else is there, and blocks keep their order.
        whole = ordered[bounds[b] : bounds[b + 1]]
        np.testing.assert_array_equal(block, np.intersect1d(whole, some))
    counts = np.diff(bounds)
    assert stats.chisquare(counts, np.array([0.25, 0.25, 0.5]) * len(members)).pvalue > LEVEL
    assert stats.chisquare(counts).pvalue < LEVEL


@jitted
def frequencies(prior, data, members, bounds, anchors, log_shares, params, n_draws, stream):
    """Draw divisions: their numbers in binary, (n_draws,), and the log probabilities given."""
    cells, log_q = np.empty(n_draws, np.int64), np.empty(n_draws)
    side = np.empty(members.shape[0], np.int8)
    for s in range(n_draws):
        _, log_q[s], _ = allocate(
            prior, data, members, bounds, anchors,
            log_shares.copy(), params.copy(), side, True, stream,
        )  # fmt: skip
        cells[s] = 0
        for j in range(side.shape[0]):
            cells[s] += np.int64(side[j]) << j
    return cells, log_q


class Divider:
    """Six members, at least one in each block, and a pair of clusters to start from."""

    def __init__(self, rng: np.random.Generator, anchored: bool = False) -> None:
        self.target = target_for(1.2 * rng.standard_normal((40, 2)))
        ordered, bounds = order_by_block(np.arange(40))
        chosen = np.concatenate([ordered[start : start + 2] for start in bounds[:-1]])
        self.members, self.bounds = order_by_block(np.sort(chosen))
        self.anchors = self.members[[1, 4]] if anchored else no_anchors()
        self.stream = stream_of(rng)
        pair = gather_stats(
            self.target.prior, self.target.data[-5:], np.array([0, 0, 0, 1, 1], np.int32), 2
        )
        self.launched = np.empty(2), np.empty((2, 1 + 2 + 4))
        fit_pair(self.target.prior, pair, *self.launched)

    def inputs(self) -> tuple[Any, ...]:
        """Arguments of `allocate` up to the parameters, copied where it writes."""
        log_shares, params = self.launched
        first = (self.target.prior, self.target.data, self.members, self.bounds, self.anchors)
        return *first, log_shares.copy(), params.copy()

    def evaluate(self, side: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Statistics and log probabilities of given sides."""
        return allocate(*self.inputs(), side.astype(np.int8), False, self.stream)

    def sides(self) -> np.ndarray:
        """Every division of the members, (64, 6); those against the anchors are left out."""
        every = np.arange(64)[:, None] >> np.arange(6) & 1
        for side, anchor in enumerate(self.anchors):
            every = every[np.all(every[:, self.members == anchor] == side, axis=1)]
        return every


@pytest.mark.parametrize("anchored", [False, True])
def test_division_probabilities_sum_to_one(anchored: bool, rng: np.random.Generator) -> None:
    divider = Divider(rng, anchored)
    assert np.all(np.diff(divider.bounds) == 2)
    every = divider.sides()
    assert len(every) == (16 if anchored else 64)
    total = sum(math.exp(divider.evaluate(side)[1]) for side in every)
    assert total == pytest.approx(1.0, rel=1e-12)


def test_swapped_probability_is_that_of_the_swapped_sides(rng: np.random.Generator) -> None:
    divider = Divider(rng)
    for side in divider.sides():
        _, log_q, log_q_swapped = divider.evaluate(side)
        _, swapped, swapped_back = divider.evaluate(1 - side)
        assert log_q_swapped == pytest.approx(swapped, rel=1e-10)
        assert swapped_back == pytest.approx(log_q, rel=1e-10)
    assert log_q_swapped != pytest.approx(log_q, rel=1e-3)


def test_division_statistics_are_those_of_the_sides(rng: np.random.Generator) -> None:
    divider = Divider(rng, anchored=True)
    prior, data = divider.target.prior, divider.target.data
    for side in divider.sides():
        pair = divider.evaluate(side)[0]
        expected = gather_stats(prior, data[divider.members], side.astype(np.int32), 2)
        np.testing.assert_allclose(pair, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("anchored", [False, True])
def test_divisions_are_drawn_with_their_probability(
    anchored: bool, rng: np.random.Generator
) -> None:
    divider = Divider(rng, anchored)
    cells, log_q = frequencies(*divider.inputs(), N_DRAWS, stream_of(rng))
    law, swapped = np.zeros(64), np.zeros(64)
    for side in divider.sides():
        cell = side @ (1 << np.arange(6))
        _, log_p, log_p_swapped = divider.evaluate(side)
        law[cell], swapped[cell] = math.exp(log_p), math.exp(log_p_swapped)
    np.testing.assert_allclose(log_q, np.log(law[cells]), rtol=1e-10)
    assert partition_test(cells.reshape(100, -1), law) > LEVEL
    if not anchored:
        assert partition_test(cells.reshape(100, -1), swapped) < LEVEL


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.control
def test_division_by_the_launch_alone_is_caught(rng: np.random.Generator) -> None:
    """A control: later blocks do follow the blocks before, not the launch."""
    divider = Divider(rng)
    prior, data, members, _, _, log_shares, params = divider.inputs()
    rows = np.full(TILE, members[0])
    rows[:6] = members
    odds, tile = np.empty(TILE), np.zeros(2 * TILE)
    fill_log_odds(prior, data, rows, log_shares, params, odds, tile, np.empty(5 * TILE))
    second = special.expit(-odds[:6])
    every = divider.sides()
    law = np.prod(np.where(every == 1, second, 1.0 - second), axis=1)
    cells, _ = frequencies(*divider.inputs(), N_DRAWS, stream_of(rng))
    assert partition_test(cells.reshape(100, -1), law) < LEVEL


# --- selection ----------------------------------------------------------------------------


@jitted
def pairs_drawn(prior, labels, statistics, log_m, n_draws, stream):
    """Pairs drawn, as K times the smaller plus the larger cluster."""
    out = np.empty(n_draws, np.int64)
    for s in range(n_draws):
        a, b = draw_pair(prior, labels, statistics, log_m, stream)
        out[s] = statistics.shape[0] * min(a, b) + max(a, b)
    return out


def test_pairs_are_drawn_with_their_probability(rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 60))
    labels = np.argsort(np.argsort(target.data[:, 0])) // 12  # in slices: some pairs go together
    labels, statistics = sampler.resume(target, labels)[:2]
    log_m = log_marginals(target.prior, statistics)
    law = np.zeros(25)
    for a, b in combinations(range(5), 2):
        log_p = log_pair_probability(target.prior, statistics, log_m, a, b)
        assert log_p == pytest.approx(
            log_pair_probability(target.prior, statistics, log_m, b, a), rel=1e-12
        )
        law[5 * a + b] = math.exp(log_p)
    assert law.sum() == pytest.approx(1.0, rel=1e-12)
    arguments = (target.prior, labels, statistics, log_m, N_DRAWS, stream_of(rng))
    draws = pairs_drawn(*arguments).reshape(100, -1)
    assert partition_test(draws, law) > LEVEL
    assert partition_test(draws, np.where(law > 0.0, 0.1, 0.0)) < LEVEL  # control: uniform


def test_clusters_are_drawn_by_size(rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 40))
    state = state_of(target, 3)
    stream = stream_of(rng)
    draws = np.array([draw_cluster(target, *state[:2], stream) for _ in range(4000)])
    counts = np.bincount(draws, minlength=3)
    assert stats.chisquare(counts, state.stats[:, 0] / 40 * len(draws)).pvalue > LEVEL
    assert stats.chisquare(counts).pvalue < LEVEL


# --- the random measure -------------------------------------------------------------------


def measures(
    target: sampler.Target, statistics: np.ndarray, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Weights with the remainder last, (n_draws, K + 1)."""
    out = np.empty((n_draws, len(statistics) + 1))
    for row in out:
        log_weights, log_rest, _ = draw_measure(target, statistics, rng)
        row[:-1], row[-1] = np.exp(log_weights), np.exp(log_rest)
    return out


def beta_p_value(shares: np.ndarray, masses: np.ndarray) -> float:
    """P-value of shares (R, K) against the marginals of a Dirichlet law."""
    total = masses.sum()
    laws = (stats.beta(mass, total - mass) for mass in masses)
    return combine(
        *(stats.kstest(x, law.cdf).pvalue for x, law in zip(shares.T, laws, strict=True))
    )


@pytest.mark.parametrize("alpha", [0.05, ALPHA, 20.0])
def test_weights_are_dirichlet(alpha: float, rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 12), alpha=alpha)
    statistics = state_of(target, 3).stats
    shares = measures(target, statistics, 4000, rng)
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-12)
    masses = np.append(statistics[:, 0], alpha)
    assert beta_p_value(shares, masses) > LEVEL
    assert beta_p_value(shares, masses + 0.2 * alpha + 0.3) < LEVEL  # control


@pytest.mark.parametrize("alpha", [1e-3, ALPHA, 50.0])
def test_sticks_leave_less_than_asked(alpha: float, rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 12), alpha=alpha)
    statistics = state_of(target, 3).stats
    log_floor = math.log(1e-4)
    for _ in range(50):
        log_weights, log_rest, params = draw_measure(target, statistics, rng)
        broken, atoms, _ = break_remainder(target, rng, log_weights, log_rest, params, log_floor)
        np.testing.assert_array_equal(broken[:3], log_weights)
        np.testing.assert_array_equal(atoms[:3], params)
        assert len(broken) == len(atoms)
        mass = np.exp(broken)
        assert -1e-12 < 1.0 - mass.sum() < 1e-4
        # No stick more than needed: before the last, more was left.
        assert len(mass) == 3 or 1.0 - mass[:-1].sum() >= 1e-4 * (1.0 - 1e-6)


@pytest.mark.compiled
def test_sticks_are_beta(rng: np.random.Generator) -> None:
    target = target_for(cloud(rng, 12), alpha=2.5)
    nothing = np.empty(0), np.empty((0, 7))
    shares = []
    for _ in range(4000):
        sticks = np.exp(break_remainder(target, rng, nothing[0], 0.0, nothing[1], -12.0)[0])
        shares.append([sticks[0], sticks[1] / (1.0 - sticks[0])])
    columns = np.array(shares).T
    p_values = [stats.kstest(x, stats.beta(1, 2.5).cdf).pvalue for x in columns]
    assert combine(*p_values) > LEVEL
    assert stats.kstest(columns[0], stats.beta(1, 3.0).cdf).pvalue < LEVEL
    assert stats.pearsonr(*columns).pvalue > LEVEL


@pytest.mark.parametrize("log_rest", [-np.inf, math.log(0.3)])
@pytest.mark.parametrize("n_obs", [1, TILE, TILE + 3])
def test_mixture_density_matches_the_twin(
    n_obs: int, log_rest: float, rng: np.random.Generator
) -> None:
    rows = cloud(rng, n_obs)
    target, component, twin = target_for(rows), component_of("MvNormal", 2), twin_of("MvNormal", 2)
    drawn = component.draw_base(rng, component.check(component.hyperparameters, 2), 3)
    log_weights = np.log([0.3, 0.25, 0.15])
    out = np.empty(n_obs)
    params = component.pack(drawn, rows.mean(0))
    alone = log_prior_predictive(target.prior, target.data)
    fill_log_mixture(target.prior, target.data, alone, log_weights, params, log_rest, out)
    terms = [
        log_weights[k] + twin.log_density(rows, {key: v[k] for key, v in drawn.items()})
        for k in range(3)
    ]
    terms.append(log_rest + np.array([twin.log_predictive(row, rows[:0]) for row in rows]))
    np.testing.assert_allclose(out, special.logsumexp(terms, axis=0), rtol=1e-9, atol=1e-9)


# --- labels redrawn from a measure ---------------------------------------------------------


@jitted
def redrawn(target, log_weights, log_rest, params, n_draws, rng):
    """Labels redrawn from one measure, again and again, (n_draws, N)."""
    log_alone = log_prior_predictive(target.prior, target.data)
    out = np.empty((n_draws, target.data.shape[0]), np.int64)
    for s in range(n_draws):
        redraw_labels(target, out[s], rng, log_alone, log_weights, log_rest, params)
    return out


def redrawn_from(
    log_rest: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of three points given two known atoms, with weighted densities and the points."""
    rows, alpha = np.array([[-0.9], [0.4], [1.5]]), 1.5
    component, target = component_of("Normal", 1), target_for(rows, "Normal", alpha)
    atoms = {"mu": np.array([-1.0, 1.0]), "sigma": np.array([0.7, 0.9])}
    weights = np.array([0.35, 0.25])
    params = component.pack(atoms, rows.mean(0))
    log_weights = np.log(weights)
    labels = redrawn(target, log_weights, log_rest, params, N_DRAWS, rng)
    return labels, weights * stats.norm.pdf(rows, atoms["mu"], atoms["sigma"]), rows


def test_a_point_that_fits_no_known_atom_is_refused(rng: np.random.Generator) -> None:
    """The remainder would be broken into sticks without end."""
    target = target_for(np.array([[-0.9], [1e9]]), "Normal", 1.5)
    atoms = {"mu": np.array([-1.0]), "sigma": np.array([1e-3])}
    params = component_of("Normal", 1).pack(atoms, target.prior.shift)
    alone = log_prior_predictive(target.prior, target.data)
    with pytest.raises(ValueError, match="an observation has hardly any density"):
        redraw_labels(target, np.zeros(2, int), rng, alone, np.log([0.9]), np.log(0.1), params)


def rest_densities(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Density of the points under the whole remainder, (5000, N), by sticks in plain NumPy."""
    twin, nobody = twin_of("Normal", 1), np.empty((0, 1))
    left = rng.random((5000, 50)) ** (1.0 / 1.5)  # 1 - Beta(1, 1.5)
    before = np.cumprod(np.column_stack([np.ones(len(left)), left[:, :-1]]), axis=1)
    atoms = twin.draw_parameters(rng, nobody, left.size)
    mu, sigma = (atoms[key].reshape(left.shape) for key in ("mu", "sigma"))
    mass = before * (1.0 - left)
    return np.stack([(mass * stats.norm.pdf(x, mu, sigma)).sum(1) for x in rows[:, 0]], axis=1)


def responsibilities_p_value(labels: np.ndarray, exact: np.ndarray) -> float:
    """P-value of labels (R, N), those beyond the known atoms as one, given draws of their law.

    Given the occupied part alone the law is an average over sticks: `exact` (R', N, 3) holds
    draws of it, which have an error of their own.
    """
    p_values = []
    for k in range(3):
        law = exact[:, :, k].mean(0)
        gap = (np.minimum(labels, 2) == k).mean(0) - law
        error = np.sqrt(law * (1.0 - law) / len(labels) + exact[:, :, k].var(0) / len(exact))
        p_values.append(2.0 * stats.norm.sf(np.abs(gap) / error))
    return combine(*p_values)


@pytest.mark.slow
@pytest.mark.compiled
def test_redrawn_labels_have_their_responsibilities(rng: np.random.Generator) -> None:
    labels, known, rows = redrawn_from(math.log(0.4), rng)
    unknown = 0.4 * rest_densities(rows, rng)
    every = np.broadcast_to(known, (len(unknown), *known.shape))
    mass = np.concatenate([every, unknown[:, :, None]], axis=2)
    exact = mass / mass.sum(2, keepdims=True)
    assert responsibilities_p_value(labels, exact) > LEVEL
    among_occupied = redrawn_from(-np.inf, rng)[0]
    assert among_occupied.max() < 2
    assert responsibilities_p_value(among_occupied, exact) < LEVEL


def test_rest_density_averages_to_the_prior_predictive(rng: np.random.Generator) -> None:
    """The mixture density has the remainder times the prior predictive: its mean over sticks."""
    rows = np.array([[-0.9], [0.4], [1.5]])
    target = target_for(rows, "Normal")
    draws = rest_densities(rows, rng)
    gap = draws.mean(0) - np.exp(log_prior_predictive(target.prior, target.data))
    error = draws.std(0) / math.sqrt(len(draws))
    assert combine(2.0 * stats.norm.sf(np.abs(gap) / error)) > LEVEL


def one_redraw(
    forget_rest: bool, n_replicates: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of labels before and after: data forward from the prior, a measure, a redraw."""
    component = component_of("Normal", 1)
    values = component.check(component.hyperparameters, 1)
    before, after = [], []
    for _ in range(n_replicates):
        labels = draw_seating(rng, ALPHA, 12)
        drawn = component.draw_base(rng, values, labels.max() + 1)
        rows = component.draw_rows(rng, drawn, labels)[:, None]
        target = target_for(rows, "Normal")
        state = sampler.resume(target, labels)
        log_weights, log_rest, params = draw_measure(target, state.stats, rng)
        rest = -np.inf if forget_rest else log_rest
        again = redrawn(target, log_weights, rest, params, 1, rng)[0]
        before.append(shape_of(target, labels))
        after.append(shape_of(target, again))
    return np.array(before), np.array(after)


def shape_of(target: sampler.Target, labels: np.ndarray) -> list[float]:
    """Functions of the partition and the data that ignore how clusters are numbered."""
    state = sampler.resume(target, np.unique(labels, return_inverse=True)[1])
    return [
        float(len(state.stats)),
        state.stats[:, 0].max(),
        float(labels[0] == labels[1]),
        log_joint(target, state.stats),
    ]


@pytest.mark.slow
@pytest.mark.compiled
def test_redraw_keeps_the_joint_law(rng: np.random.Generator) -> None:
    assert two_sample_test(*one_redraw(False, 3000, rng)) > LEVEL


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.control
def test_redraw_among_the_occupied_is_caught(rng: np.random.Generator) -> None:
    assert two_sample_test(*one_redraw(True, 3000, rng)) < LEVEL


# --- the observations to visit ------------------------------------------------------------


@pytest.mark.parametrize("covered", [0.95, 0.99])
@pytest.mark.parametrize("most", [0, 1, 20, 499, 500, 10_000])
def test_list_has_the_likeliest_founders(
    most: int, covered: float, rng: np.random.Generator
) -> None:
    odds = 3.0 * rng.standard_normal(500)
    ranked, births = np.argsort(-odds), np.sort(special.expit(odds))[::-1]
    enough = np.searchsorted(np.cumsum(births), covered * births.sum()) + 1
    scan_list = choose_scan_list(odds, most, covered)
    np.testing.assert_array_equal(scan_list, np.sort(ranked[: min(most, enough)]))
    np.testing.assert_array_equal(likeliest_founders(odds, most), np.sort(ranked[:most]))


def test_members_of_tiny_clusters_are_found() -> None:
    labels = np.array([0] * 9 + [1] * 4 + [2] + [3] * 3 + [0, 2], np.int32)
    stats = np.bincount(labels)[:, None].astype(float)  # sizes 10, 4, 2 and 3
    found = members_of_tiny_clusters(labels, stats, 3, 100)
    np.testing.assert_array_equal(found, [13, 14, 15, 16, 18])
    assert set(members_of_tiny_clusters(labels, stats, 3, 3)) > {13, 18}
    assert len(members_of_tiny_clusters(labels, stats, 3, 0)) == 0
    assert len(members_of_tiny_clusters(labels, stats, 1, 100)) == 0


@pytest.mark.parametrize("extreme", [-1e5, 0.0, 1e5])
def test_focus_bears_extreme_odds(extreme: float) -> None:
    scan_list = choose_scan_list(np.full(10, extreme), 4, 0.95)
    assert len(scan_list) <= 4
    assert np.all(np.diff(scan_list) > 0)


def test_founding_odds_match_the_twin(rng: np.random.Generator) -> None:
    rows = cloud(rng, 60)
    target, twin = target_for(rows), twin_of("MvNormal", 2)
    # The second cluster has fewer members than statistics, so it does not count.
    state = sampler.resume(target, np.r_[np.zeros(30, int), np.ones(3, int), np.full(27, 2)])
    joined = [np.log(len(members)) + twin.log_density(rows, plug_in(twin, members))
              for members in (rows[:30], rows[33:])]  # fmt: skip
    alone = np.array([twin.log_predictive(row, rows[:0]) for row in rows])
    expected = math.log(ALPHA) + alone - special.logsumexp(joined, axis=0)
    found = log_founding_odds(target, state.stats)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_births_of_sweeps_match_the_twin(rng: np.random.Generator) -> None:
    rows = cloud(rng, 20)
    target, twin = target_for(rows), twin_of("MvNormal", 2)
    log_odds, founders = rng.normal(-2.0, 1.5, size=20), np.array([3, 4, 17])
    found = [
        expected_births_in_sweeps(target, log_odds, founders, 4000, np.random.default_rng(seed))
        for seed in range(8)
    ]
    nobody, atoms = rows[:0], twin.draw_parameters(rng, rows[:0], 40_000)
    log_densities = [
        twin.log_density(rows[founders], {name: of_all[m] for name, of_all in atoms.items()})
        for m in range(40_000)
    ]
    alone = np.array([twin.log_predictive(row, nobody) for row in rows[founders]])
    born = special.expit(log_odds[founders] + np.array(log_densities) - alone).mean(0)
    expected = born.sum()
    error = np.std(found) / np.sqrt(8.0)
    assert abs(np.mean(found) - expected) < 5.0 * error + 0.01 * expected
    assert 0.0 < expected < special.expit(log_odds[founders]).sum()


def plug_in(twin: Any, members: np.ndarray) -> dict[str, np.ndarray]:
    """Posterior means of the mean and of the precision."""
    mu, _, nu, psi = twin.posterior(members)
    return {"mu": mu, "cov": psi / nu}


# --- forward draws from the prior ---------------------------------------------------------


def test_seating_is_a_chinese_restaurant(rng: np.random.Generator) -> None:
    labels = np.array([draw_seating(rng, ALPHA, 5) for _ in range(N_DRAWS)])
    partitions = enumerate_partitions(5)
    sizes = [np.bincount(row) for row in partitions]
    log_law = np.array([len(n) * math.log(ALPHA) + special.gammaln(n).sum() for n in sizes])
    law = np.exp(log_law - special.logsumexp(log_law))
    cells = partition_index(labels).reshape(100, -1)
    assert partition_test(cells, law) > LEVEL
    doubled = np.exp(log_law + np.log(2.0) * np.array([len(n) for n in sizes]))
    assert partition_test(cells, doubled / doubled.sum()) < LEVEL
    assert draw_seating(rng, ALPHA, 0).shape == (0,)


@pytest.mark.parametrize("alpha", [0.2, ALPHA, 8.0])
def test_block_sizes_are_those_of_a_seating(alpha: float, rng: np.random.Generator) -> None:
    drawn = [draw_block_sizes(rng, alpha, 25) for _ in range(5000)]
    assert all(sizes.min() > 0 and sizes.sum() == 25 for sizes in drawn)
    n_blocks = np.array([len(sizes) for sizes in drawn])
    law = crp_n_clusters(alpha, 25)
    assert partition_test(n_blocks.reshape(50, -1), law) > LEVEL
    assert partition_test(n_blocks.reshape(50, -1), crp_n_clusters(1.3 * alpha, 25)) < LEVEL
    seated = [np.bincount(draw_seating(rng, alpha, 25)).max() for _ in range(5000)]
    largest = [sizes.max() for sizes in drawn]
    assert stats.ks_2samp(largest, seated, method="asymp").pvalue > LEVEL


@pytest.mark.parametrize("alpha", [1e-3, ALPHA, 8.0])
def test_new_weight_is_beta(alpha: float, rng: np.random.Generator) -> None:
    draws = np.array(
        [draw_new_weight(rng, dirichlet_process(alpha), 10, 3) for _ in range(N_DRAWS)]
    )
    law, wrong = stats.beta(alpha, 10), stats.beta(1.2 * alpha + 0.1, 10)
    # Weights below the smallest number become 0, as most do where alpha is small.
    draws, least = np.maximum(draws, 1e-300), 1e-300
    assert draws.max() <= 1.0
    n_least = int((draws <= least).sum())
    assert stats.binomtest(n_least, N_DRAWS, law.cdf(least)).pvalue > LEVEL
    above = draws[draws > least]
    for candidate, is_right in ((law, True), (wrong, False)):
        bottom = candidate.cdf(least)
        uniform = (candidate.cdf(above) - bottom) / (1.0 - bottom)
        assert (stats.kstest(uniform, "uniform").pvalue > LEVEL) == is_right


def test_occupied_weights_are_dirichlet(rng: np.random.Generator) -> None:
    sizes = np.array([3, 9, 1, 4])
    draws = np.array(
        [draw_occupied_weights(rng, dirichlet_process(ALPHA), sizes, 0.25) for _ in range(4000)]
    )
    np.testing.assert_allclose(draws.sum(1), 0.75)
    exact = stats.dirichlet.rvs(sizes, 4000, random_state=rng)
    equal = zip(draws.T / 0.75, exact.T, strict=True)
    assert combine(*(stats.ks_2samp(x, y).pvalue for x, y in equal)) > LEVEL
