"""Parameters of all clusters: drawn given their rows, or those of the state.

Parameters of a family that is not conjugate are part of the state, among the statistics of each
cluster.
"""

from typing import Any

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, params_size
from pymc_dpsplit.components.nonconjugate.compiled_prior import THETA, CompiledPrior
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.nonconjugate.parameters import fit_pilots, gather_parameters
from pymc_dpsplit.moves.partition import gather_stats


@jitted
def draw_parameters_of(prior, stats, rng):
    """Draw the parameters of each cluster from their posterior, or return those of the state.

    Parameters
    ----------
    prior : NamedTuple
    stats : ndarray of float64, shape (K, S)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (K, P)
    """
    params = np.empty((stats.shape[0], params_size(prior)))
    for k in range(stats.shape[0]):
        draw_parameters(prior, stats[k], rng, params[k])
    return params


def keeps_parameters(prior: Any) -> bool:
    """Return whether parameters are part of the state, by the prior of the family."""
    return isinstance(prior, CompiledPrior)


def first_statistics(prior: Any, data: Any, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Compute the statistics of clusters, with parameters to start from if the state has some.

    Parameters
    ----------
    prior : NamedTuple
    data : object
        Rows as the family arranges them.
    labels : ndarray of int32, shape (N,)
    n_clusters : int

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    gather = fit_pilots if keeps_parameters(prior) else gather_stats
    stats: np.ndarray = gather(prior, data, labels, n_clusters)
    return stats


def statistics_of_moved_rows(
    prior: Any, data: Any, labels: np.ndarray, stats: np.ndarray
) -> np.ndarray:
    """Compute the statistics of clusters whose rows have moved, with the parameters of the state.

    Parameters
    ----------
    prior : NamedTuple
    data : object
        The rows where they are now, as the family arranges them.
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
        Of the rows where they were; not modified.

    Returns
    -------
    ndarray of float64, shape (K, S)
    """
    if not keeps_parameters(prior):
        moved: np.ndarray = gather_stats(prior, data, labels, len(stats))
        return moved
    params = np.empty((len(stats), params_size(prior)))
    params[:, 1:] = stats[:, THETA:]
    kept: np.ndarray = gather_parameters(prior, data, labels, params)
    return kept
