"""Iterations of a draw of rows in groups: what they cost, and how many there are."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.hierarchical.parameters import keeps_parameters
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget
from pymc_dpsplit.moves.conjugate import CONJUGATE
from pymc_dpsplit.moves.cost import visit_cost
from pymc_dpsplit.moves.nonconjugate.iterations import NONCONJUGATE
from pymc_dpsplit.tuning.history import RESCHEDULE_EVERY, empty_history, record, review
from pymc_dpsplit.tuning.iterations import (
    draws_wanted,
    iterations_of_fast_chain,
    iterations_wanted,
    most_iterations,
)

# Nanoseconds of a draw beside its iterations.
_BESIDE = 4e5
# A sweep by slices takes longer by what the weights of groups cost.
_GROUPS_OF_A_SWEEP = 1.6


class TuningProgress(NamedTuple):
    """Draws of a chain, and what they have shown of its mixing.

    Attributes
    ----------
    n_tune, n_done : int
        Number of tuning draws, and of draws made, tuning included.
    n_iterations : int
        Of a draw.
    least : int
        Number of iterations of a chain that mixes fast.
    history : ndarray of float64, shape (T, 3)
        See `tuning.history.review`.
    """

    n_tune: int
    n_done: int
    n_iterations: int
    least: int
    history: np.ndarray


def before_tuning(n_tune: int) -> TuningProgress:
    """Return the progress of a chain that is to begin."""
    return TuningProgress(n_tune, 0, 1, 1, empty_history(n_tune))


def cost_of_iteration(
    target: GroupedTarget, state: GroupedState, n_attempts: int, is_by_slices: bool
) -> float:
    """Approximate cost of an iteration in nanoseconds.

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
    n_attempts : int
        Splits and merges attempted in an iteration.
    is_by_slices : bool
        Whether rows are visited by slices, and not one by one.

    Returns
    -------
    float
    """
    of_rows, n_rows = target.of_rows, len(state.labels)
    n_clusters, n_statistics = state.stats.shape
    moves = NONCONJUGATE if keeps_parameters(of_rows.prior) else CONJUGATE
    attempts = n_attempts * moves.attempt_cost(of_rows, n_clusters)
    if not is_by_slices:
        return n_rows * visit_cost(of_rows, n_clusters) + attempts
    n_sticks = of_rows.law.strength * float(np.log1p(n_rows))
    sweep = moves.sweep_cost(of_rows, n_clusters, n_statistics, n_sticks, n_clusters + n_sticks)
    return _GROUPS_OF_A_SWEEP * sweep + attempts


def planned(progress: TuningProgress, state: GroupedState, cost: float) -> TuningProgress:
    """Choose the iterations of the next draw.

    Parameters
    ----------
    progress : TuningProgress
    state : GroupedState
    cost : float
        Of an iteration at the state, in nanoseconds.

    Returns
    -------
    TuningProgress
        In the first half of tuning with the iterations of a chain that mixes fast, then as
        `tuning.history.review` finds, and unchanged after tuning.
    """
    n_tune, n_done, n_iterations, least, history = progress
    first_half = n_tune - n_tune // 2
    if n_done <= first_half and (n_done % RESCHEDULE_EVERY == 0 or n_done == first_half):
        n_iterations = least = iterations_of_fast_chain(cost, len(state.labels), _BESIDE)
    if n_done <= n_tune:

        def adapted(draws_per_time: float, n_draws: int) -> int:
            per_time = draws_wanted(draws_per_time, n_draws)
            wanted = iterations_wanted(n_iterations, draws_per_time, per_time)
            return max(least, min(wanted, most_iterations(cost)))

        n_iterations, history = review(n_iterations, adapted, history, n_tune, n_done)
    return TuningProgress(n_tune, n_done, n_iterations, least, history)


def with_draw(progress: TuningProgress, stats: Mapping[str, Any], name: str) -> TuningProgress:
    """Count a draw, and record its statistics.

    Parameters
    ----------
    progress : TuningProgress
        Its history is modified.
    stats : mapping
        Sampler statistics of the draw.
    name : str
        Name of the mixture.

    Returns
    -------
    TuningProgress
    """
    n_done = progress.n_done + 1
    record(progress.history, progress.n_tune, n_done, stats, name)
    return progress._replace(n_done=n_done)
