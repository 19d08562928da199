"""The parts of the sampler of Chang & Fisher (2013), each against the formula of the paper."""

import math

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.measure import draw_measure
from pymc_dpsplit.samplers import chang_fisher, sub_clusters
from pymc_dpsplit.samplers.random_split_merge import (
    draw_sides_from_prior,
    draw_two_clusters,
    log_dirichlet_multinomial,
)
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.statistics import LEVEL

ALPHA = 1.7
ROWS = dataset_of("Normal", "overlapping", 1)
LABELS = np.array([0, 0, 1, 0, 1, 1, 0, 0], np.int32)
SIDES = np.array([0, 1, 1, 0, 1, 1, 0, 1], np.int8)
TARGET = target_of(component_of("Normal", 1), ROWS, ALPHA)
TWIN = twin_of("Normal", 1)
N_DRAWS = 2000


def burned_in(n_clusters: int) -> np.ndarray:
    """Progress of clusters that may all be proposed to be split."""
    return np.tile([sub_clusters.BURNED_IN, 0.0], (n_clusters, 1))


def sub_stats() -> np.ndarray:
    return sub_clusters.gather_sub_stats(TARGET.prior, TARGET.data, LABELS, SIDES, 2)


def test_statistics_are_those_of_the_sides() -> None:
    found = sub_stats()
    for k in range(2):
        for s in range(2):
            own = np.flatnonzero((k == LABELS) & (s == SIDES))
            assert found[2 * k + s, 0] == len(own)
            rows = TARGET.data[own] - TARGET.prior.shift
            assert found[2 * k + s, 1] == pytest.approx(rows.sum(), abs=1e-9)


def beta_p_value(draws: np.ndarray, of_left: float, of_right: float) -> float:
    return float(stats.kstest(draws, stats.beta(of_left, of_right).cdf).pvalue)


def test_weights_are_dirichlet(rng: np.random.Generator) -> None:
    whole = sampler.resume(TARGET, LABELS).stats
    clusters = np.empty((N_DRAWS, 3))
    for s in range(N_DRAWS):
        log_weights, log_rest, _ = draw_measure(TARGET, whole, rng)
        clusters[s] = np.exp([*log_weights, log_rest])
    # Eq. (7): (N_1, N_2, alpha), of which each share is a beta variable.
    for k, of in enumerate((5.0, 3.0, ALPHA)):
        assert beta_p_value(clusters[:, k], of, 8.0 + ALPHA - of) > LEVEL


def test_weights_of_sub_clusters_are_dirichlet(rng: np.random.Generator) -> None:
    given = sub_stats()
    draws = [
        np.exp(sub_clusters.draw_sub_measure(TARGET.prior, ALPHA, given, rng)[0])
        for _ in range(N_DRAWS)
    ]
    left, right = np.array(draws)[:, [0, 2]], np.array(draws)[:, [1, 3]]
    np.testing.assert_allclose(left + right, 1.0, rtol=1e-12)
    # Eq. (13).  Cluster 0 has 3 members on the left and 2 on the right; cluster 1 has 0 and 3.
    half = 0.5 * ALPHA
    assert beta_p_value(left[:, 0], 3.0 + half, 2.0 + half) > LEVEL
    assert beta_p_value(left[:, 1], half, 3.0 + half) > LEVEL
    assert beta_p_value(left[:, 1], ALPHA, 3.0 + ALPHA) < LEVEL


def test_parameters_of_an_empty_sub_cluster_are_drawn_from_the_base_measure(
    rng: np.random.Generator,
) -> None:
    given, component = sub_stats(), component_of("Normal", 1)
    drawn = np.concatenate([
        sub_clusters.draw_sub_measure(TARGET.prior, ALPHA, given, rng)[1] for _ in range(500)
    ])  # fmt: skip
    mu = np.reshape(component.unpack(drawn, TARGET.prior.shift)["mu"], (500, 4))
    # Eq. (14): the third sub-cluster is empty, the others have rows.
    for c in range(4):
        rows = ROWS[c == 2 * LABELS + SIDES]
        assert len(rows) == (3, 2, 0, 3)[c]
        exact = TWIN.draw_parameters(rng, rows, 500)["mu"]
        assert stats.ks_2samp(mu[:, c], exact).pvalue > LEVEL


