"""The chain: its state, and iterations composed of moves.  Knows no PyMC.

A kernel is a composition of moves, each of which leaves the posterior of the partition
invariant on its own; the compositions are the functions in `KERNELS`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.generic import GenericPrior, empty_pool
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.anchored import anchored_attempt
from pymc_dpsplit.moves.assignment import next_sweep, slice_sweep, strip_count
from pymc_dpsplit.moves.collapsed import collapsed_scan, collapsed_sweep
from pymc_dpsplit.moves.greedy import greedy_attempt
from pymc_dpsplit.moves.informed import informed_attempt
from pymc_dpsplit.moves.kept_greedy import kept_greedy_attempt
from pymc_dpsplit.moves.kept_parameters import fit_pilots, update_parameters
from pymc_dpsplit.moves.kept_split import joint_attempt
from pymc_dpsplit.moves.measure import draw_measure, no_atoms
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.side_by_side import (
    attempt_side_by_side,
    draw_attempts,
    draw_greedy_attempts,
)
from pymc_dpsplit.moves.start import assign_to_centres, draw_n_start, nearest_centre
from pymc_dpsplit.moves.threaded_sweep import threaded_sweep

_GREEDY_ATTEMPTS, _KEPT_GREEDY_ATTEMPTS = 10, 4
# Attempts made together.  They differ in length: of eight, two threads need 0.6 of the time of one.
_AT_ONCE = 8


class ChainState(NamedTuple):
    """Partition of one chain.

    Attributes
    ----------
    labels : ndarray of int32, shape (N,)
        Cluster 0 .. K - 1 of each observation.
    stats : ndarray of float64, shape (K, S)
        Sufficient statistics of each cluster; element 0 is its size.
    """

    labels: np.ndarray
    stats: np.ndarray


class Target(NamedTuple):
    """What the chain samples: kernel form of the prior, observations (N, D), concentration.

    The observations are in the form that kernels of the family read, see `Component.arranged`.
    """

    prior: Any
    data: Any
    alpha: float


class Measure(NamedTuple):
    """Occupied part of the random measure, clusters by decreasing weight.

    Attributes
    ----------
    weights : ndarray of float64, shape (K,)
    log_rest : float
        Logarithm of the weight of everything not yet seen.
    params : ndarray of float64, shape (K, P)
    rank : ndarray of int64, shape (K,)
        Row in which each cluster of the chain stands here.
    """

    weights: np.ndarray
    log_rest: float
    params: np.ndarray
    rank: np.ndarray


def start(target: Target, rng: np.random.Generator, n_start: int | None = None) -> ChainState:
    """Draw an over-dispersed starting partition.

    Parameters
    ----------
    target : Target
    rng : numpy.random.Generator
    n_start : int, optional
        Number of clusters to start from; by default drawn log-uniformly from 1 .. min(50, N).

    Returns
    -------
    ChainState
        With at most `n_start` clusters.
    """
    n_obs = target.data.shape[0]
    n_centres = draw_n_start(rng, n_obs) if n_start is None else min(n_start, n_obs)
    centres = rng.choice(n_obs, n_centres, replace=False)
    labels = np.zeros(n_obs, np.int32)
    if isinstance(target.prior, GenericPrior):
        return resume(target, nearest_centre(target.prior, target.data, centres))
    assign_to_centres(target.prior, target.data, centres, labels)
    return resume(target, labels)


def resume(target: Target, labels: np.ndarray) -> ChainState:
    """State of a chain from its labels.

    Parameters
    ----------
    target : Target
    labels : ndarray of int, shape (N,)
        Clusters 0 .. K - 1, each occupied.

    Returns
    -------
    ChainState
    """
    own = np.ascontiguousarray(labels, dtype=np.int32)
    if isinstance(target.prior, GenericPrior):
        return ChainState(own, fit_pilots(target.prior, target.data, own, int(own.max()) + 1))
    return ChainState(own, gather_stats(target.prior, target.data, own, int(own.max()) + 1))


class Plan(NamedTuple):
    """How a draw is spent; made during tuning, then frozen.

    Attributes
    ----------
    n_iterations : int
        Iterations per draw.
    attempts : float
        Split/merge attempts per iteration, on average.
    focus : ndarray of int64, shape (M,)
        Observations with a collapsed scan of their own in every iteration.
    """

    n_iterations: int
    attempts: float
    focus: np.ndarray


@kernel
def _whole(number, rng):
    """Round a number up or down at random, so that its mean stays."""
    return int(number) + (1 if rng.random() < number - int(number) else 0)


@kernel
def _n_attempts(attempts, n_obs, rng):
    """Number of attempts in an iteration, on average as many as planned.

    Where threads can share them, several together in one of several iterations.
    """
    at_once = 1 if attempts == int(attempts) or strip_count(n_obs) == 1 else _AT_ONCE
    return at_once * _whole(attempts / at_once, rng)


@kernel
def _scan_list(prior, data, labels, stats, alpha, rng, plan):
    if plan.focus.shape[0] > 0:
        stats = collapsed_scan(prior, data, labels, stats, plan.focus, alpha, rng)
    return stats


@kernel
def _finish_exact(prior, data, labels, stats, alpha, rng, plan, tally):
    """The moves of an exact iteration after the slice sweep."""
    stats = _scan_list(prior, data, labels, stats, alpha, rng, plan)
    for _ in range(_n_attempts(plan.attempts, labels.shape[0], rng)):
        if rng.random() < 0.5:
            stats = anchored_attempt(prior, data, labels, stats, alpha, rng, tally)
        else:
            stats = informed_attempt(prior, data, labels, stats, alpha, rng, tally)
    return stats


@kernel
def _n_greedy(plan):
    return max(int(plan.attempts), _GREEDY_ATTEMPTS)


@kernel
def _finish_greedy(prior, data, labels, stats, alpha, rng, plan, tally):
    """The moves of a tuning iteration after the slice sweep; not invariant."""
    for _ in range(_n_greedy(plan)):
        stats = greedy_attempt(prior, data, labels, stats, alpha, rng, tally)
    return stats


@kernel
def _iterate_exact(prior, data, labels, stats, alpha, rng, plan, tally):
    atoms = no_atoms(prior)
    for _ in range(plan.n_iterations):
        stats, atoms = next_sweep(prior, data, labels, stats, alpha, rng, atoms)
        stats = _finish_exact(prior, data, labels, stats, alpha, rng, plan, tally)
    return stats


@kernel
def _iterate_greedy(prior, data, labels, stats, alpha, rng, plan, tally):
    stats = slice_sweep(prior, data, labels, stats, alpha, rng)
    return _finish_greedy(prior, data, labels, stats, alpha, rng, plan, tally)


@kernel
def _iterate_collapsed(prior, data, labels, stats, alpha, rng, plan, tally):
    for _ in range(plan.n_iterations):
        stats = collapsed_sweep(prior, data, labels, stats, alpha, rng)
    return stats


@kernel
def _finish_kept(prior, data, labels, stats, alpha, rng, plan, tally):
    """The moves of an iteration after the sweep, of families whose parameters are kept."""
    stats = update_parameters(prior, data, labels, stats, rng)
    for _ in range(_whole(plan.attempts, rng)):
        stats = joint_attempt(prior, data, labels, stats, alpha, rng, tally)
    return stats


@kernel
def _finish_kept_greedy(prior, data, labels, stats, alpha, rng, plan, tally):
    """The same in early tuning; not invariant."""
    stats = update_parameters(prior, data, labels, stats, rng)
    for _ in range(_KEPT_GREEDY_ATTEMPTS):
        stats = kept_greedy_attempt(prior, data, labels, stats, alpha, rng, tally)
    return update_parameters(prior, data, labels, stats, rng)


@kernel
def _iterate_kept_greedy(prior, data, labels, stats, alpha, rng, plan, tally):
    stats = slice_sweep(prior, data, labels, stats, alpha, rng)
    return _finish_kept_greedy(prior, data, labels, stats, alpha, rng, plan, tally)


@kernel
def _iterate_kept(prior, data, labels, stats, alpha, rng, plan, tally):
    for _ in range(plan.n_iterations):
        stats = slice_sweep(prior, data, labels, stats, alpha, rng)
        stats = _finish_kept(prior, data, labels, stats, alpha, rng, plan, tally)
    return stats


def _finish_exact_in_threads(
    prior: Any,
    data: Any,
    labels: np.ndarray,
    stats: np.ndarray,
    alpha: float,
    rng: np.random.Generator,
    plan: Plan,
    tally: np.ndarray,
    pool: ThreadPoolExecutor,
) -> np.ndarray:
    """Do what `_finish_exact` does, the attempts shared out to threads."""
    stats = _scan_list(prior, data, labels, stats, alpha, rng, plan)
    attempts = draw_attempts(_n_attempts(plan.attempts, len(labels), rng), rng)
    width = len(attempts)
    return attempt_side_by_side(prior, data, labels, stats, alpha, attempts, tally, pool, width)


def _finish_greedy_in_threads(
    prior: Any,
    data: Any,
    labels: np.ndarray,
    stats: np.ndarray,
    alpha: float,
    rng: np.random.Generator,
    plan: Plan,
    tally: np.ndarray,
    pool: ThreadPoolExecutor,
) -> np.ndarray:
    """Do what `_finish_greedy` does, the attempts shared out to threads."""
    attempts = draw_greedy_attempts(_n_greedy(plan), rng)
    # No more than threads: many are accepted and upset those after them.
    width = pool._max_workers
    return attempt_side_by_side(prior, data, labels, stats, alpha, attempts, tally, pool, width)


def _on_one_thread(compiled: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Adapt moves that have no use for the pool, which is the last argument."""
    return lambda *arguments: compiled(*arguments[:-1])


