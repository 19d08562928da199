"""Iterations of a chain of rows in groups."""

import numpy as np

from pymc_dpsplit.components.nonconjugate.compiled_prior import empty_pool
from pymc_dpsplit.hierarchical.kept_parameters import move_parameters_and_clusters
from pymc_dpsplit.hierarchical.parameters import keeps_parameters
from pymc_dpsplit.hierarchical.processors import scan_on_processors
from pymc_dpsplit.hierarchical.scan import scan_rows
from pymc_dpsplit.hierarchical.slices import sweep_groups
from pymc_dpsplit.hierarchical.split_merge import attempt_split_or_merge
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget
from pymc_dpsplit.hierarchical.tables import draw_tables, redraw_weights
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.sweep.density import log_prior_predictive_of_rows
from pymc_dpsplit.moves.tables import draw_global_weights


@jitted
def attempt_in_groups(target, labels, stats, weights, rng, n_attempts, acceptance_counts):
    """Attempt splits and merges; return statistics and weights.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
    rng : numpy.random.Generator
    n_attempts : int
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
    """
    stream = new_stream(draw_key(rng))
    for _ in range(n_attempts):
        stats, weights = attempt_split_or_merge(
            target, labels, stats, weights, rng, stream, acceptance_counts
        )
    return stats, weights


@jitted
def iterate_groups(
    target, labels, stats, weights, log_rest, rng, n_iterations, n_attempts, acceptance_counts
):
    """Run iterations of splits, merges and a scan of all rows, see `advance_groups`.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
    log_rest : float
    rng : numpy.random.Generator
    n_iterations, n_attempts : int
    acceptance_counts : ndarray of int64, shape (4,)
        Added to.

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
    log_rest : float
    tables : ndarray of int64, shape (K',)
    """
    prior, data, law = target.of_rows
    log_alone = log_prior_predictive_of_rows(prior, data, np.arange(labels.shape[0]))
    tables = np.zeros(0, np.int64)
    for t in range(n_iterations):
        if t > 0:
            weights, log_rest = draw_global_weights(rng, tables, law.strength)
        stats, weights = attempt_in_groups(
            target, labels, stats, weights, rng, n_attempts, acceptance_counts
        )
        stats, weights, log_rest = scan_rows(
            target, labels, stats, weights, log_rest, rng, log_alone
        )
        tables = draw_tables(target, labels, weights, rng)
    return stats, weights, log_rest, tables


def advance_groups(
    target: GroupedTarget,
    state: GroupedState,
    rng: np.random.Generator,
    n_iterations: int,
    n_attempts: int,
    threads: int | None = None,
    n_processors: int = 0,
) -> tuple[GroupedState, np.ndarray, np.ndarray]:
    """Run the iterations of one draw, and draw the tables given its labels.

    Between iterations the global weights are redrawn; after the last one the caller does so, once
    it has moved the concentrations.

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
        Its labels are modified.
    rng : numpy.random.Generator
    n_iterations : int
    n_attempts : int
        Splits and merges attempted in each iteration.
    threads : int, optional
        Of a sweep by slices; None for a collapsed scan, which needs a conjugate family.
    n_processors : int
        Of a scan on processors; 0 for one without.

    Returns
    -------
    state : GroupedState
    tables : ndarray of int64, shape (K,)
        Number of tables of each cluster.
    acceptance_counts : ndarray of int64, shape (4,)
        Numbers of proposals and acceptances, see `moves.acceptance_counts`.
    """
    acceptance_counts = np.zeros(4, np.int64)
    if keeps_parameters(target.of_rows.prior):
        # Draws from the base measure are those of this draw alone.
        empty_pool(target.of_rows.prior)
    elif threads is None and n_processors == 0:
        work = n_iterations, n_attempts, acceptance_counts
        *changed, tables = iterate_groups(target, *state, rng, *work)
        return GroupedState(state.labels, *changed), tables, acceptance_counts
    for left in reversed(range(n_iterations)):
        given = rng, n_attempts, threads, n_processors, acceptance_counts
        state = _iterated(target, state, *given)
        tables = draw_tables(target, state.labels, state.weights, rng)
        if left:
            state = redraw_weights(target, state, tables, rng)
    return state, tables, acceptance_counts


def _iterated(
    target: GroupedTarget,
    state: GroupedState,
    rng: np.random.Generator,
    n_attempts: int,
    threads: int | None,
    n_processors: int,
    acceptance_counts: np.ndarray,
) -> GroupedState:
    """Run one iteration by slices or on processors."""
    if keeps_parameters(target.of_rows.prior):
        state = sweep_groups(target, state, rng, threads or 1)
        stats, weights = move_parameters_and_clusters(
            target, *state[:3], rng, n_attempts, acceptance_counts
        )
        return state._replace(stats=stats, weights=weights)
    stats, weights = attempt_in_groups(target, *state[:3], rng, n_attempts, acceptance_counts)
    state = state._replace(stats=stats, weights=weights)
    if threads is None:
        changed = scan_on_processors(target, *state, rng, n_processors)
        return GroupedState(state.labels, *changed)
    return sweep_groups(target, state, rng, threads)
