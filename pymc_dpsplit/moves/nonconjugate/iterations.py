"""Iterations of the chain for non-conjugate families."""

import numpy as np

from pymc_dpsplit.components.nonconjugate.compiled_prior import empty_pool
from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.family_moves import FamilyMoves, KernelForm, typical_size
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.n_attempts import whole
from pymc_dpsplit.moves.nonconjugate.greedy_joint_split import greedy_joint_attempt
from pymc_dpsplit.moves.nonconjugate.joint_split import joint_attempt
from pymc_dpsplit.moves.nonconjugate.nearest_centre import nearest_centre
from pymc_dpsplit.moves.nonconjugate.parameters import (
    fit_pilots,
    gather_parameters,
    update_parameters,
)
from pymc_dpsplit.moves.strength import move_strength
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from pymc_dpsplit.moves.sweep.redraw import redraw_labels
from pymc_dpsplit.moves.target import Target

_GREEDY_ATTEMPTS = 4
# A sweep breaks some ten sticks, each with an atom, per unit of alpha.
_MOST_ALPHA = 1e5
# Cost of a density compiled by PyTensor in nanoseconds, evaluations per parameter of a slice
# sampler, and evaluations per row of an attempt.
_DENSITY, _STEPS_OF_SLICE, _EVALUATIONS_OF_ATTEMPT = 7.0, 7.0, 40.0


@jitted
def _finish(target, labels, stats, rng, schedule, acceptance_counts):
    """Apply the moves of an iteration that follow the sweep; return the statistics."""
    stats = update_parameters(target, labels, stats, rng)
    for _ in range(whole(schedule.attempts, rng)):
        stats = joint_attempt(target, labels, stats, rng, acceptance_counts)
    return stats


@jitted
def _finish_greedy(target, labels, stats, rng, schedule, acceptance_counts):
    """Like `_finish` in early tuning; not invariant."""
    stats = update_parameters(target, labels, stats, rng)
    for _ in range(_GREEDY_ATTEMPTS):
        stats = greedy_joint_attempt(target, labels, stats, rng, acceptance_counts)
    return update_parameters(target, labels, stats, rng)


@jitted
def _iterate_greedy(target, labels, stats, generator, schedule, acceptance_counts):
    rng = open_generator(generator)
    stats = slice_sweep(target, labels, stats, rng)
    stats = _finish_greedy(target, labels, stats, rng, schedule, acceptance_counts)
    move_strength(target, stats, no_atoms(target.prior), schedule.strength, rng)
    return stats


@jitted
def _iterate(target, labels, stats, generator, schedule, acceptance_counts):
    rng = open_generator(generator)
    atoms = no_atoms(target.prior)
    for _ in range(schedule.n_iterations):
        stats = slice_sweep(target, labels, stats, rng)
        stats = _finish(target, labels, stats, rng, schedule, acceptance_counts)
        target = move_strength(target, stats, atoms, schedule.strength, rng)
        # The next draw refuses it; the sweeps before would take minutes and gigabytes.
        if target.law.strength > _MOST_ALPHA:
            break
    return stats


def _gather(target: Target, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    stats: np.ndarray = fit_pilots(target.prior, target.data, labels, n_clusters)
    return stats


def _gather_with_atoms(target: Target, labels: np.ndarray, params: np.ndarray) -> np.ndarray:
    stats: np.ndarray = gather_parameters(target.prior, target.data, labels, params)
    return stats


def _prepare(target: Target) -> None:
    if target.law.strength > _MOST_ALPHA:
        raise ValueError(
            f"alpha is {target.law.strength:g}, for which a sweep draws more than a million atoms "
            "of a family whose parameters cannot be integrated out; give alpha a smaller value, or "
            "a prior with a lighter tail."
        )
    empty_pool(target.prior)


def _sweep_cost(
    target: Target, n_clusters: int, n_statistics: int, n_sticks: float, n_evaluated: float
) -> float:
    """Cost in nanoseconds: a density per atom and row, then one per step of the slice samplers."""
    del n_statistics
    steps = _STEPS_OF_SLICE * target.prior.widths.shape[0]
    per_row = 10.0 + _DENSITY * (n_evaluated + steps)
    return 2e4 + 2e3 * n_sticks + 3e2 * steps * n_clusters + target.data.shape[0] * per_row


def _attempt_cost(target: Target, n_clusters: int) -> float:
    return 2e5 + _DENSITY * _EVALUATIONS_OF_ATTEMPT * typical_size(target, n_clusters)


NONCONJUGATE = FamilyMoves(
    is_conjugate=False,
    label_by_centres=nearest_centre,
    gather=_gather,
    gather_with_atoms=_gather_with_atoms,
    start_kernels=(fit_pilots,),
    redraw_labels=redraw_labels,
    prepare=_prepare,
    kernels={
        "exact": KernelForm(_iterate, _finish),
        "greedy": KernelForm(_iterate_greedy, _finish_greedy),
    },
    sweep_cost=_sweep_cost,
    attempt_cost=_attempt_cost,
)