class KernelForm(NamedTuple):
    """A kernel: its iterations on one thread, and the part that follows a threaded sweep."""

    iterate: Callable[..., np.ndarray]
    finish: Callable[..., np.ndarray] | None


KERNELS: dict[str, KernelForm] = {
    "exact": KernelForm(_iterate_exact, _finish_exact_in_threads),
    "collapsed": KernelForm(_iterate_collapsed, None),
}
GREEDY = KernelForm(_iterate_greedy, _finish_greedy_in_threads)
# What takes their place where nothing can be integrated out.
_KEPT = KernelForm(_iterate_kept, _on_one_thread(_finish_kept))
_KEPT_GREEDY = KernelForm(_iterate_kept_greedy, _on_one_thread(_finish_kept_greedy))


def advance(
    form: KernelForm,
    target: Target,
    state: ChainState,
    rng: np.random.Generator,
    plan: Plan,
    pool: ThreadPoolExecutor | None = None,
) -> tuple[ChainState, np.ndarray]:
    """Run the iterations of one draw.

    Parameters
    ----------
    form : KernelForm
    target : Target
    state : ChainState
        Left untouched.
    rng : numpy.random.Generator
        Advanced.
    plan : Plan
    pool : ThreadPoolExecutor, optional
        Threads for the sweep and the attempts; the draws do not depend on it.

    Returns
    -------
    state : ChainState
    tally : ndarray of int64, shape (4,)
        What split/merge moves did, see `moves.tally`.
    """
    prior, data, alpha = target
    labels, stats = state.labels.copy(), state.stats
    tally = np.zeros(4, np.int64)
    if isinstance(prior, GenericPrior):
        form = _KEPT_GREEDY if form is GREEDY else _KEPT
        empty_pool(prior)
    if pool is None or form.finish is None or strip_count(labels.shape[0]) == 1:
        stats = form.iterate(prior, data, labels, stats, alpha, rng, plan, tally)
        return ChainState(labels, stats), tally
    atoms = no_atoms(prior)
    for _ in range(1 if form in (GREEDY, _KEPT_GREEDY) else plan.n_iterations):
        stats, atoms = threaded_sweep(prior, data, labels, stats, alpha, rng, atoms, pool)
        stats = form.finish(prior, data, labels, stats, alpha, rng, plan, tally, pool)
    return ChainState(labels, stats), tally


def measure(target: Target, state: ChainState, rng: np.random.Generator) -> Measure:
    """Draw weights and parameters given the partition.

    Parameters
    ----------
    target : Target
    state : ChainState
    rng : numpy.random.Generator

    Returns
    -------
    Measure
    """
    log_weights, log_rest, params = draw_measure(target.prior, state.stats, target.alpha, rng)
    order = np.argsort(-log_weights, kind="stable")
    return Measure(np.exp(log_weights[order]), log_rest, params[order], np.argsort(order))