def naive_odds(log_weights: np.ndarray, params: np.ndarray, k: int) -> np.ndarray:
    """Probability of the left side, eq. (15), and log densities (N, 2) under both."""
    unpacked = component_of("Normal", 1).unpack(params[2 * k : 2 * k + 2], TARGET.prior.shift)
    density = np.stack(
        [
            TWIN.log_density(ROWS, {name: value[s] for name, value in unpacked.items()})
            for s in range(2)
        ],
        axis=1,
    )
    mass = np.exp(log_weights[2 * k : 2 * k + 2] + density)
    return mass[:, 0] / mass.sum(axis=1), density


def test_sides_are_drawn_by_weight_times_density(rng: np.random.Generator) -> None:
    measure = sub_clusters.draw_sub_measure(TARGET.prior, ALPHA, sub_stats(), rng)
    left, side, likelihood = np.zeros(8), np.empty(8, np.int8), np.empty(2)
    odds, densities = zip(*(naive_odds(*measure, k) for k in range(2)), strict=True)
    for key in range(N_DRAWS):
        sub_clusters.draw_sides(
            TARGET.prior, TARGET.data, LABELS, *measure, np.uint64(key), side, likelihood
        )
        left += side == 0
        for k in range(2):
            own = np.flatnonzero(k == LABELS)
            assert likelihood[k] == pytest.approx(densities[k][own, side[own]].sum(), rel=1e-9)
    exact = np.where(LABELS == 0, odds[0], odds[1])
    for i in range(8):
        assert stats.binomtest(int(left[i]), N_DRAWS, exact[i]).pvalue > LEVEL / 8


def test_sub_clusters_burn_in_when_their_likelihood_first_falls() -> None:
    progress = sub_clusters.new_progress(1)
    side = np.empty(8, np.int8)
    sub_clusters.begin_sub_clusters(np.zeros(8, np.int32), side, progress, np.random.default_rng(0))
    assert set(side) == {0, 1}
    stages = []
    for height in (-9.0, -7.0, -7.0, -7.5, -6.0):
        sub_clusters.note_burn_in(progress, np.array([height]))
        stages.append(progress[0, sub_clusters.STAGE] == sub_clusters.BURNED_IN)
    assert stages == [False, False, False, True, True]
    sub_clusters.forget_sub_clusters(progress, 0)
    sub_clusters.note_burn_in(progress, np.array([-99.0]))
    assert progress[0, sub_clusters.STAGE] != sub_clusters.BURNED_IN


def hastings_ratio(labels: np.ndarray, k: int) -> float:
    """H of a split of cluster k into its sides, eq. (21), by the naive twin."""
    left, right = (ROWS[(labels == k) & (s == SIDES)] for s in range(2))
    log_h = math.log(ALPHA) + math.lgamma(len(left)) + math.lgamma(len(right))
    log_h += TWIN.log_marginal(left) + TWIN.log_marginal(right)
    union = np.concatenate((left, right))
    return math.exp(log_h - math.lgamma(len(union)) - TWIN.log_marginal(union))


def test_splits_are_accepted_by_the_published_ratio(rng: np.random.Generator) -> None:
    whole, n_accepted = sampler.resume(TARGET, LABELS).stats, 0
    exact = min(1.0, hastings_ratio(LABELS, 0))
    assert 0.01 < exact < 0.99
    for _ in range(N_DRAWS):
        labels, counts = LABELS.copy(), np.zeros(4, np.int64)
        found, progress = chang_fisher.split_sub_clusters(
            TARGET, labels, whole, SIDES, burned_in(2), rng, counts
        )
        # The left side of cluster 1 is empty, so that only the other is proposed.
        assert counts[0] == 1
        assert counts[2] == 0
        n_accepted += counts[1]
        if counts[1]:
            np.testing.assert_array_equal(labels == 2, (LABELS == 0) & (SIDES == 1))
            assert list(found[:, 0]) == [3.0, 3.0, 2.0]
            # Both parts begin anew, and the third cluster goes on.
            assert list(progress[:, 0]) == [
                sub_clusters.NEW, sub_clusters.BURNED_IN, sub_clusters.NEW
            ]  # fmt: skip
    assert stats.binomtest(int(n_accepted), N_DRAWS, exact).pvalue > LEVEL


def test_split_waits_until_sub_clusters_have_burned_in(rng: np.random.Generator) -> None:
    whole, counts = sampler.resume(TARGET, LABELS).stats, np.zeros(4, np.int64)
    progress = burned_in(2)
    progress[0, sub_clusters.STAGE] = sub_clusters.BURNING_IN
    chang_fisher.split_sub_clusters(TARGET, LABELS.copy(), whole, SIDES, progress, rng, counts)
    assert not counts.any()


