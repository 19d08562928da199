"""Scan list: observations that get a collapsed Gibbs update in every iteration.

The sweep gives birth to a cluster by drawing parameters from the base measure.  In many
dimensions these hardly ever fit an observation, so small clusters come and go slowly.  Collapsed
Gibbs does not have this problem, but it is sequential.  Most observations are unlikely to found a
cluster; the others are identified during tuning and visited in every iteration, with the members
of the tiny clusters that there are then.  The list is frozen before the first draw that is kept, so
the scan is an ordinary Gibbs step.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import mean_parameters, params_size
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.partition_law import joining_mass, log_founding_factor
from pymc_dpsplit.moves.sweep.density import fill_log_mixture, log_prior_predictive


@jitted
def log_founding_odds(target, stats):
    """Log odds of each observation founding a cluster against joining a large one.

    Clusters with fewer members than sufficient statistics are left out: they may be new ones.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    prior, data, law = target
    least = min(float(stats.shape[1]), stats[:, 0].max())
    large = np.flatnonzero(stats[:, 0] >= least)
    log_weights = np.empty(large.shape[0])
    params = np.empty((large.shape[0], params_size(prior)))
    for j in range(large.shape[0]):
        log_weights[j] = math.log(joining_mass(law, stats[large[j], 0]))
        mean_parameters(prior, stats[large[j]], params[j])
    odds = np.empty(data.shape[0])
    alone = log_prior_predictive(prior, data)
    fill_log_mixture(prior, data, alone, log_weights, params, -np.inf, odds)
    for i in range(odds.shape[0]):
        log_open = log_founding_factor(law, stats.shape[0], multiplicity(prior, data, i))
        odds[i] = log_open + alone[i] - odds[i]
    return odds


def members_of_tiny_clusters(
    labels: np.ndarray, stats: np.ndarray, n_features: int, most: int
) -> np.ndarray:
    """Members of clusters that have no more members than features, smallest clusters first.

    The parameters of such a cluster are drawn from hardly more than these observations, so that in
    a sweep they leave it rarely.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    n_features : int
    most : int
        Maximum number of members.

    Returns
    -------
    ndarray of int64, shape (M,)
        Ascending.
    """
    sizes = stats[labels, 0]
    members = np.flatnonzero(sizes <= n_features)
    smallest = members[np.argsort(sizes[members], kind="stable")]
    return np.sort(smallest[:most])


def likeliest_founders(log_odds: np.ndarray, most: int) -> np.ndarray:
    """Find the observations of highest odds.

    Parameters
    ----------
    log_odds : ndarray of float64, shape (N,)
        Result of `log_founding_odds`.
    most : int
        Number of observations, or more than there are.

    Returns
    -------
    ndarray of int64, shape (min(most, N),)
        Ascending.
    """
    most = min(most, len(log_odds))
    likeliest = np.argpartition(-log_odds, most - 1)[:most] if most else np.empty(0, np.int64)
    return np.sort(likeliest).astype(np.int64)


def choose_scan_list(log_odds: np.ndarray, most: int, covered: float) -> np.ndarray:
    """Choose the observations likeliest to found a cluster.

    Parameters
    ----------
    log_odds : ndarray of float64, shape (N,)
        Result of `log_founding_odds`.
    most : int
        Maximum length of the list.
    covered : float
        Share of the expected births that the list covers, if it may be so long.

    Returns
    -------
    ndarray of int64, shape (M,)
        Ascending.
    """
    probability = 1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0)))
    likeliest = likeliest_founders(log_odds, most)
    likeliest = likeliest[np.argsort(-probability[likeliest], kind="stable")]
    enough = np.searchsorted(np.cumsum(probability[likeliest]), covered * probability.sum()) + 1
    return np.sort(likeliest[:enough])
