"""Split/merge attempts by several threads: what one thread does that makes them in turn."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_key, next_uniform
from pymc_dpsplit.moves.n_attempts import n_attempts
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from pymc_dpsplit.moves.split_merge.anchored import decide_anchored
from pymc_dpsplit.moves.split_merge.decision import Decision, carry_out
from pymc_dpsplit.moves.split_merge.informed import decide_informed
from pymc_dpsplit.moves.split_merge.side_by_side import (
    Attempt,
    attempt_side_by_side,
    draw_attempts,
    draw_greedy_attempts,
)
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from tests.support.families import component_of, target_of
from tests.support.statistics import LEVEL

Draw = Callable[[int, np.random.Generator], list[Attempt]]


def target_for(
    n_obs: int, family: str, rng: np.random.Generator, law: PartitionLaw | None = None
) -> sampler.Target:
    """Three clouds that overlap: splits and merges are often accepted."""
    centres = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]])
    rows = centres[rng.integers(3, size=n_obs)] + 0.8 * rng.standard_normal((n_obs, 2))
    target = target_of(component_of(family, 2), rows, 2.0)
    return target if law is None else target._replace(law=law)


def in_turn(
    target: sampler.Target, state: sampler.ChainState, attempts: list[Attempt]
) -> tuple[sampler.ChainState, np.ndarray]:
    """Each attempt from the partition that the one before it has left."""
    labels, found, acceptance_counts = state.labels.copy(), state.stats, np.zeros(4, np.int64)
    for decide, key in attempts:
        decision = decide(target, labels, found, key)
        found = carry_out(labels, found, decision, acceptance_counts)
    return sampler.ChainState(labels, found), acceptance_counts


def together(
    target: sampler.Target, state: sampler.ChainState, attempts: list[Attempt], width: int
) -> tuple[sampler.ChainState, np.ndarray]:
    """The same by two threads."""
    labels, acceptance_counts = state.labels.copy(), np.zeros(4, np.int64)
    with ThreadPoolExecutor(2) as pool:
        found = attempt_side_by_side(
            target, labels, state.stats, attempts, acceptance_counts, pool, width
        )
    return sampler.ChainState(labels, found), acceptance_counts


def n_differences(
    draw: Draw,
    family: str,
    width: int,
    rng: np.random.Generator,
    law: PartitionLaw | None = None,
    n_rounds: int = 100,
) -> tuple[int, np.ndarray]:
    """Rounds of six attempts that come out differently; acceptance counts of all in turn."""
    target = target_for(60, family, rng, law)
    state, total, n_different = sampler.start(target, rng, 8), np.zeros(4, np.int64), 0
    for _ in range(n_rounds):
        attempts = draw(6, rng)
        following, acceptance_counts = in_turn(target, state, attempts)
        other, counted = together(target, state, attempts, width)
        same = np.array_equal(following.labels, other.labels)
        same = same and np.array_equal(following.stats, other.stats)
        n_different += not (same and np.array_equal(acceptance_counts, counted))
        total += acceptance_counts
        # The sweep brings back small clusters.
        state = following
        fresh = state.labels.copy()
        swept = slice_sweep(target, fresh, state.stats, rng)
        state = sampler.ChainState(fresh, swept)
    return n_different, total


@pytest.mark.compiled
@pytest.mark.parametrize("draw", [draw_attempts, draw_greedy_attempts])
@pytest.mark.parametrize(
    ("family", "width"),
    [("MvNormal", 6), ("MvNormal", 2), pytest.param("DiagNormal", 6, marks=pytest.mark.slow)],
)
def test_side_by_side_is_in_turn(
    draw: Draw, family: str, width: int, rng: np.random.Generator
) -> None:
    n_different, acceptance_counts = n_differences(draw, family, width, rng)
    assert n_different == 0
    assert acceptance_counts[1] > 10
    assert acceptance_counts[3] > 10


# The opening mass of the first falls with every cluster, that of the second rises.
@pytest.mark.compiled
@pytest.mark.parametrize("law", [finite_mixture(0.7, 9), PartitionLaw(0.2, 1.0)])
def test_side_by_side_is_in_turn_under_other_laws(
    law: PartitionLaw, rng: np.random.Generator
) -> None:
    n_different, acceptance_counts = n_differences(draw_attempts, "MvNormal", 6, rng, law)
    assert n_different == 0
    assert acceptance_counts[1] > 10
    assert acceptance_counts[3] > 10


class Heedless(Attempt):
    """An attempt that is kept though other clusters have changed."""

    def is_upset_by(self, changed: set[int], decision: Decision, law: PartitionLaw) -> bool:
        """Look at the chosen clusters alone, as is right for anchored pairs of a DP."""
        return not changed.isdisjoint((decision.a, decision.b))


def draw_heedless(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Attempts by informed choice."""
    return [Heedless(decide_informed, np.uint64(draw_key(rng))) for _ in range(n_attempts)]


