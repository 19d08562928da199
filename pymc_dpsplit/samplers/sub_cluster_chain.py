"""Sub-clusters that sample on their own: a finite mixture of some observations, kept between draws.

They are those of no cluster.  Their labels are redrawn given their own weights and parameters
alone, and never look at the partition, so that every move of it which takes its proposal from them
is exact whatever they are (docs/samplers.md, "chang-fisher").  Redrawing them is blocked Gibbs
sampling of a mixture of `N_SUB_CLUSTERS` components with weights Dirichlet(1, .., 1); that they
follow its posterior matters to the proposals only.
"""

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    draw_parameters,
    fill_log_density,
    load_tile,
    log_marginal,
    mean_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.moves.sweep.tile_labels import choose_in_tile
from pymc_dpsplit.samplers.sams import random_order

# Sub-clusters, and the observations that have one, at most: redrawing them costs little beside a
# sweep over many observations.
N_SUB_CLUSTERS, _MOST_ROWS = 32, 2048
# Sub-cluster of an observation that has none.
NO_SUB_CLUSTER = -1
# Columns of what is kept: what identifies prior and data, and whether they have ever changed.
_MADE_FOR, _HAS_CHANGED = 0, 1


@jitted
def rows_with_sub_clusters(n_obs):
    """Observations that have sub-clusters, evenly spaced, shape (n,)."""
    return np.arange(0, n_obs, 1 + (n_obs - 1) // _MOST_ROWS)


@jitted
def _draw_labels(prior, data, rows, sub_labels, log_weights, params, rng):
    """Draw the sub-cluster of each of `rows`, by weight times density."""
    n_sub, key = log_weights.shape[0], draw_key(rng)
    tile_rows, chosen, tile = new_rows(), new_rows(), begin_tile(prior, data)
    scratch, log_mass = new_scratch(4), new_scratch(n_sub).reshape(n_sub, TILE)
    for first in range(0, rows.shape[0], TILE):
        fill_members(tile_rows, rows, first)
        load_tile(prior, data, tile_rows, tile)
        for m in range(n_sub):
            fill_log_density(prior, tile, params[m], log_mass[m], scratch)
            for t in range(TILE):
                log_mass[m, t] += log_weights[m] * multiplicity(prior, data, tile_rows[t])
        choose_in_tile(log_mass, n_sub, tile_rows, key, chosen, scratch)
        for t in range(min(TILE, rows.shape[0] - first)):
            sub_labels[tile_rows[t]] = chosen[t]


@jitted
def begin_sub_cluster_chain(prior, data, rng):
    """Begin sub-clusters around observations drawn at random.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of int8, shape (N,)
        Sub-cluster of each observation, `NO_SUB_CLUSTER` for those that have none.
    """
    rows = rows_with_sub_clusters(data.shape[0])
    seeds = random_order(rows.shape[0], new_stream(draw_key(rng)))[:N_SUB_CLUSTERS]
    params = np.empty((seeds.shape[0], params_size(prior)))
    for m in range(seeds.shape[0]):
        one = np.zeros(stats_size(prior))
        add_row(prior, data, rows[seeds[m]], one)
        mean_parameters(prior, one, params[m])
    sub_labels = np.full(data.shape[0], NO_SUB_CLUSTER, np.int8)
    _draw_labels(prior, data, rows, sub_labels, np.zeros(seeds.shape[0]), params, rng)
    return sub_labels


@jitted
def redraw_sub_clusters(prior, data, sub_labels, rng):
    """Redraw weights and parameters of the sub-clusters, then who is in them.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    sub_labels : ndarray of int8, shape (N,)
        Changed.
    rng : numpy.random.Generator
    """
    rows = rows_with_sub_clusters(data.shape[0])
    stats = np.zeros((N_SUB_CLUSTERS, stats_size(prior)))
    for i in rows:
        add_row(prior, data, i, stats[sub_labels[i]])
    log_weights, params = np.empty(N_SUB_CLUSTERS), np.empty((N_SUB_CLUSTERS, params_size(prior)))
    for m in range(N_SUB_CLUSTERS):
        log_weights[m] = draw_log_gamma(rng, stats[m, 0] + 1.0)
        draw_parameters(prior, stats[m], rng, params[m])
    _draw_labels(prior, data, rows, sub_labels, log_weights, params, rng)


@jitted
def _fingerprint(prior, data):
    """A number that is another one if the prior or the observations that are used change."""
    total = np.zeros(stats_size(prior))
    for i in rows_with_sub_clusters(data.shape[0]):
        add_row(prior, data, i, total)
    return log_marginal(prior, total)


@jitted
def kept_sub_clusters(prior, data, of_rows, of_clusters, rng):
    """Return the sub-clusters that were kept, or begin them anew.

    They begin anew in every draw once hyperparameters or observations have changed between two.
    Kept through a change they would know of past partitions, of which the change may be a
    consequence; and were they kept where a change happens to be rejected, so would their age.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    of_rows : ndarray of int8, shape (N,) or (0,)
    of_clusters : ndarray of float64, shape (K, 2) or (0, 0)
        What the last draw kept; empty if nothing.
    rng : numpy.random.Generator

    Returns
    -------
    sub_labels : ndarray of int8, shape (N,)
    to_keep : ndarray of float64, shape (2,)
        For every row of what is kept of the clusters.
    """
    to_keep = np.zeros(2)
    to_keep[_MADE_FOR] = _fingerprint(prior, data)
    if of_clusters.shape[0] > 0:
        has_changed = of_clusters[0, _MADE_FOR] != to_keep[_MADE_FOR]
        if not has_changed and of_clusters[0, _HAS_CHANGED] == 0.0:
            return of_rows.copy(), to_keep
        to_keep[_HAS_CHANGED] = 1.0
    return begin_sub_cluster_chain(prior, data, rng), to_keep
