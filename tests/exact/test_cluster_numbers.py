"""How clusters are numbered changes nothing but numbers: every move, kernel and composition.

Two chains in the same partition, whose clusters have other numbers, draw the same partitions from
the same random numbers.  So numbers carry nothing from one move to the next.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.cluster_order import cluster_order, first_members
from pymc_dpsplit.moves.measure import Atoms, no_atoms
from pymc_dpsplit.moves.sweep.assignment import next_sweep
from pymc_dpsplit.moves.sweep.threaded_sweep import threaded_sweep
from tests.support.controls import CONTROLS
from tests.support.families import FAMILIES, component_of, dataset_of, target_of
from tests.support.moves import MOVES
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
    """Return the same partition under other numbers."""
    number = rng.permutation(len(state.stats))
    stats = np.empty_like(state.stats)
    stats[number] = state.stats
    return sampler.ChainState(number[state.labels].astype(np.int32), stats)


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
