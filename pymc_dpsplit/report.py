"""Statistics of a draw: what ``sample_stats`` says of a mixture."""

from typing import Any

import numpy as np

from pymc_dpsplit.components.generic import GenericPrior
from pymc_dpsplit.moves.partition import entropy, log_joint
from pymc_dpsplit.moves.tally import (
    MERGES_ACCEPTED,
    MERGES_PROPOSED,
    SPLITS_ACCEPTED,
    SPLITS_PROPOSED,
)
from pymc_dpsplit.sampler import ChainState, Target

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
    "exchanged": np.int64,
    "is_conjugate": np.bool_,
    "seconds": np.float64,
}


def stats_types(name: str, n_labels: int | None) -> dict[str, tuple[Any, list[int]]]:
    """Type and shape of every statistic, as PyMC asks for them.

    Parameters
    ----------
    name : str
        Name of the mixture.
    n_labels : int, optional
        Number of observations, if their labels are kept.

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
    target: Target,
    state: ChainState,
    tally: np.ndarray,
    n_iterations: int,
    n_exchanged: int,
) -> dict[str, Any]:
    """Statistics of a draw, except its seconds and labels.

    Parameters
    ----------
    name : str
        Name of the mixture.
    target : Target
    state : ChainState
    tally : ndarray of int64, shape (4,)
        What split/merge moves did, see `moves.tally`.
    n_iterations : int
    n_exchanged : int
        Latent or incomplete rows that moved with their labels.

    Returns
    -------
    dict
    """
    return {
        f"{name}_log_joint": log_joint(target.prior, state.stats, target.alpha),
        f"{name}_entropy": entropy(state.stats),
        f"{name}_largest_share": state.stats[:, 0].max() / len(state.labels),
        f"{name}_occupied": len(state.stats),
        f"{name}_splits_proposed": tally[SPLITS_PROPOSED],
        f"{name}_splits_accepted": tally[SPLITS_ACCEPTED],
        f"{name}_merges_proposed": tally[MERGES_PROPOSED],
        f"{name}_merges_accepted": tally[MERGES_ACCEPTED],
        f"{name}_iterations": n_iterations,
        f"{name}_exchanged": n_exchanged,
        f"{name}_is_conjugate": not isinstance(target.prior, GenericPrior),
    }


def labels_stat(state: ChainState) -> np.ndarray:
    """Labels (N,) of a draw, in the type that `stats_types` announces."""
    return state.labels.astype(np.min_scalar_type(len(state.labels)))
