"""Iterations of the chain for conjugate families, composed of moves.

Each move leaves the posterior of the partition invariant on its own, except those of the kernel
"greedy", which is for tuning.
"""

from typing import Any

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.collapsed.scan import (
    SWEEPS_UNTIL_FRESH,
    collapsed_scan,
    collapsed_sweep,
    linked_sweeps,
    log_densities_alone,
    successive_rows,
)
from pymc_dpsplit.moves.cost import attempt_cost, sweep_cost
from pymc_dpsplit.moves.family_moves import FamilyMoves, KernelForm
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.n_attempts import n_attempts, whole
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import breaks_sticks
from pymc_dpsplit.moves.split_merge.anchored import anchored_attempt
from pymc_dpsplit.moves.split_merge.greedy import greedy_attempt
from pymc_dpsplit.moves.split_merge.informed import informed_attempt
from pymc_dpsplit.moves.split_merge.regrouping import regroup
from pymc_dpsplit.moves.split_merge.transfer import transfer_attempt
from pymc_dpsplit.moves.split_merge.with_component import attempt_with_components
from pymc_dpsplit.moves.start import assign_to_centres
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.successive_draws import empty_record, record_draw
from pymc_dpsplit.moves.sweep.assignment import next_sweep, slice_sweep
from pymc_dpsplit.moves.sweep.heavy_remainder import redraw_labels_of_conjugate
from pymc_dpsplit.moves.target import Target

# Attempts of an iteration of early tuning, at least.
GREEDY_ATTEMPTS = 3


@jitted
def densities_of_list(target, schedule):
    """Log prior predictive densities of the observations of the scan list, shape (M,)."""
    return log_densities_alone(target.prior, target.data, schedule.scan_list)


@jitted
def _scan(target, labels, stats, rng, schedule, log_alone):
    """Scan the list, or as many successive observations as the window has, from a random one on."""
    rows = schedule.scan_list
    if schedule.window > 0:
        rows = successive_rows(labels.shape[0], schedule.window, rng)
        log_alone = log_densities_alone(target.prior, target.data, rows)
    if rows.shape[0] > 0:
        stats = collapsed_scan(target, labels, stats, rng, rows, log_alone)
    return stats


@jitted
def finish_exact(target, labels, stats, rng, schedule, log_alone, acceptance_counts):
    """Apply the moves of an exact iteration that follow the slice sweep; return the statistics.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator
    schedule : Schedule
    log_alone : ndarray of float64, shape (M,)
        Result of `densities_of_list`.
    acceptance_counts : ndarray of int64, shape (4,)

    Returns
    -------
    ndarray of float64, shape (K', S)
    """
    stats = _scan(target, labels, stats, rng, schedule, log_alone)
    for _ in range(n_attempts(schedule.attempts, labels.shape[0], rng)):
        kind = np.int64(3.0 * rng.random())
        if kind == 0:
            stats = anchored_attempt(target, labels, stats, rng, acceptance_counts)
        elif kind == 1:
            stats = informed_attempt(target, labels, stats, rng, acceptance_counts)
        else:
            stats = transfer_attempt(target, labels, stats, rng)
    return attempt_with_components(target, labels, stats, rng, schedule, acceptance_counts)


@jitted
def _n_greedy(schedule):
    return max(int(schedule.attempts), GREEDY_ATTEMPTS)


@jitted
def _finish_greedy(target, labels, stats, rng, schedule, acceptance_counts):
    """Apply the moves of a tuning iteration that follow the slice sweep; not invariant."""
    for _ in range(_n_greedy(schedule)):
        stats = greedy_attempt(target, labels, stats, rng, acceptance_counts)
    if rng.random() < schedule.regroupings:
        stats = regroup(target, labels, stats, rng)
    return stats


@jitted
def _iterate_exact(target, labels, stats, generator, schedule, acceptance_counts):
    rng = open_generator(generator)
    atoms, log_alone = no_atoms(target.prior), densities_of_list(target, schedule)
    for _ in range(schedule.n_iterations):
        if breaks_sticks(target.law, labels.shape[0]):
            stats, atoms = next_sweep(target, labels, stats, rng, atoms)
        else:
            stats = collapsed_sweep(target, labels, stats, rng)
        stats = finish_exact(target, labels, stats, rng, schedule, log_alone, acceptance_counts)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
    return stats


@jitted
def _iterate_greedy(target, labels, stats, generator, schedule, acceptance_counts):
    rng = open_generator(generator)
    if breaks_sticks(target.law, labels.shape[0]):
        stats = slice_sweep(target, labels, stats, rng)
    else:
        stats = collapsed_sweep(target, labels, stats, rng)
    stats = _finish_greedy(target, labels, stats, rng, schedule, acceptance_counts)
    move_strength(target, stats, no_atoms(target.prior), schedule.strength, rng)
    return stats


