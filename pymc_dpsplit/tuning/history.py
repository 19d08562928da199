"""What the second half of tuning shows of a chain, and the iterations per draw that follow from it.

A chain that mixes slowly shows it only over many iterations.  If after three quarters of tuning it
seems to need twice as many per draw or more, the last quarter has them, and the iterations of the
draws that are kept follow from that quarter alone.  A single cluster that lives for long can make
a fast chain look slow.  Then the draws of the last quarter are nearly independent, which tells only
that fewer iterations do, so that half-way it goes on with a quarter of them, and so on.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# Statistics of the partition by which mixing is judged.
RECORDED = ("occupied", "entropy", "log_joint")
# Number of draws between two schedules in the first half of tuning.
RESCHEDULE_EVERY = 25
# Fewer draws give no useful estimate of autocorrelation.
_LEAST_HISTORY = 50


def empty_history(n_tune: int) -> np.ndarray:
    """Room for the statistics of the second half of so many draws of tuning."""
    return np.empty((n_tune // 2, len(RECORDED)))


def record(
    history: np.ndarray, n_tune: int, n_done: int, stats: Mapping[str, Any], mixture_name: str
) -> None:
    """Record the statistics of the last of `n_done` draws, if `history` is of draws as late."""
    row = n_done - 1 - (n_tune - len(history))
    if 0 <= row < len(history):
        history[row] = [stats[f"{mixture_name}_{key}"] for key in RECORDED]


def draws_with_one_schedule(history: np.ndarray, n_tune: int, n_done: int) -> float:
    """Return the number of draws from this one to the next that may have another schedule.

    Parameters
    ----------
    history : ndarray of float64, shape (T, 3)
        See `review`.
    n_tune, n_done : int
        Number of tuning draws, and of draws made.

    Returns
    -------
    float
        Infinity after tuning.
    """
    first = n_tune - len(history)
    changes = [first, first + len(history) // 2, n_tune]
    if n_done < first:
        changes.append(n_done + RESCHEDULE_EVERY - n_done % RESCHEDULE_EVERY)
    return min((change for change in changes if change > n_done), default=np.inf) - n_done


def review(
    n_iterations: int,
    adapted: Callable[[float, int], int],
    history: np.ndarray,
    n_tune: int,
    n_done: int,
) -> tuple[int, np.ndarray]:
    """Choose the iterations of a draw after three quarters of tuning, later, and at its end.

    Parameters
    ----------
    n_iterations : int
    adapted : callable
        ``(draws_per_time, n_draws) -> n_iterations``: the iterations of a chain in whose last
        `n_draws` draws the longest autocorrelation time was so many draws.
    history : ndarray of float64, shape (T, 3)
        Statistics of the last T draws of tuning, as far as they are done.
    n_tune, n_done : int
        Number of tuning draws, and of draws made.

    Returns
    -------
    n_iterations : int
        As it was, but when half of `history` is done and at the end of tuning.
    history : ndarray of float64, shape (T', 3)
        Without the draws that had less than half, or more than twice, as many iterations.
    """
    n_recorded = n_done - (n_tune - len(history))
    is_end = n_done == n_tune
    if not (is_end or n_recorded == len(history) // 2):
        return n_iterations, history
    wanted = adapted(autocorrelation_time(history[:n_recorded]), n_recorded)
    whole = n_tune // 2
    has_fallen = len(history) < whole - whole // 2
    if has_fallen and wanted > n_iterations:
        # That fewer do was seen in more draws than are left.
        wanted = n_iterations
    if is_end:
        return wanted, history
    grows = len(history) == whole and wanted >= 2 * n_iterations
    falls = 2 * wanted <= n_iterations
    if (grows or falls) and n_recorded >= _LEAST_HISTORY:
        return wanted, history[n_recorded:]
    return n_iterations, history


def autocorrelation_time(history: np.ndarray) -> float:
    """Longest autocorrelation time of the columns of `history`, in rows; 1 if there are few rows.

    Parameters
    ----------
    history : ndarray of float64, shape (T, q)

    Returns
    -------
    float
    """
    varying = history[:, np.ptp(history, axis=0) > 0] if len(history) else history
    if len(history) < _LEAST_HISTORY or not varying.shape[1]:
        return 1.0
    # Imported here, as it takes as long as all imports needed to declare a mixture.
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    sizes = [array_stats.ess(column[None], chain_axis=0, draw_axis=1) for column in varying.T]
    return float(len(history) / min(sizes))
