"""How to spend a draw: how many iterations, and which observations get a scan of their own.

Plans are made during tuning and frozen before the first draw that counts.  Work is counted, not
timed, so that one seed always gives the same draws.
"""

import math
from typing import Any

import numpy as np
from arviz_stats.base import array_stats  # type: ignore[attr-defined]

from pymc_dpsplit.components.generic import GenericPrior
from pymc_dpsplit.moves.focus import choose_focus, log_founding_odds
from pymc_dpsplit.sampler import ChainState, Plan, Target

# Nanoseconds per draw.  PyMC itself spends about 0.3 ms on one, more so with NUTS beside us: as
# much again is not felt.  With more rows a draw gets more, so that from 1e5 rows on the kernels
# have some 95 % of the time.  The most is what a chain that mixes badly is given.
_LEAST, _LEAST_PER_ROW, _LEAST_OF_MANY, _MOST = 4e5, 120.0, 1.2e7, 5e7
_MOST_ITERATIONS = 100
# Draws wanted to an autocorrelation time.  Few: an iteration costs less than PyMC's part of a
# draw, and what a thousand draws tell should be worth several hundred independent ones.
_DRAWS_PER_TIME = 1.5
# Time for the collapsed scan and for split/merge attempts, in times that of the sweep.  Once a
# chain has arrived the sweep does most of the mixing; attempts keep it from being stuck.
_FOCUS_SHARE, _ATTEMPTS_SHARE = 2.0, 0.15
# The scan is not parallel: with more rows it gets less, and from 1e5 on a third of the sweep.
_FOCUS_ROWS = 3e4
_MOST_ATTEMPTS = 2.0
# With fewer features the sweep's own births fit often enough that the scan does not pay.
_FOCUS_FROM_FEATURES = 5
# Of sparse rows: a multiplication and addition for each entry and cluster, from a table; and a
# gamma variable for each column and cluster.
_WORK_PER_ENTRY, _PER_COLUMN = 8.0, 30.0
# Where densities are PyTensor's: nanoseconds of one, how often a slice sampler evaluates it for
# each parameter, and an attempt for each row.
_DENSITY, _STEPS_OF_SLICE, _EVALUATIONS_OF_ATTEMPT = 7.0, 7.0, 40.0
# Fewer draws say nothing about autocorrelation.
_LEAST_HISTORY = 50


def _work(data: Any) -> float:
    """Size of an observation, in multiplications under full covariance."""
    n_obs, n_features = data.shape
    if _is_sparse(data):
        return _WORK_PER_ENTRY * len(data.indices) / n_obs
    return n_features * (n_features + 1.0)


def _is_sparse(data: Any) -> bool:
    return hasattr(data, "indices")


def _column_cost(target: Target) -> float:
    """Nanoseconds of going once through the columns of a cluster, where these are many."""
    return target.data.shape[1] * _PER_COLUMN if _is_sparse(target.data) else 0.0


def _sweep_cost(target: Target, n_clusters: int) -> float:
    n_obs, work = target.data.shape[0], _work(target.data)
    # About alpha log(N) atoms are created; some 5 alpha of them are in reach of a tile.
    created = target.alpha * math.log1p(n_obs)
    evaluated = n_clusters + min(created, 5.0 * target.alpha)
    if isinstance(target.prior, GenericPrior):
        # A density that PyTensor compiled, for each atom, and then for each step of a slice.
        n_parameters = target.prior.widths.shape[0]
        steps = _STEPS_OF_SLICE * n_parameters
        per_row = 10.0 + _DENSITY * (evaluated + steps)
        return 2e4 + 2e3 * created + 3e2 * steps * n_clusters + n_obs * per_row
    per_row = 10.0 + 0.05 * work + evaluated * (0.7 + 0.012 * work)
    drawn = (n_clusters + created) * _column_cost(target)
    return 5e3 + 1e3 * created + n_obs * per_row + drawn


def _visit_cost(work: float, n_clusters: int) -> float:
    return (n_clusters + 1.0) * (80.0 + 2.0 * work)


