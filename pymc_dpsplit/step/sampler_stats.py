"""Sampler statistics of a draw: the entries of a mixture in ``sample_stats``."""

from typing import Any

import numpy as np

from pymc_dpsplit.moves.acceptance_counts import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)
from pymc_dpsplit.sampler import SAMPLERS, Schedule, Target, moves_of
from pymc_dpsplit.step.kernel_choice import SLICES
from pymc_dpsplit.variables import MixtureVariables

_TYPES: dict[str, Any] = {
    "log_joint": np.float64,
    "entropy": np.float64,
    "largest_share": np.float64,
    "occupied": np.int64,
    "splits_proposed": np.int64,
    "splits_accepted": np.int64,
    "merges_proposed": np.int64,
    "merges_accepted": np.int64,
    "iterations": np.int64,
    "sliced": np.bool_,
    "scanned": np.int64,
    "attempts": np.float64,
    "exchanged": np.int64,
    "is_conjugate": np.bool_,
    "seconds": np.float64,
}


def stats_types(name: str, n_labels: int | None) -> dict[str, tuple[Any, list[int]]]:
    """Type and shape of every statistic, in the form that PyMC requires.

    Parameters
    ----------
    name : str
        Name of the mixture.
    n_labels : int, optional
        Number of observations, if their labels are stored.

    Returns
    -------
    dict
    """
    types: dict[str, tuple[Any, list[int]]] = {
        f"{name}_{key}": (of, []) for key, of in _TYPES.items()
    }
    if n_labels is not None:
        row = np.dtype((np.min_scalar_type(n_labels), (n_labels,)))
        types[f"{name}_labels"] = (row, [n_labels])
    return types


def plan_of(kernel: str, target: Target, schedule: Schedule) -> dict[str, Any]:
    """Describe what the iterations of a draw are made of, after early tuning.

    Parameters
    ----------
    kernel : str
        One of `sampler.KERNELS`.
    target : Target
    schedule : Schedule

    Returns
    -------
    dict
        ``iterations`` per draw; of each iteration: whether it is ``sliced``, the number of
        observations ``scanned`` by collapsed Gibbs, and the mean number of ``attempts``.
    """
    is_sliced, published = kernel == SLICES, SAMPLERS.get(kernel)
    attempts = 0.0 if kernel == "collapsed" else schedule.attempts
    n_scanned = schedule.n_scanned if is_sliced else target.data.shape[0]
    return {
        "iterations": schedule.n_iterations,
        "sliced": is_sliced,
        "scanned": n_scanned if published is None or published.is_collapsed else 0,
        "attempts": attempts,
    }


def stats_of(
    name: str,
    target: Target,
    n_clusters: int,
    of_partition: tuple[float, float, float],
    acceptance_counts: np.ndarray,
    plan: dict[str, Any],
    n_exchanged: int,
) -> dict[str, Any]:
    """Statistics of a draw, except its seconds and labels.

    Parameters
    ----------
    name : str
        Name of the mixture.
    target : Target
    n_clusters : int
        Number of occupied clusters.
    of_partition : tuple of float
        Log joint density, entropy and share of the largest cluster.
    acceptance_counts : ndarray of int64, shape (4,)
        Numbers of proposals and acceptances, see `moves.acceptance_counts`.
    plan : dict
        Result of `plan_of`.
    n_exchanged : int
        Number of latent or incomplete rows that moved together with their labels.

    Returns
    -------
    dict
    """
    log_joint, entropy, largest_share = of_partition
    return {
        f"{name}_log_joint": log_joint,
        f"{name}_entropy": entropy,
        f"{name}_largest_share": largest_share,
        f"{name}_occupied": n_clusters,
        f"{name}_splits_proposed": acceptance_counts[SPLITS_PROPOSED],
        f"{name}_splits_accepted": acceptance_counts[SPLITS_ACCEPTED],
        f"{name}_merges_proposed": acceptance_counts[MERGES_PROPOSED],
        f"{name}_merges_accepted": acceptance_counts[MERGES_ACCEPTED],
        **{f"{name}_{key}": value for key, value in plan.items()},
        f"{name}_exchanged": n_exchanged,
        f"{name}_is_conjugate": moves_of(target.prior).is_conjugate,
    }


def labels_stat(mixture: MixtureVariables, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Labels of a draw as a statistic, shape (N,), in the dtype given by `stats_types`."""
    recorded = mixture.items.recorded(labels)
    return {f"{mixture.name}_labels": recorded.astype(np.min_scalar_type(len(recorded)))}
