"""MAP-DPM from one starting partition: labels and concentration, in turn, to their modes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.conditional_modes import LEAST_GAIN, climb_by_rows, merge_gains
from pymc_dpsplit.moves.partition import log_joint, log_n_clusters

# From the value of the variable behind alpha to its log prior density and alpha.
AlphaPrior = Callable[[float], tuple[float, float]]

# Distances from the present value at which the mode of the concentration is looked for: of the
# logarithm of alpha as a rule, or of alpha itself.
_STEPS = np.concatenate((np.linspace(0.0, 5.0, 51)[1:], np.geomspace(6.0, 1000.0, 30)))
_REFINEMENTS = 6
# Beyond it, differences of log gamma functions are rounding.
_LARGEST = 1e12
# Relative change of alpha below which it has settled.
_SETTLED = 1e-5


class Summit(NamedTuple):
    """Where a climb ended.

    Attributes
    ----------
    state : ChainState
    value : float
        Of the variable behind alpha; alpha itself where that is fixed.
    alpha : float
    path : ndarray of float64, shape (T,)
        The objective, eq. (126), after each iteration; it never falls.
    has_settled : bool
        Whether the last iteration moved no observation, joined no clusters and left alpha.
    """

    state: sampler.ChainState
    value: float
    alpha: float
    path: np.ndarray
    has_settled: bool

    @property
    def objective(self) -> float:
        """The objective at the end."""
        return float(self.path[-1])


def climb(
    target: sampler.Target,
    labels: np.ndarray,
    rows: np.ndarray,
    max_iterations: int,
    prior: AlphaPrior | None = None,
    value: float = np.nan,
) -> Summit:
    """Repeat sweeps, eq. (125), merges and the mode of alpha, eq. (127), until nothing moves.

    Merges, of pairs of clusters, are made when a sweep moves no observation: none can leave a
    half of a cluster that was split in two, as each alone is as well off in either.

    Parameters
    ----------
    target : Target
        Its alpha is where a concentration that is not fixed starts.
    labels : ndarray of int, shape (N,)
        Start; clusters 0 .. K - 1, each occupied.
    rows : ndarray of int64, shape (N,)
        Order in which observations are visited.
    max_iterations : int
        Most sweeps.
    prior : callable, optional
        If alpha is to be maximised over.
    value : float
        Its argument at the alpha of the target.

    Returns
    -------
    Summit
    """
    state, alpha = sampler.resume(target, labels.copy()), target.alpha
    value = alpha if prior is None else value
    path: list[float] = []
    has_settled = False
    while not has_settled and len(path) < max_iterations:
        n_moved = climb_by_rows(target.prior, target.data, state.labels, state.stats, alpha, rows)
        state = _counted(target, state.labels)
        n_merged = 0 if n_moved else _merge(target, state, alpha)
        state = _counted(target, state.labels) if n_merged else state
        before, log_prior = alpha, 0.0
        if prior is not None:
            value = _mode_of_alpha(prior, value, len(state.stats), len(labels))
            log_prior, alpha = prior(value)
        has_settled = n_moved + n_merged == 0 and abs(alpha - before) <= _SETTLED * before
        path.append(log_joint(target.prior, state.stats, alpha) + log_prior)
    return Summit(state, value, alpha, np.array(path), has_settled)


def _counted(target: sampler.Target, labels: np.ndarray) -> sampler.ChainState:
    """State of labels that skip numbers; its statistics hold no rounding of earlier sweeps."""
    return sampler.resume(target, np.unique(labels, return_inverse=True)[1])


def _merge(target: sampler.Target, state: sampler.ChainState, alpha: float) -> int:
    """Join pairs of clusters that gain by it, best first and each once; changes the labels."""
    gains = merge_gains(target.prior, state.stats, alpha)
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


def _mode_of_alpha(prior: AlphaPrior, value: float, n_clusters: int, n_obs: int) -> float:
    """Value at which eq. (127) is highest: the best of a wide grid, and of ever finer ones."""

    def height(value: float) -> float:
        log_prior, alpha = prior(value)
        if not (np.isfinite(log_prior) and 0.0 < alpha < _LARGEST):
            return -np.inf
        return log_prior + log_n_clusters(n_clusters, n_obs, alpha)

    grid = np.concatenate((value - _STEPS[::-1], [value], value + _STEPS))
    for _ in range(_REFINEMENTS):
        best = int(np.argmax([height(point) for point in grid]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        # The best point itself is kept: the height must not fall.
        below, above = np.linspace(low, grid[best], 11)[:-1], np.linspace(grid[best], high, 11)
        grid = np.concatenate((below, above))
    return float(grid[len(below)])