@jitted
def _iterate_collapsed(target, labels, stats, generator, schedule, acceptance_counts):
    rng = open_generator(generator)
    everyone = np.arange(labels.shape[0])
    log_alone = log_densities_alone(target.prior, target.data, everyone)
    for first in range(0, schedule.n_iterations, SWEEPS_UNTIL_FRESH):
        n_sweeps = min(SWEEPS_UNTIL_FRESH, schedule.n_iterations - first)
        stats, target = linked_sweeps(
            target, labels, stats, rng, everyone, log_alone, n_sweeps, schedule.strength
        )
    return stats


@jitted
def _iterate_collapsed_split_merge(target, labels, stats, generator, schedule, acceptance_counts):
    """Like `_iterate_collapsed`, with the attempts of linked sweeps after these.

    Nothing here calls what sweeps by slices need, so that it is not compiled either.
    """
    rng = open_generator(generator)
    everyone = np.arange(labels.shape[0])
    log_alone = log_densities_alone(target.prior, target.data, everyone)
    for first in range(0, schedule.n_iterations, SWEEPS_UNTIL_FRESH):
        n_sweeps = min(SWEEPS_UNTIL_FRESH, schedule.n_iterations - first)
        stats, target = linked_sweeps(
            target, labels, stats, rng, everyone, log_alone, n_sweeps, schedule.strength
        )
        for _ in range(whole(n_sweeps * schedule.attempts, rng)):
            stats = anchored_attempt(target, labels, stats, rng, acceptance_counts)
    return stats


@jitted
def _draw_several_exact(target, labels, stats, generator, schedule, n_draws, n_rows):
    """Make draws with one schedule, see `moves.successive_draws`."""
    record = empty_record(target, n_draws, n_rows)
    for i in range(n_draws):
        counts = record.acceptance_counts[i]
        stats = _iterate_exact(target, labels, stats, generator, schedule, counts)
        target = record_draw(record, i, target, labels, stats, generator, schedule.strength)
    return stats, record


@jitted
def _draw_several_collapsed(target, labels, stats, generator, schedule, n_draws, n_rows):
    """Like `_draw_several_exact`, by collapsed sweeps and anchored attempts."""
    record = empty_record(target, n_draws, n_rows)
    for i in range(n_draws):
        counts = record.acceptance_counts[i]
        stats = _iterate_collapsed_split_merge(target, labels, stats, generator, schedule, counts)
        target = record_draw(record, i, target, labels, stats, generator, schedule.strength)
    return stats, record


def _finish_alone(
    target: Target,
    labels: np.ndarray,
    stats: np.ndarray,
    rng: np.random.Generator,
    schedule: Any,
    acceptance_counts: np.ndarray,
) -> np.ndarray:
    """Apply the moves of an exact iteration that follow a sweep by threads, on one thread."""
    log_alone = densities_of_list(target, schedule)
    finished: np.ndarray = finish_exact(
        target, labels, stats, rng, schedule, log_alone, acceptance_counts
    )
    return finished


def _label_by_centres(target: Target, centres: np.ndarray) -> np.ndarray:
    labels = np.zeros(target.data.shape[0], np.int32)
    assign_to_centres(target.prior, target.data, centres, labels)
    return labels


def _gather(target: Target, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    stats: np.ndarray = gather_stats(target.prior, target.data, labels, n_clusters)
    return stats


def _gather_with_atoms(target: Target, labels: np.ndarray, params: np.ndarray) -> np.ndarray:
    return _gather(target, labels, len(params))


def _prepare(target: Target) -> None:
    """Do nothing: conjugate families keep nothing from draw to draw."""


CONJUGATE = FamilyMoves(
    is_conjugate=True,
    label_by_centres=_label_by_centres,
    gather=_gather,
    gather_with_atoms=_gather_with_atoms,
    start_kernels=(assign_to_centres, gather_stats),
    redraw_labels=redraw_labels_of_conjugate,
    prepare=_prepare,
    kernels={
        "exact": KernelForm(_iterate_exact, _finish_alone, draw_several=_draw_several_exact),
        "collapsed": KernelForm(_iterate_collapsed, None),
        "collapsed-split-merge": KernelForm(
            _iterate_collapsed_split_merge,
            None,
            (anchored_attempt,),
            draw_several=_draw_several_collapsed,
        ),
        "greedy": KernelForm(
            _iterate_greedy,
            _finish_greedy,
            (
                greedy_attempt,
                anchored_attempt,
                informed_attempt,
                regroup,
                transfer_attempt,
                collapsed_sweep,
            ),
        ),
    },
    sweep_cost=sweep_cost,
    attempt_cost=attempt_cost,
)
