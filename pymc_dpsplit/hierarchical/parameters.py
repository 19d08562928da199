"""Parameters of all clusters, given their rows."""

import numpy as np

from pymc_dpsplit.components.base import draw_parameters, params_size
from pymc_dpsplit.kernels.jit import jitted


@jitted
def draw_parameters_of(prior, stats, rng):
    """Draw the parameters of each cluster from their posterior.

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
