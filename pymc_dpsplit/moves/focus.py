"""Observations that are worth a collapsed scan of their own in every iteration.

The sweep gives birth to a cluster by drawing parameters from the base measure: in many
dimensions they hardly ever fit an observation, so small clusters come and go slowly.  Collapsed
Gibbs has no such trouble, but is sequential.  Most observations could never found a
cluster; those that could are found during tuning and then visited in every iteration.  The
list is frozen before the first draw that counts, so the scan is an ordinary Gibbs step.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import mean_parameters, params_size
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.density import fill_log_mixture, log_prior_predictive

# The list holds this share of the expected number of new clusters per sweep, if it may.
_COVERED = 0.95


@kernel
def log_founding_odds(prior, data, stats, alpha):
    """Log odds of each observation founding a cluster against joining a large one, (N,).

    Clusters with fewer members than sufficient statistics count as already founded: their
    members are among those to visit.
    """
    least = min(float(stats.shape[1]), stats[:, 0].max())
    large = np.flatnonzero(stats[:, 0] >= least)
    log_weights = np.empty(large.shape[0])
    params = np.empty((large.shape[0], params_size(prior)))
    for j in range(large.shape[0]):
        log_weights[j] = math.log(stats[large[j], 0])
        mean_parameters(prior, stats[large[j]], params[j])
    odds = np.empty(data.shape[0])
    alone = log_prior_predictive(prior, data)
    fill_log_mixture(prior, data, alone, log_weights, params, -np.inf, odds)
    for i in range(odds.shape[0]):
        odds[i] = math.log(alpha) + alone[i] - odds[i]
    return odds


def choose_focus(log_odds: np.ndarray, most: int) -> np.ndarray:
    """Choose the observations likeliest to found a cluster.

    Parameters
    ----------
    log_odds : ndarray of float64, shape (N,)
        What `log_founding_odds` returned.
    most : int
        Longest list allowed.

    Returns
    -------
    ndarray of int64, shape (M,)
        In ascending order; at most `most`, fewer if they cover 95 % of the expected births.
    """
    probability = 1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0)))
    most = min(most, len(probability))
    likeliest = np.argpartition(-probability, most - 1)[:most] if most else np.empty(0, np.int64)
    likeliest = likeliest[np.argsort(-probability[likeliest], kind="stable")]
    covered = np.cumsum(probability[likeliest])
    enough = int(np.searchsorted(covered, _COVERED * probability.sum())) + 1
    return np.sort(likeliest[:enough]).astype(np.int64)
