"""A few rows in groups, chains of their clusters, and statistics of the chains."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.split_merge import attempt_split_or_merge
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, start_groups
from pymc_dpsplit.hierarchical.tables import draw_tables, redraw_weights
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from tests.reference.franchise import Truth, posterior_of_groups
from tests.support.corpora import Draws
from tests.support.families import component_of, target_of, twin_of
from tests.support.partitions import partition_index

_NUMBERS = np.array([-1.3, -0.9, 0.1, 0.5, 1.6, 1.1])[:, None]
_COUNTS = np.array([0.0, 1.0, 2.0, 1.0, 6.0, 4.0])[:, None]
ROWS = {"Normal": _NUMBERS, "Poisson": _COUNTS}


class GroupedCase(NamedTuple):
    """Groups of six rows, of which there may be more than have rows, and the concentrations."""

    groups: tuple[int, ...]
    n_groups: int
    alpha: float
    gamma: float


# Three groups of two with an empty one between, two of three, one of four and two, and one group.
CASES = {
    "2202": GroupedCase((0, 3, 1, 0, 1, 3), 4, 1.0, 1.0),
    "33": GroupedCase((0, 0, 1, 0, 1, 1), 2, 2.0, 0.7),
    "42": GroupedCase((0, 1, 0, 0, 0, 1), 2, 0.5, 3.0),
    "6": GroupedCase((0, 0, 0, 0, 0, 0), 1, 1.5, 2.0),
}


def grouped_target(family: str, case: GroupedCase) -> GroupedTarget:
    """Target of the rows of a family."""
    target = target_of(component_of(family, 1), ROWS[family], case.gamma)
    groups = np.array(case.groups)
    return GroupedTarget(target, groups, np.bincount(groups, minlength=case.n_groups), case.alpha)


def truth_of_rows(family: str, case: GroupedCase) -> Truth:
    """Posterior by enumeration."""
    rows, twin = ROWS[family], twin_of(family, 1)

    def log_likelihood(labels: np.ndarray) -> float:
        return sum(twin.log_marginal(rows[labels == k]) for k in range(labels.max() + 1))

    groups = np.unique(case.groups, return_inverse=True)[1]
    return posterior_of_groups(groups, log_likelihood, case.alpha, case.gamma)


def scan_alone(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """One scan; the state, and its tables."""
    return advance_groups(target, state, rng, 1, 0)[:2]


def attempts_alone(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """Two splits or merges, without a scan."""
    stream, counts = new_stream(np.uint64(draw_key(rng))), np.zeros(4, np.int64)
    labels, stats, weights, log_rest = state
    for _ in range(2):
        stats, weights = attempt_split_or_merge(target, labels, stats, weights, rng, stream, counts)
    state = GroupedState(labels, stats, weights, log_rest)
    return state, draw_tables(target, labels, weights, rng)


def all_moves(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """What the step runs, twice."""
    return advance_groups(target, state, rng, 2, 1)[:2]


def slices_alone(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """One sweep by slices; the state, and its tables."""
    return advance_groups(target, state, rng, 1, 0, threads=1)[:2]


def all_moves_by_slices(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """What the step runs on many rows, twice."""
    return advance_groups(target, state, rng, 2, 1, threads=1)[:2]


def processors_alone(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """One scan on three processors; the state, and its tables."""
    return advance_groups(target, state, rng, 1, 0, n_processors=3)[:2]


def processors_with_attempts(target: GroupedTarget, state: GroupedState, rng: np.random.Generator):
    """Two iterations on two processors, each with an attempt."""
    return advance_groups(target, state, rng, 2, 1, n_processors=2)[:2]


MOVES = {
    "scan": scan_alone,
    "attempts": attempts_alone,
    "all": all_moves,
    "slices": slices_alone,
    "all by slices": all_moves_by_slices,
    "processors": processors_alone,
    "all on processors": processors_with_attempts,
}


def run_grouped(
    family: str, case: GroupedCase, move: str, shape: tuple[int, int], seed: int
) -> Draws:
    """Run chains of a move; `shape` is their number and their length."""
    target, n_rows = grouped_target(family, case), len(case.groups)
    labels = np.empty((*shape, n_rows), np.int64)
    n_tables, rest = np.empty(shape, np.int64), np.empty(shape)
    for c in range(shape[0]):
        rng = np.random.default_rng([seed, c])
        state = start_groups(target, 1 + c % n_rows, rng)
        for s in range(-20, shape[1]):
            state, tables = MOVES[move](target, state, rng)
            state = redraw_weights(target, state, tables, rng)
            if s >= 0:
                labels[c, s], n_tables[c, s] = state.labels, tables.sum()
                rest[c, s] = np.exp(state.log_rest)
    return Draws(partition_index(labels), labels.max(axis=2) + 1, n_tables, rest)
