"""Over-dispersed starting partitions."""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_log_density,
    load_tile,
    mean_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch

MOST_STARTING_CLUSTERS = 50


def draw_n_start(rng: np.random.Generator, n_obs: int, fewest: int = 1) -> int:
    """Draw a number of starting clusters, log-uniform between `fewest` and min(50, N).

    Parameters
    ----------
    rng : numpy.random.Generator
    n_obs : int
        Number of observations N.
    fewest : int
        At most min(50, N).

    Returns
    -------
    int
    """
    most = min(MOST_STARTING_CLUSTERS, n_obs)
    return min(most, int(fewest * math.exp(rng.random() * math.log((most + 1.0) / fewest))))


@jitted
def assign_to_centres(prior, data, centres, labels):
    """Assign each observation to the centre whose one-point posterior mean makes it likeliest.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    centres : ndarray of int64, shape (K,)
        Indices of observations.
    labels : ndarray of int32, shape (N,)
        Overwritten by 0 .. K' - 1; centres without observations are dropped.

    Returns
    -------
    int
        Number of clusters K'.
    """
    n_centres = centres.shape[0]
    params = np.empty((n_centres, params_size(prior)))
    for k in range(n_centres):
        one = np.zeros(stats_size(prior))
        add_row(prior, data, centres[k], one)
        mean_parameters(prior, one, params[k])
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch, value, best = new_scratch(4), new_scratch(1), new_scratch(1)
    taken = np.full(n_centres, -1, np.int32)
    n_clusters = 0
    for first in range(0, labels.shape[0], TILE):
        fill_range(rows, first, labels.shape[0])
        load_tile(prior, data, rows, tile)
        nearest = np.zeros(TILE, np.int64)
        for k in range(n_centres):
            fill_log_density(prior, tile, params[k], value, scratch)
            for t in range(TILE):
                if k == 0 or value[t] > best[t]:
                    best[t] = value[t]
                    nearest[t] = k
        for t in range(min(TILE, labels.shape[0] - first)):
            if taken[nearest[t]] < 0:
                taken[nearest[t]] = n_clusters
                n_clusters += 1
            labels[first + t] = taken[nearest[t]]
    return n_clusters
