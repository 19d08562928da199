"""How clusters are numbered changes nothing but numbers: every move, kernel and composition.

Two chains in the same partition, whose clusters have other numbers, draw the same partitions from
the same random numbers.  So numbers carry nothing from one move to the next.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.cluster_order import cluster_order, first_members
from pymc_dpsplit.moves.measure import Atoms, no_atoms
from pymc_dpsplit.moves.sweep.assignment import next_sweep
from pymc_dpsplit.moves.sweep.threaded_sweep import threaded_sweep
from pymc_dpsplit.samplers import av_parallel, neal2, neal8
from tests.support.controls import CONTROLS, altered
from tests.support.families import FAMILIES, component_of, dataset_of, target_of
from tests.support.moves import MOVES, sweep
from tests.support.partitions import canonical
from tests.support.quick import over_cases

pytestmark = pytest.mark.slow

N_COPIES = 6  # of a small data set, jittered where the family has a density
CASES = [(name, row.n_features[-1]) for name, row in FAMILIES.items()]
# Moves that the other quick tests do not compile for every family are left to the long suite.
_EVERYWHERE = ("slice", "collapsed", "exact kernel")


def rows_of(case: tuple[str, int], rng: np.random.Generator) -> np.ndarray:
    """Rows with and without twins."""
    name, n_features = case
    rows = np.concatenate([dataset_of(name, "duplicates", n_features)] * N_COPIES)
    if not FAMILIES[name].support and not FAMILIES[name].is_composed:
        rows[len(rows) // 2 :] *= rng.uniform(0.9, 1.1, rows[len(rows) // 2 :].shape)
    return rows


def renumbered(state: sampler.ChainState, rng: np.random.Generator) -> sampler.ChainState:
    """Return the same partition under other numbers, with what a kernel keeps of it."""
    number = rng.permutation(len(state.stats))
    stats = np.empty_like(state.stats)
    stats[number] = state.stats
    of_clusters = state.of_clusters.copy()
    if len(of_clusters):
        of_clusters[number] = state.of_clusters
    labels = number[state.labels].astype(np.int32)
    return sampler.ChainState(labels, stats, state.of_rows, of_clusters)


def scattered(
    target: sampler.Target, n_clusters: int, rng: np.random.Generator
) -> sampler.ChainState:
    """Draw a partition with clusters of one and of several rows."""
    labels = rng.integers(n_clusters, size=target.data.shape[0])
    return sampler.resume(target, np.unique(labels, return_inverse=True)[1])


def assert_numbers_do_not_matter(
    move: Callable[..., sampler.ChainState],
    target: sampler.Target,
    rng: np.random.Generator,
    n_repeats: int = 20,
) -> None:
    for _ in range(n_repeats):
        state, seed = scattered(target, 9, rng), int(rng.integers(2**31))
        ours = move(target, state, np.random.default_rng(seed))
        theirs = move(target, renumbered(state, rng), np.random.default_rng(seed))
        np.testing.assert_array_equal(canonical(ours.labels), canonical(theirs.labels))


@pytest.mark.parametrize("case", over_cases(CASES), ids=str)
@pytest.mark.parametrize(
    "name",
    [name if name in _EVERYWHERE else pytest.param(name, marks=pytest.mark.slow) for name in MOVES],
)
def test_numbers_do_not_matter(name: str, case: tuple[str, int], rng: np.random.Generator) -> None:
    target = target_of(component_of(*case), rows_of(case, rng), 1.7)
    assert_numbers_do_not_matter(MOVES[name], target, rng)


# Kernels whose state has more than the partition.
_KEEPING = ("slice sampler", "processors", "uneven processors", "repaired sub-clusters")


@pytest.mark.parametrize("name", _KEEPING)
def test_numbers_do_not_matter_to_what_is_kept(name: str, rng: np.random.Generator) -> None:
    target = target_of(component_of("Normal", 1), rows_of(("Normal", 1), rng), 1.7)
    for seed in range(20):
        state = MOVES[name](target, scattered(target, 9, rng), rng)
        assert len(state.of_clusters) == len(state.stats)
        ours = MOVES[name](target, state, np.random.default_rng(seed))
        theirs = MOVES[name](target, renumbered(state, rng), np.random.default_rng(seed))
        np.testing.assert_array_equal(canonical(ours.labels), canonical(theirs.labels))


Sweep = Callable[..., tuple[np.ndarray, Atoms]]


def by_threads(*arguments: Any) -> tuple[np.ndarray, Atoms]:
    with ThreadPoolExecutor(2) as pool:
        return threaded_sweep(*arguments, pool)


def two_sweeps(
    sweep: Sweep,
    target: sampler.Target,
    state: sampler.ChainState,
    seed: int,
    between: np.random.Generator | None,
) -> np.ndarray:
    """Labels after two linked sweeps, between which clusters and atoms may get other numbers."""
    rng, labels = np.random.default_rng(seed), state.labels.copy()
    stats, atoms = sweep(target, labels, state.stats, rng, no_atoms(target.prior))
    if between is not None:
        labels, stats, *_ = renumbered(sampler.ChainState(labels, stats), between)
        order = between.permutation(len(atoms.stats))
        atoms = Atoms(*(array[order] for array in atoms))
    sweep(target, labels, stats, rng, atoms)
    return canonical(labels)


@pytest.mark.parametrize("case", over_cases(CASES), ids=str)
@pytest.mark.parametrize("sweep", [next_sweep, by_threads], ids=["one thread", "two threads"])
def test_numbers_between_linked_sweeps_do_not_matter(
    sweep: Sweep, case: tuple[str, int], rng: np.random.Generator
) -> None:
    target = target_of(component_of(*case), rows_of(case, rng), 1.7)
    for seed in range(20):
        state = scattered(target, 6, rng)
        ours = two_sweeps(sweep, target, state, seed, None)
        np.testing.assert_array_equal(ours, two_sweeps(sweep, target, state, seed, rng))


@pytest.mark.control
def test_a_measure_drawn_by_number_is_caught(rng: np.random.Generator) -> None:
    target = target_of(component_of("Normal", 1), rows_of(("Normal", 1), rng), 1.7)
    with pytest.raises(AssertionError):
        assert_numbers_do_not_matter(CONTROLS["shifted slice"], target, rng)


@numba.njit
def _by_number(labels, stats):
    return np.arange(stats.shape[0])


def parameters_drawn_by_number(target, labels, stats, rng):
    """The marginal sampler, in which clusters get their parameters in the order of numbers."""
    begin_clusters = altered(neal8.begin_clusters, cluster_order=_by_number)
    marginal_sweep = altered(neal2.marginal_sweep, begin_clusters=begin_clusters)
    return marginal_sweep(target, labels, stats, np.zeros(len(labels)), rng)


def processors_drawn_by_number(target, labels, stats, rng):
    """Clusters that get their processors in the order of numbers, and sweeps on each."""
    draw_processors = altered(av_parallel.draw_processors, cluster_order=_by_number)
    shares, log_alone = np.array([0.6, 0.3, 0.1]), np.zeros(len(labels))
    processors = draw_processors(labels, stats, shares, rng)
    given = target, labels, stats, processors, shares, log_alone, rng
    return av_parallel.local_sweeps(*given)[0]


@pytest.mark.control
@pytest.mark.parametrize("broken", [parameters_drawn_by_number, processors_drawn_by_number])
def test_clusters_taken_by_number_are_caught(
    broken: Callable[..., np.ndarray], rng: np.random.Generator
) -> None:
    target = target_of(component_of("Normal", 1), rows_of(("Normal", 1), rng), 1.7)
    with pytest.raises(AssertionError):
        assert_numbers_do_not_matter(sweep(broken), target, rng)


@pytest.mark.control
def test_processors_that_keep_their_place_are_caught(rng: np.random.Generator) -> None:
    """Clusters get other numbers, and what is kept of them stays where it was."""
    target, differ = target_of(component_of("Normal", 1), rows_of(("Normal", 1), rng), 1.7), 0
    move = MOVES["uneven processors"]
    for seed in range(20):
        state = move(target, scattered(target, 9, rng), rng)
        wrong = renumbered(state, rng)._replace(of_clusters=state.of_clusters)
        ours, theirs = (
            move(target, given, np.random.default_rng(seed)) for given in (state, wrong)
        )
        differ += not np.array_equal(canonical(ours.labels), canonical(theirs.labels))
    assert differ > 10


# --- the order of clusters ----------------------------------------------------------------


def test_order_of_clusters_moves_with_their_numbers(rng: np.random.Generator) -> None:
    target = target_of(component_of("Poisson", 2), rows_of(("Poisson", 2), rng), 1.0)
    for n_clusters in (1, 9, 60):
        state = scattered(target, n_clusters, rng)
        order = cluster_order(*state[:2])
        assert sorted(order) == list(range(len(state.stats)))
        other = renumbered(state, rng)
        # The sequence of blocks, each known by its first member, stays.
        first = first_members(state.labels, len(state.stats))[order]
        np.testing.assert_array_equal(
            first, first_members(other.labels, len(other.stats))[cluster_order(*other[:2])]
        )


def test_twins_are_ordered_by_their_first_members() -> None:
    stats = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [1.0, 2.0]])
    labels = np.array([3, 1, 0, 1, 2], np.int32)
    order = list(cluster_order(labels, stats))
    assert [k for k in order if k != 1] == [3, 0, 2]
