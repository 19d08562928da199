"""MAP-DPM from one starting partition: alternating maximisation over labels and the law."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.collapsed.conditional_modes import LEAST_GAIN, climb_by_rows, merge_gains
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import PartitionLaw, is_possible, log_probability

# Maps the value of the variable that determines the law to its log prior density and the law.
LawPrior = Callable[[float], tuple[float, PartitionLaw]]

# Distances from the present value at which the mode of the concentration is searched: on the scale
# of the variable, usually the logarithm of alpha, or alpha itself.
_STEPS = np.concatenate((np.linspace(0.0, 5.0, 51)[1:], np.geomspace(6.0, 1000.0, 30)))
_REFINEMENTS = 6
# Above this strength, differences of log gamma functions are dominated by rounding.
_LARGEST = 1e12
# Relative change of strength and discount below which they have converged.
_SETTLED = 1e-5


class Summit(NamedTuple):
    """Result of a climb.

    Attributes
    ----------
    state : ChainState
    value : float
        Value of the variable that determines the law; not used if that is fixed.
    law : PartitionLaw
    path : ndarray of float64, shape (T,)
        The objective, eq. (12.2), after each iteration; it does not decrease.
    has_settled : bool
        Whether the last iteration moved no observation, merged no clusters and kept the law.
    """

    state: sampler.ChainState
    value: float
    law: PartitionLaw
    path: np.ndarray
    has_settled: bool

    @property
    def objective(self) -> float:
        """The objective after the last iteration."""
        return float(self.path[-1])


def climb(
    target: sampler.Target,
    labels: np.ndarray,
    rows: np.ndarray,
    max_iterations: int,
    prior: LawPrior | None = None,
    value: float = np.nan,
) -> Summit:
    """Repeat sweeps, eq. (12.1), merges and updates of the law, eq. (12.3), until nothing changes.

    Pairs of clusters are merged when a sweep moves no observation.  Sweeps alone do not repair a
    cluster that was split in two, as each observation is equally well off in either half.

    Parameters
    ----------
    target : Target
        Its law is the starting value if that is not fixed.
    labels : ndarray of int, shape (N,)
        Starting clusters 0 .. K - 1, none empty.
    rows : ndarray of int64, shape (N,)
        Order in which observations are visited.
    max_iterations : int
        Maximum number of sweeps.
    prior : callable, optional
        Prior of the law, a `LawPrior`; by default the law is fixed.
    value : float
        Argument of `prior` that gives the law of the target.

    Returns
    -------
    Summit
    """
    state, law = sampler.resume(target, labels.copy()), target.law
    path: list[float] = []
    has_settled = False
    while not has_settled and len(path) < max_iterations:
        n_moved = climb_by_rows(target, state.labels, state.stats, rows)
        state = _counted(target, state.labels)
        n_merged = 0 if n_moved else _merge(target, state)
        state = _counted(target, state.labels) if n_merged else state
        before, log_prior = law, 0.0
        if prior is not None:
            value = _mode_of_law(prior, value, state.stats[:, 0])
            log_prior, law = prior(value)
        has_settled = n_moved + n_merged == 0 and _are_close(law, before)
        target = target._replace(law=law)
        path.append(log_joint(target, state.stats) + log_prior)
    return Summit(state, value, law, np.array(path), has_settled)


def _counted(target: sampler.Target, labels: np.ndarray) -> sampler.ChainState:
    """State for labels with unused numbers; its statistics carry no rounding of earlier sweeps."""
    return sampler.resume(target, np.unique(labels, return_inverse=True)[1])


def _merge(target: sampler.Target, state: sampler.ChainState) -> int:
    """Merge pairs of clusters with positive gains in place, best first, each cluster once."""
    gains = merge_gains(target, state.stats)
    goals = np.arange(len(gains))
    is_free = np.ones(len(gains), bool)
    for a, b in zip(*np.unravel_index(np.argsort(-gains, axis=None), gains.shape), strict=True):
        if gains[a, b] <= LEAST_GAIN:
            break
        if is_free[a] and is_free[b]:
            goals[a] = b
            is_free[[a, b]] = False
    state.labels[:] = goals[state.labels]
    return len(gains) - len(np.unique(goals))


def _are_close(law: PartitionLaw, before: PartitionLaw) -> bool:
    pairs = zip(law, before, strict=True)
    return all(abs(now - then) <= _SETTLED * abs(then) for now, then in pairs)


def _mode_of_law(prior: LawPrior, value: float, sizes: np.ndarray) -> float:
    """Value that maximises eq. (12.3)."""

    def height(value: float) -> float:
        log_prior, law = prior(value)
        if not (np.isfinite(log_prior) and is_possible(law) and law.strength < _LARGEST):
            return -np.inf
        return log_prior + log_probability(law, sizes)

    return mode_on_grid(height, value)


def mode_on_grid(height: Callable[[float], float], value: float) -> float:
    """Find the highest point of a function by a wide grid and finer grids around the best point.

    Parameters
    ----------
    height : callable
        Of a float; -inf where the function is not defined.
    value : float
        Present value, usually the logarithm of a concentration; the result is not lower.

    Returns
    -------
    float
    """
    grid = np.concatenate((value - _STEPS[::-1], [value], value + _STEPS))
    for _ in range(_REFINEMENTS):
        best = int(np.argmax([height(point) for point in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        # The best point is kept in the grid, so that the height does not decrease.
        below, above = np.linspace(low, grid[best], 11)[:-1], np.linspace(grid[best], high, 11)
        grid = np.concatenate((below, above))
    return float(grid[len(below)])
