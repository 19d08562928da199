"""MAP-DPM as its paper has it (Raykov, Boukouvalas & Little 2014, Algorithm 1): sweeps alone.

`find_map` also merges clusters when no observation moves, and has starts of its own; this is to
compare with published figures.
"""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.subject import make_target
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.collapsed.conditional_modes import climb_by_rows
from pymc_dpsplit.moves.partition import log_joint

_MOST_SWEEPS = 200


class Mode(NamedTuple):
    """Where the sweeps end.

    Attributes
    ----------
    labels : ndarray of int32, shape (N,)
    alpha, log_joint : float
    n_sweeps : int
        That in which no observation moved among them.
    """

    labels: np.ndarray
    alpha: float
    log_joint: float
    n_sweeps: int


def sweeps_from(labels: np.ndarray, rows: np.ndarray, component: Any, alpha: float) -> Mode:
    """Sweep over the observations in their order until none moves, from given labels."""
    target = make_target(rows, component)
    target = target._replace(law=target.law._replace(strength=alpha))
    state, order = sampler.resume(target, labels), np.arange(len(rows))
    n_sweeps, n_moved = 0, 1
    while n_moved and n_sweeps < _MOST_SWEEPS:
        n_moved = climb_by_rows(target, state.labels, state.stats, order)
        state = sampler.resume(target, np.unique(state.labels, return_inverse=True)[1])
        n_sweeps += 1
    return Mode(state.labels, alpha, float(log_joint(target, state.stats)), n_sweeps)


def best_alpha(labels: np.ndarray, rows: np.ndarray, component: Any, alphas: np.ndarray) -> Mode:
    """Of the modes reached with each alpha from one start, that of the highest log joint."""
    modes = [sweeps_from(labels, rows, component, float(alpha)) for alpha in alphas]
    return max(modes, key=lambda mode: mode.log_joint)
