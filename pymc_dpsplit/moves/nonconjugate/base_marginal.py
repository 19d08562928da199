"""Prior predictive density of a row, averaged over a fixed set of draws from the base measure."""

import math

import numpy as np

from pymc_dpsplit.components.base import fill_log_density, load_tile, tile_size
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch, new_tile


@jitted
def fill_base_marginal(prior, data, nodes, out):
    """Write log( sum_m f(x_i; theta_m) / M ) for each observation, eq. (9.6).

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    nodes : ndarray of float64, shape (M, P)
        Draws theta_m from the base measure.
    out : ndarray of float64, shape (N,)
        Overwritten.
    """
    n_obs, n_nodes = data.shape[0], nodes.shape[0]
    params = np.zeros((n_nodes, 1 + nodes.shape[1]))
    params[:, 1:] = nodes
    rows, tile = new_rows(), new_tile(tile_size(prior))
    value, highest, total, scratch = new_scratch(1), new_scratch(1), new_scratch(1), new_scratch(4)
    for first in range(0, n_obs, TILE):
        fill_range(rows, first, n_obs)
        load_tile(prior, data, rows, tile)
        highest[:] = -np.inf
        total[:] = 0.0
        for m in range(n_nodes):
            fill_log_density(prior, tile, params[m], value, scratch)
            for t in range(TILE):
                if value[t] > highest[t]:
                    total[t] = total[t] * math.exp(highest[t] - value[t]) + 1.0
                    highest[t] = value[t]
                elif value[t] > -np.inf:
                    total[t] += math.exp(value[t] - highest[t])
        for t in range(min(TILE, n_obs - first)):
            mean = total[t] / n_nodes
            out[first + t] = highest[t] + math.log(mean) if mean > 0.0 else -np.inf
