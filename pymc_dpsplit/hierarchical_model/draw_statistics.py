"""Sampler statistics of a draw: the entries of a hierarchical mixture in ``sample_stats``."""

from typing import Any

import numpy as np

from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget
from pymc_dpsplit.hierarchical.summaries import log_joint, summary_of

# Numbers of proposals and acceptances, in the order of `moves.acceptance_counts`.
_COUNTS = ("splits_proposed", "splits_accepted", "merges_proposed", "merges_accepted")
_TYPES: dict[str, Any] = {
    "log_joint": np.float64,
    "entropy": np.float64,
    "group_entropy": np.float64,
    "information": np.float64,
    "largest_share": np.float64,
    "occupied": np.int64,
    "shared": np.int64,
    **dict.fromkeys(_COUNTS, np.int64),
    "iterations": np.int64,
    "exchanged": np.int64,
    "alpha": np.float64,
    "gamma": np.float64,
    "seconds": np.float64,
}


def stats_types(name: str, n_labels: int | None) -> dict[str, tuple[Any, list[int]]]:
    """Type and shape of every statistic, in the form that PyMC requires.

    Parameters
    ----------
    name : str
        Name of the mixture.
    n_labels : int, optional
        Number of rows, if their labels are stored.

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


def stats_of(
    name: str,
    target: GroupedTarget,
    state: GroupedState,
    acceptance_counts: np.ndarray,
    n_iterations: int,
    n_exchanged: int,
    labels: np.ndarray | None,
) -> dict[str, Any]:
    """Statistics of a draw, except its seconds.

    Parameters
    ----------
    name : str
        Name of the mixture.
    target : GroupedTarget
    state : GroupedState
    acceptance_counts : ndarray of int64, shape (4,)
        Numbers of proposals and acceptances, see `moves.acceptance_counts`.
    n_iterations : int
        Of the draw.
    n_exchanged : int
        Latent rows that moved together with their labels.
    labels : ndarray of int, shape (N,), optional
        Those to store.

    Returns
    -------
    dict
    """
    summary = summary_of(target, state)
    values = {
        "log_joint": log_joint(target, state),
        "entropy": summary.entropy,
        "group_entropy": summary.group_entropy,
        "information": summary.entropy - summary.group_entropy,
        "largest_share": summary.largest_share,
        "shared": summary.shared,
        "occupied": len(state.weights),
        **dict(zip(_COUNTS, acceptance_counts, strict=True)),
        "iterations": n_iterations,
        "exchanged": n_exchanged,
        "alpha": target.alpha,
        "gamma": target.of_rows.law.strength,
    }
    if labels is not None:
        values["labels"] = labels.astype(np.min_scalar_type(len(labels)))
    return {f"{name}_{key}": value for key, value in values.items()}
