"""Moves and costs of a family as one record, selected by the type of its prior."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.moves.target import Target


class KernelForm(NamedTuple):
    """One kernel of the chain: its iterations on one thread, and the moves after a threaded sweep.

    Attributes
    ----------
    iterate : callable
        ``(target, labels, stats, generator, schedule, acceptance_counts) -> stats``, with what
        `kernels.generators.address_of` returns.
    finish : callable or None
        The moves of one iteration after its sweep, on one thread; None for a kernel without a
        sweep that threads can share.
    parts : tuple of Kernel
        Kernels that `iterate` calls, with arguments of the same names, which together take half of
        its time to compile.
    keeps : bool
        Whether the state of the chain has more than the partition.  `iterate` then takes
        ``of_rows, of_clusters`` of `sampler.ChainState` as well, and returns them after ``stats``.
    draw_several : callable or None
        ``(target, labels, stats, generator, schedule, n_draws, n_rows) -> (stats, record)``:
        several draws with one schedule, see `moves.successive_draws`; None if a call makes one.
    """

    iterate: Callable[..., Any]
    finish: Callable[..., np.ndarray] | None
    parts: tuple[Any, ...] = ()
    keeps: bool = False
    draw_several: Callable[..., Any] | None = None


class FamilyMoves(NamedTuple):
    """Everything that depends on whether a family is conjugate.

    Attributes
    ----------
    is_conjugate : bool
        Whether cluster parameters are integrated out.  Only then are there a predictive density
        and collapsed moves.
    label_by_centres : callable
        ``(target, centres) -> labels``: starting labels, given observations that serve as centres.
    gather : callable
        ``(target, labels, n_clusters) -> stats``: statistics of the clusters that labels define.
    gather_with_atoms : callable
        ``(target, labels, params) -> stats``: the same, with the parameters of each cluster
        (K, P), which families with conjugate priors do not keep.
    start_kernels : tuple of Kernel
        Kernels that the first two call.
    redraw_labels : Kernel
        Draws labels given the occupied part of a measure, see `sweep.redraw.redraw_labels`.
    prepare : callable
        ``(target) -> None``, called before the iterations of a draw.
    kernels : mapping of str to KernelForm
    sweep_cost : callable
        ``(target, n_clusters, n_statistics, n_sticks, n_evaluated) -> float``: nanoseconds of a
        sweep over clusters of `n_statistics` statistics each that breaks `n_sticks` sticks and
        evaluates `n_evaluated` atoms per observation.
    attempt_cost : callable
        ``(target, n_clusters) -> float``: nanoseconds of a split/merge attempt.
    """

    is_conjugate: bool
    label_by_centres: Callable[[Target, np.ndarray], np.ndarray]
    gather: Callable[[Target, np.ndarray, int], np.ndarray]
    gather_with_atoms: Callable[[Target, np.ndarray, np.ndarray], np.ndarray]
    start_kernels: tuple[Callable[..., Any], ...]
    redraw_labels: Callable[..., Any]
    prepare: Callable[[Target], None]
    kernels: Mapping[str, KernelForm]
    sweep_cost: Callable[[Target, int, int, float, float], float]
    attempt_cost: Callable[[Target, int], float]


def typical_size(target: Target, n_clusters: int) -> float:
    """Expected size of the cluster an attempt chooses: twice the mean, as it favours large ones."""
    return 2.0 * target.data.shape[0] / (n_clusters + 1.0)
