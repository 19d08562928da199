"""Crossing in early tuning: it climbs, keeps the books, and joins what two partitions found."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.nonconjugate.iterations import NONCONJUGATE
from pymc_dpsplit.moves.partition import gather_stats, log_joint
from pymc_dpsplit.moves.partition_law import PartitionLaw, finite_mixture
from pymc_dpsplit.moves.split_merge.crossing import MOST_CELLS, cross
from pymc_dpsplit.moves.split_merge.regrouping import MOST_CLUSTERS
from pymc_dpsplit.step import early_tuning
from pymc_dpsplit.step.early_tuning import best_of, n_early_draws, searched
from pymc_dpsplit.step.schedule import make_schedule
from tests.support.families import component_of, target_of

MIXTURE: Any = SimpleNamespace(is_latent=False, needs_all_rows=True, max_clusters=50)
LAWS = {
    "Dirichlet": PartitionLaw(0.0, 1.0),
    "Pitman-Yor": PartitionLaw(0.3, 0.5),
    "three components": finite_mixture(1.0, 3),
}


def crossed(target, labels, others, rng):
    """Labels and statistics after a crossing."""
    labels, others = (np.array(each, np.int32) for each in (labels, others))
    own, other = (
        gather_stats(target.prior, target.data, each, each.max() + 1) for each in (labels, others)
    )
    before = max(log_joint(target, own), log_joint(target, other))
    stats = cross(target, labels, own, others, other, rng)
    fresh = gather_stats(target.prior, target.data, labels, len(stats))
    np.testing.assert_allclose(stats, fresh, atol=1e-8 * np.abs(fresh).max())
    assert set(labels.tolist()) == set(range(len(stats)))
    assert log_joint(target, stats) >= before
    return labels, stats


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("family", ["MvNormal", "Poisson", "Bernoulli"])
def test_the_joint_density_never_falls(family: str, law: str, rng: np.random.Generator) -> None:
    rows = rng.integers(0, 2, size=(30, 2)).astype(float)
    target = target_of(component_of(family, 2), rows, 1.0)._replace(law=LAWS[law])
    for _ in range(12):
        labels, others = (np.unique(rng.integers(3, size=30), return_inverse=True)[1] for _ in "ab")
        labels, _ = crossed(target, labels, others, rng)
        if law == "three components":
            assert labels.max() < 3


def six_groups(rng):
    """Rows of six groups that nothing confuses, and the group of each."""
    truth = np.repeat(np.arange(6), 20)
    rows = 50.0 * rng.standard_normal((6, 2))[truth] + rng.standard_normal((120, 2))
    return target_of(dps.MvNormal(np.zeros(2), 0.001, 5.0, np.eye(2)), rows, 1.0), truth


def test_each_partition_gives_what_it_has_found(rng: np.random.Generator) -> None:
    target, truth = six_groups(rng)
    labels, others = np.array([0, 0, 0, 1, 2, 3])[truth], np.array([0, 1, 2, 3, 3, 3])[truth]
    labels, stats = crossed(target, labels, others, rng)
    assert len(stats) == 6
    assert len(set(zip(labels.tolist(), truth.tolist(), strict=True))) == 6


def test_what_neither_has_found_is_not_found(rng: np.random.Generator) -> None:
    """The control of the test before: a pair of groups that both hold together stays together."""
    target, truth = six_groups(rng)
    labels, stats = crossed(target, np.maximum(truth, 1) - 1, (truth > 1) * 1, rng)
    assert len(stats) == 5
    assert np.all(labels[truth == 0] == labels[truth == 1][0])


def test_the_better_of_two_partitions_is_taken_where_cells_are_many(
    rng: np.random.Generator,
) -> None:
    n_obs = MOST_CLUSTERS + 50
    target = target_of(component_of("Normal", 1), rng.normal(size=(n_obs, 1)), 1e-3)
    alone, together = np.arange(n_obs), np.zeros(n_obs, int)
    for first, other in ((alone, together), (together, alone)):
        labels, _ = crossed(target, first, other, rng)
        assert labels.max() == 0
    n_obs = 2 * MOST_CELLS
    target = target_of(component_of("Normal", 1), rng.normal(size=(n_obs, 1)), 1e-3)
    labels, others = np.arange(n_obs) // 5, np.arange(n_obs) % 205
    crossed(target, labels, others, rng)


def test_partitions_given_are_not_modified(rng: np.random.Generator) -> None:
    target, truth = six_groups(rng)
    one, other = sampler.resume(target, truth // 2), sampler.resume(target, truth // 3)
    kept = [part.copy() for state in (one, other) for part in state[:2]]
    assert len(best_of(target, one, other, rng).stats) >= 3
    after = [part for state in (one, other) for part in state[:2]]
    assert all(np.array_equal(a, b) for a, b in zip(kept, after, strict=True))


def many_spheres(seed):
    """Rows of twelve spheres in ten dimensions, which the highest partitions hold in groups."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(2.0 * rng.standard_normal((12, 10)), 15, axis=0)
    prior = dps.MvNormal(np.zeros(10), 0.1, 12.0, np.eye(10))
    return target_of(prior, centres + rng.standard_normal((180, 10)), 1.0)