def draw_heedless_pairs(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Attempts of anchored pairs."""
    return [Heedless(decide_anchored, np.uint64(draw_key(rng))) for _ in range(n_attempts)]


@pytest.mark.slow
@pytest.mark.control
def test_a_choice_that_is_kept_is_caught(rng: np.random.Generator) -> None:
    assert n_differences(draw_heedless, "MvNormal", 6, rng)[0] > 0


@pytest.mark.slow
@pytest.mark.control
def test_a_pair_that_is_kept_with_a_discount_is_caught(rng: np.random.Generator) -> None:
    law = finite_mixture(0.7, 9)
    assert n_differences(draw_heedless_pairs, "MvNormal", 6, rng, law)[0] > 0
    assert n_differences(draw_heedless_pairs, "MvNormal", 6, rng)[0] == 0


@pytest.mark.compiled
def test_only_upset_attempts_decide_otherwise(rng: np.random.Generator) -> None:
    """An attempt before and after another: pairs that meet in a cluster must be told apart."""
    target = target_for(60, "MvNormal", rng)
    n_alike, n_other = 0, 0
    for _ in range(400):
        state = sampler.start(target, rng, 8)
        labels, found = state.labels.copy(), state.stats
        (first, key), second = draw_attempts(2, rng)
        before = second.decide(target, labels, found, second.key)
        upsetting = first(target, labels, found, key)
        found = carry_out(labels, found, upsetting, np.zeros(4, np.int64))
        after = second.decide(target, labels, found, second.key)
        changed = {upsetting.a, upsetting.b} if upsetting.accepted else set()
        if second.is_upset_by(changed, before, target.law):
            n_other += not alike(before, after)
        else:
            assert alike(before, after)
            n_alike += bool(changed)
    assert n_alike > 5
    assert n_other > 5


def alike(one: Decision, other: Decision) -> bool:
    """Whether two decisions are the same but for the numbers of the clusters."""
    return (one.proposed, one.accepted) == (other.proposed, other.accepted) and all(
        np.array_equal(x, y) for x, y in zip(one[4:], other[4:], strict=True)
    )


@pytest.mark.compiled
@pytest.mark.parametrize("form", ["exact", "greedy"])
def test_iterations_do_not_depend_on_threads(form: str, rng: np.random.Generator) -> None:
    target = target_for(9000, "MvNormal", rng)
    state = sampler.start(target, rng, 6)
    schedule = sampler.Schedule(5, 2.5, np.arange(0, 9000, 500))
    alone, counted = sampler.advance(form, target, state, np.random.default_rng(3), schedule)
    with ThreadPoolExecutor(3) as pool:
        shared, acceptance_counts = sampler.advance(
            form, target, state, np.random.default_rng(3), schedule, pool
        )
    np.testing.assert_array_equal(alone.labels, shared.labels)
    np.testing.assert_array_equal(alone.stats, shared.stats)
    np.testing.assert_array_equal(counted, acceptance_counts)
    assert counted[[0, 2]].sum() > 0


@pytest.mark.parametrize(
    ("attempts", "n_obs", "possible"),
    [
        (2.0, 100, {2}),
        (2.0, 10**5, {2}),
        (1.3, 100, {1, 2}),
        (1.3, 10**5, {0, 8}),
        (0.0, 10**5, {0}),
    ],
)
def test_attempts_are_as_many_as_planned(
    attempts: float, n_obs: int, possible: set[int], rng: np.random.Generator
) -> None:
    made = np.array([n_attempts(attempts, n_obs, rng) for _ in range(4000)])
    assert set(made.tolist()) == possible
    if len(possible) == 2:
        least, most = min(possible), max(possible)
        share = (attempts - least) / (most - least)
        assert stats.binomtest(int((made == most).sum()), len(made), share).pvalue > LEVEL


def test_streams_are_uniform_and_do_not_depend_on_order() -> None:
    ones, others = (new_stream(np.uint64(key)) for key in (3, 2**63 + 3))
    mixed = np.array([[next_uniform(ones), next_uniform(others)] for _ in range(20_000)])
    again = new_stream(np.uint64(3))
    np.testing.assert_array_equal(mixed[:, 0], [next_uniform(again) for _ in range(20_000)])
    for column in mixed.T:
        assert stats.kstest(column, "uniform").pvalue > LEVEL
        assert stats.pearsonr(column[:-1], column[1:]).pvalue > LEVEL
    assert stats.pearsonr(mixed[:, 0], mixed[:, 1]).pvalue > LEVEL
    counts = np.bincount([next_index(again, 7) for _ in range(7000)], minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts).pvalue > LEVEL
    bits = np.array([int(next_key(again)) >> shift & 1 for shift in range(64) for _ in range(500)])
    assert stats.binomtest(int(bits.sum()), len(bits)).pvalue > LEVEL