def test_sweep_leaves_out_clusters_that_lose_their_members(rng: np.random.Generator) -> None:
    """It never founds one: that is where the sampler is not exact."""
    numbers = []
    for _ in range(60):
        labels, side = np.arange(8, dtype=np.int32), np.zeros(8, np.int8)
        whole = sampler.resume(TARGET, labels).stats
        found, progress = chang_fisher.restricted_sweep(
            TARGET, labels, whole, side, burned_in(8), rng
        )
        np.testing.assert_allclose(found, sampler.resume(TARGET, labels).stats, rtol=1e-12)
        assert progress.shape == (len(found), 2)
        numbers.append(len(found))
    assert min(numbers) < max(numbers) <= 8


def advanced(n_iterations: list[int], keeps: bool = True) -> sampler.ChainState:
    """State after draws of so many iterations, from one cluster."""
    rng = np.random.default_rng(12)
    rows = np.random.default_rng(1).standard_normal((40, 1)) + 6.0 * (np.arange(40) % 2)[:, None]
    target = target_of(component_of("Normal", 1), rows, ALPHA)
    state = sampler.resume(target, np.zeros(40, np.int32))
    for n in n_iterations:
        schedule = sampler.Schedule(n, 1.0, np.empty(0, np.int64))
        state, _ = sampler.advance("chang-fisher", target, state, rng, schedule)
        if not keeps:
            state = sampler.ChainState(state.labels, state.stats)
    return state


def test_sub_clusters_persist_between_draws() -> None:
    whole = advanced([12])
    assert len(whole.stats) > 1
    for array, expected in zip(advanced([3, 4, 5]), whole, strict=True):
        np.testing.assert_array_equal(array, expected)


@pytest.mark.control
def test_sub_clusters_that_begin_anew_are_noticed() -> None:
    whole, other = advanced([12]), advanced([3, 4, 5], keeps=False)
    assert not np.array_equal(whole.of_rows, other.of_rows)


def test_numbers_of_clusters_do_not_matter() -> None:
    state = advanced([30])
    swap = np.roll(np.arange(len(state.stats)), 1)
    other = sampler.ChainState(
        swap[state.labels].astype(np.int32), state.stats[np.argsort(swap)], state.of_rows,
        state.of_clusters[np.argsort(swap)],
    )  # fmt: skip
    rows = np.random.default_rng(1).standard_normal((40, 1)) + 6.0 * (np.arange(40) % 2)[:, None]
    target = target_of(component_of("Normal", 1), rows, ALPHA)
    schedule = sampler.Schedule(5, 1.0, np.empty(0, np.int64))
    ours, theirs = (
        sampler.advance("chang-fisher", target, start, np.random.default_rng(3), schedule)[0]
        for start in (state, other)
    )
    np.testing.assert_array_equal(ours.labels, theirs.labels)


# --- the random split and merge -----------------------------------------------------------


def test_sides_follow_the_dirichlet_multinomial_law() -> None:
    mass, stream = 0.4, new_stream(np.uint64(3))
    found = np.zeros(8)
    for _ in range(N_DRAWS):
        found[draw_sides_from_prior(3, mass, stream) @ [1, 2, 4]] += 1
    n_right = [bin(code).count("1") for code in range(8)]
    exact = np.exp([log_dirichlet_multinomial(3 - n, n, mass) for n in n_right])
    assert exact.sum() == pytest.approx(1.0, rel=1e-12)
    assert stats.chisquare(found, N_DRAWS * exact).pvalue > LEVEL
    assert log_dirichlet_multinomial(2, 1, mass) == pytest.approx(
        stats.betabinom(3, mass, mass).logpmf(2) - math.log(3), rel=1e-12
    )


def test_pairs_are_drawn_uniformly() -> None:
    stream, order = new_stream(np.uint64(4)), np.array([5, 2, 7])
    found: dict[tuple[int, int], int] = {}
    for _ in range(N_DRAWS):
        pair = draw_two_clusters(order, stream)
        found[pair] = found.get(pair, 0) + 1
    assert {frozenset(pair) for pair in found} == {
        frozenset(pair) for pair in ((5, 2), (5, 7), (2, 7))
    }
    assert len(found) == 6
    assert stats.chisquare(list(found.values())).pvalue > LEVEL