@pytest.mark.compiled
def test_new_starts_climb_higher_than_the_chain_alone() -> None:
    """Log joint density after as many iterations in all, eight seeds."""
    target, gains = many_spheres(0), []
    for seed in range(8):
        reached = []
        for n_draws, n_early in ((400, 0), (60, 60)):
            rng = np.random.default_rng(seed)
            state = sampler.start(target, rng)
            schedule = make_schedule("exact", target, state, is_settled=False)
            for n_done in range(n_draws):
                told = schedule, n_done, n_early or 4
                state = searched(MIXTURE, sampler.GREEDY, target, state, *told, rng)
                state, _ = sampler.advance(sampler.GREEDY, target, state, rng, schedule)
            reached.append(log_joint(target, state.stats))
        gains.append(reached[1] - reached[0])
    assert np.mean(gains) > 5.0


@pytest.mark.compiled
def test_new_starts_are_evenly_spread_and_few_where_they_are_long(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, _ = six_groups(rng)
    state = sampler.start(target, rng)
    schedule = make_schedule("exact", target, state, is_settled=False)
    crossed_state = sampler.start(target, rng)
    monkeypatch.setattr(early_tuning, "best_of", lambda *_: crossed_state)

    def when(n_early: int, form: str = sampler.GREEDY) -> list[int]:
        given = MIXTURE, form, target, state
        told = ((schedule, n_done, n_early) for n_done in range(n_early))
        made = [searched(*given, *each, rng) is crossed_state for each in told]
        return np.flatnonzero(made).tolist()

    assert when(166) == list(range(5, 166, 5))
    assert when(300) == list(range(9, 300, 9))
    assert when(14) == [7]
    assert when(9) == []
    assert when(100, "collapsed-split-merge") == list(range(5, 100, 5))
    monkeypatch.setattr(early_tuning, "_TIME_OF_STARTS", 2e7)
    assert 0 < len(when(300)) < 16
    monkeypatch.setattr(early_tuning, "_TIME_OF_STARTS", 1e3)
    assert when(300) == []


def test_families_that_are_not_conjugate_have_no_new_starts(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, _ = six_groups(rng)
    state = sampler.start(target, rng)
    schedule = make_schedule("exact", target, state, is_settled=False)
    assert searched(MIXTURE, sampler.GREEDY, target, state, schedule, 10, 100, rng) is not state
    monkeypatch.setattr(sampler, "moves_of", lambda _: NONCONJUGATE)
    assert searched(MIXTURE, sampler.GREEDY, target, state, schedule, 10, 100, rng) is state


def test_latent_rows_have_no_new_starts_and_what_cannot_be_recorded_is_left_out(
    rng: np.random.Generator,
) -> None:
    target, _ = six_groups(rng)
    state = sampler.resume(target, np.zeros(120, int))
    told = sampler.GREEDY, target, state, make_schedule("exact", target, state), 10, 100, rng
    few = SimpleNamespace(is_latent=False, needs_all_rows=True, max_clusters=2)
    latent = SimpleNamespace(is_latent=True, needs_all_rows=True, max_clusters=50)
    summed = SimpleNamespace(is_latent=False, needs_all_rows=False, max_clusters=2)
    assert searched(few, *told) is state
    assert searched(latent, *told) is state
    assert len(searched(summed, *told).stats) > 2


def test_draws_that_search() -> None:
    assert n_early_draws("exact", 300) == 100
    assert n_early_draws("exact", 3000) == 300
    assert n_early_draws("collapsed-split-merge", 1000) == 100
    assert n_early_draws("collapsed", 1000) == 0
