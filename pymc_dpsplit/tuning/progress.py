"""Iterations of a chain that are chosen while it is tuned, by what its draws show."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.tuning.history import RESCHEDULE_EVERY, empty_history, record, review
from pymc_dpsplit.tuning.iterations import (
    draws_wanted,
    iterations_of_fast_chain,
    iterations_wanted,
    most_iterations,
)

# Nanoseconds of a draw beside its iterations.
_BESIDE = 4e5


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

    @property
    def n_kept(self) -> int:
        """Number of draws after tuning; negative as long as draws of tuning are left."""
        return self.n_done - self.n_tune


def before_tuning(n_tune: int) -> TuningProgress:
    """Return the progress of a chain that is to begin."""
    return TuningProgress(n_tune, 0, 1, 1, empty_history(n_tune))


def planned(progress: TuningProgress, n_rows: int, cost: float) -> TuningProgress:
    """Choose the iterations of the next draw.

    Parameters
    ----------
    progress : TuningProgress
    n_rows : int
        With which the time of a draw beside its iterations grows.
    cost : float
        Of an iteration at the present state, in nanoseconds.

    Returns
    -------
    TuningProgress
        In the first half of tuning with the iterations of a chain that mixes fast, then as
        `tuning.history.review` finds, and unchanged after tuning.
    """
    n_tune, n_done, n_iterations, least, history = progress
    first_half = n_tune - n_tune // 2
    if n_done <= first_half and (n_done % RESCHEDULE_EVERY == 0 or n_done == first_half):
        n_iterations = least = iterations_of_fast_chain(cost, n_rows, _BESIDE)
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


class TunedIterations:
    """What a step has whose iterations per draw are chosen in tuning.

    Attributes
    ----------
    iterations : int or None
        As the user gives them.
    progress : TuningProgress
    """

    iterations: int | None
    progress: TuningProgress

    @property
    def tuning(self) -> tuple[Any, ...]:
        """The progress as a plain tuple, which a checkpoint can store."""
        return tuple(self.progress)

    @tuning.setter
    def tuning(self, fields: tuple[Any, ...]) -> None:
        self.progress = TuningProgress(*fields) if fields else before_tuning(0)

    def chosen_iterations(self, n_rows: int, cost: float) -> int:
        """Return the iterations of the next draw.

        Parameters
        ----------
        n_rows : int
            With which the time of a draw beside its iterations grows.
        cost : float
            Of an iteration at the present state, in nanoseconds.

        Returns
        -------
        int
        """
        if self.iterations is not None:
            return self.iterations
        self.progress = planned(self.progress, n_rows, cost)
        return self.progress.n_iterations