def _attempt_cost(target: Target, n_clusters: int) -> float:
    # Large clusters are chosen more often: a typical one has twice the mean size.
    typical = 2.0 * target.data.shape[0] / (n_clusters + 1.0)
    if isinstance(target.prior, GenericPrior):
        return 2e5 + _DENSITY * _EVALUATIONS_OF_ATTEMPT * typical
    # Two clusters fitted seven times, and half the time the marginals of all pairs with one.
    columns = (14.0 + n_clusters) * _column_cost(target)
    return 1e4 + (40.0 + _work(target.data)) * typical + columns


def _cost(kernel_name: str, target: Target, state: ChainState, plan: Plan) -> float:
    """Nanoseconds of an iteration, roughly, on the reference machine."""
    n_obs, n_clusters = target.data.shape[0], len(state.stats)
    visit = _visit_cost(_work(target.data), n_clusters)
    if kernel_name == "collapsed":
        return n_obs * visit
    attempts = plan.attempts * _attempt_cost(target, n_clusters)
    return _sweep_cost(target, n_clusters) + attempts + len(plan.focus) * visit


def _iterations_within(nanoseconds: float, cost: float) -> int:
    return max(1, min(_MOST_ITERATIONS, int(nanoseconds / cost)))


def make_plan(
    kernel_name: str, target: Target, state: ChainState, attempts: int | None = None
) -> Plan:
    """Plan for the present state, with as many iterations as cost little.

    Parameters
    ----------
    kernel_name : str
        A key of `sampler.KERNELS`.
    target : Target
    state : ChainState
        Taken as typical.
    attempts : int, optional
        Split/merge attempts per iteration; by default as many as cost 15 % of the sweep.

    Returns
    -------
    Plan
    """
    focus = np.empty(0, np.int64)
    (n_obs, n_features), n_clusters = target.data.shape, len(state.stats)
    sweep = _sweep_cost(target, n_clusters)
    # Of sparse rows a scan holds statistics of every cluster twice, and a cluster has always fewer
    # members than statistics, so that all would be visited.
    has_scan = not (isinstance(target.prior, GenericPrior) or _is_sparse(target.data))
    may_scan = kernel_name != "collapsed" and has_scan
    if may_scan and n_features >= _FOCUS_FROM_FEATURES:
        odds = log_founding_odds(target.prior, target.data, state.stats, target.alpha)
        share = min(_FOCUS_SHARE, _FOCUS_ROWS / n_obs)
        visit = _visit_cost(_work(target.data), n_clusters)
        focus = choose_focus(odds, int(share * sweep / visit))
    wanted = float(attempts or 0)
    if attempts is None:
        affordable = _ATTEMPTS_SHARE * sweep / _attempt_cost(target, n_clusters)
        wanted = min(_MOST_ATTEMPTS, affordable)
    plan = Plan(1, wanted, focus)
    cost = _cost(kernel_name, target, state, plan)
    least = min(_LEAST + _LEAST_PER_ROW * n_obs, _LEAST_OF_MANY)
    return plan._replace(n_iterations=_iterations_within(least, cost))


def lengthen(
    plan: Plan, kernel_name: str, target: Target, state: ChainState, draws_per_time: float
) -> Plan:
    """Give a chain that mixes slowly more iterations per draw.

    Parameters
    ----------
    plan : Plan
    kernel_name : str
    target : Target
    state : ChainState
    draws_per_time : float
        Autocorrelation time observed under `plan`, in draws.

    Returns
    -------
    Plan
        With about three draws to two autocorrelation times, if that costs at most 50 ms a draw,
        and no fewer iterations than `plan`.
    """
    wanted = int(np.ceil(plan.n_iterations * draws_per_time / _DRAWS_PER_TIME))
    allowed = _iterations_within(_MOST, _cost(kernel_name, target, state, plan))
    return plan._replace(n_iterations=max(plan.n_iterations, min(wanted, allowed)))


def autocorrelation_time(history: np.ndarray) -> float:
    """Longest autocorrelation time of the columns (T, q), in rows; 1 if T is small."""
    varying = history[:, np.ptp(history, axis=0) > 0] if len(history) else history
    if len(history) < _LEAST_HISTORY or not varying.shape[1]:
        return 1.0
    sizes = [array_stats.ess(column[None], chain_axis=0, draw_axis=1) for column in varying.T]
    return float(len(history) / min(sizes))
