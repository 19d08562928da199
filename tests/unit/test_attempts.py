"""Split/merge attempts by several threads: what one thread does that makes them in turn."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream, next_index, next_key, next_uniform
from pymc_dpsplit.moves.decision import Decision, carry_out
from pymc_dpsplit.moves.informed import decide_informed
from pymc_dpsplit.moves.side_by_side import (
    Attempt,
    attempt_side_by_side,
    draw_attempts,
    draw_greedy_attempts,
)
from tests.support.families import component_of, target_of
from tests.support.statistics import LEVEL

Draw = Callable[[int, np.random.Generator], list[Attempt]]


def target_for(n_obs: int, family: str, rng: np.random.Generator) -> sampler.Target:
    """Three clouds that overlap: splits and merges are often accepted."""
    centres = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]])
    rows = centres[rng.integers(3, size=n_obs)] + 0.8 * rng.standard_normal((n_obs, 2))
    return target_of(component_of(family, 2), rows, 2.0)


def in_turn(
    target: sampler.Target, state: sampler.ChainState, attempts: list[Attempt]
) -> tuple[sampler.ChainState, np.ndarray]:
    """Each attempt from the partition that the one before it has left."""
    labels, found, tally = state.labels.copy(), state.stats, np.zeros(4, np.int64)
    for decide, key in attempts:
        decision = decide(target.prior, target.data, labels, found, target.alpha, key)
        found = carry_out(labels, found, decision, tally)
    return sampler.ChainState(labels, found), tally


def together(
    target: sampler.Target, state: sampler.ChainState, attempts: list[Attempt], width: int
) -> tuple[sampler.ChainState, np.ndarray]:
    """The same by two threads."""
    labels, tally = state.labels.copy(), np.zeros(4, np.int64)
    prior, data, alpha = target
    with ThreadPoolExecutor(2) as pool:
        found = attempt_side_by_side(
            prior, data, labels, state.stats, alpha, attempts, tally, pool, width
        )
    return sampler.ChainState(labels, found), tally


def n_differences(
    draw: Draw, family: str, width: int, rng: np.random.Generator, n_rounds: int = 100
) -> tuple[int, np.ndarray]:
    """Number of rounds of six attempts that come out differently; tally of all in turn."""
    target = target_for(60, family, rng)
    state, total, n_different = sampler.start(target, rng, 8), np.zeros(4, np.int64), 0
    for _ in range(n_rounds):
        attempts = draw(6, rng)
        following, tally = in_turn(target, state, attempts)
        other, counted = together(target, state, attempts, width)
        same = np.array_equal(following.labels, other.labels)
        same = same and np.array_equal(following.stats, other.stats)
        n_different += not (same and np.array_equal(tally, counted))
        total += tally
        # The sweep brings back small clusters.
        state = following
        fresh = state.labels.copy()
        swept = sampler.slice_sweep(*target[:2], fresh, state.stats, target.alpha, rng)
        state = sampler.ChainState(fresh, swept)
    return n_different, total


@pytest.mark.parametrize("draw", [draw_attempts, draw_greedy_attempts])
@pytest.mark.parametrize(("family", "width"), [("MvNormal", 6), ("MvNormal", 2), ("DiagNormal", 6)])
def test_side_by_side_is_in_turn(
    draw: Draw, family: str, width: int, rng: np.random.Generator
) -> None:
    n_different, tally = n_differences(draw, family, width, rng)
    assert n_different == 0
    assert tally[1] > 10
    assert tally[3] > 10


class Heedless(Attempt):
    """An attempt whose choice by the partition is kept though other clusters have changed."""

    def is_upset_by(self, changed: set[int], decision: Decision) -> bool:
        """Look at the chosen clusters alone, as is right for anchored pairs."""
        return not changed.isdisjoint((decision.a, decision.b))


def draw_heedless(n_attempts: int, rng: np.random.Generator) -> list[Attempt]:
    """Attempts by informed choice."""
    return [Heedless(decide_informed, np.uint64(draw_key(rng))) for _ in range(n_attempts)]


@pytest.mark.control
def test_a_choice_that_is_kept_is_caught(rng: np.random.Generator) -> None:
    assert n_differences(draw_heedless, "MvNormal", 6, rng)[0] > 0


def test_only_upset_attempts_decide_otherwise(rng: np.random.Generator) -> None:
    """An attempt before and after another: pairs that meet in a cluster must be told apart."""
    target = target_for(60, "MvNormal", rng)
    prior, data, alpha = target
    n_alike, n_other = 0, 0
    for _ in range(400):
        state = sampler.start(target, rng, 8)
        labels, found = state.labels.copy(), state.stats
        (first, key), second = draw_attempts(2, rng)
        before = second.decide(prior, data, labels, found, alpha, second.key)
        upsetting = first(prior, data, labels, found, alpha, key)
        found = carry_out(labels, found, upsetting, np.zeros(4, np.int64))
        after = second.decide(prior, data, labels, found, alpha, second.key)
        changed = {upsetting.a, upsetting.b} if upsetting.accepted else set()
        if second.is_upset_by(changed, before):
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


@pytest.mark.parametrize("form", ["exact", "greedy"])
def test_iterations_do_not_depend_on_threads(form: str, rng: np.random.Generator) -> None:
    target = target_for(9000, "MvNormal", rng)
    kernel = sampler.GREEDY if form == "greedy" else sampler.KERNELS[form]
    state = sampler.start(target, rng, 6)
    plan = sampler.Plan(5, 2.5, np.arange(0, 9000, 500))
    alone, counted = sampler.advance(kernel, target, state, np.random.default_rng(3), plan)
    with ThreadPoolExecutor(3) as pool:
        shared, tally = sampler.advance(kernel, target, state, np.random.default_rng(3), plan, pool)
    np.testing.assert_array_equal(alone.labels, shared.labels)
    np.testing.assert_array_equal(alone.stats, shared.stats)
    np.testing.assert_array_equal(counted, tally)
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
    made = np.array([sampler._n_attempts(attempts, n_obs, rng) for _ in range(4000)])
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
