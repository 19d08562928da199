"""Operations of families as functions that Python can call."""

import numpy as np

from pymc_dpsplit.components.base import (
    add_groups,
    add_labelled,
    add_row,
    draw_parameters,
    fill_log_density,
    fill_log_predictive_of_rows,
    fill_predictive,
    load_tile,
    log_marginal,
    log_predictive,
    mean_parameters,
    overrelax_parameters,
    params_size,
    predictive_add,
    predictive_remove,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch


@jitted
def stats_of(prior, data, members):
    """Statistics of the observations `members`."""
    out = np.zeros(stats_size(prior))
    for j in range(members.shape[0]):
        add_row(prior, data, members[j], out)
    return out


@jitted
def group_stats(prior, data, members, bounds):
    """Statistics of each group of `members`, (groups, S)."""
    out = np.zeros((bounds.shape[0] - 1, stats_size(prior)))
    add_groups(prior, data, members, bounds, out)
    return out


@jitted
def labelled_stats(prior, data, labels, start, stop, n_clusters):
    """Whether the family adds rows by their labels, and statistics of each cluster, (K, S)."""
    out = np.zeros((n_clusters, stats_size(prior)))
    return add_labelled(prior, data, labels, start, stop, out), out


@jitted
def marginal_of(prior, out):
    return log_marginal(prior, out)


@jitted
def cache_of(prior, data, members):
    """Cache of the observations `members`, from their statistics."""
    cache = np.zeros(predictive_size(prior))
    fill_predictive(prior, stats_of(prior, data, members), cache)
    return cache


@jitted
def enter(prior, data, i, cache):
    predictive_add(prior, data, i, cache)


@jitted
def leave(prior, data, i, cache):
    return predictive_remove(prior, data, i, cache)


@jitted
def predictives(prior, data, cache):
    """Log predictive density of every observation, (N,)."""
    out = np.empty(data.shape[0])
    for i in range(out.shape[0]):
        out[i] = log_predictive(prior, data, i, cache)
    return out


@jitted
def predictives_of_list(prior, data, rows, cache):
    """Log predictive density of the observations `rows`, (M,), computed together."""
    out = np.empty(rows.shape[0])
    fill_log_predictive_of_rows(prior, data, rows, cache, out)
    return out


@jitted
def densities(prior, data, params):
    """Log density of every observation under one cluster, (N,)."""
    rows, tile = new_rows(), begin_tile(prior, data)
    out, values, scratch = np.empty(data.shape[0]), new_scratch(1), new_scratch(4)
    for first in range(0, data.shape[0], TILE):
        fill_range(rows, first, data.shape[0])
        load_tile(prior, data, rows, tile)
        fill_log_density(prior, tile, params, values, scratch)
        for t in range(min(TILE, data.shape[0] - first)):
            out[first + t] = values[t]
    return out


@jitted
def draws_of(prior, statistics, n_draws, rng):
    """Posterior draws of the parameters, (n_draws, P)."""
    out = np.empty((n_draws, params_size(prior)))
    for s in range(n_draws):
        draw_parameters(prior, statistics, rng, out[s])
    return out


@jitted
def overrelaxed(prior, statistics, draws, rng):
    """Draws (n_draws, P) that follow `draws` by over-relaxation given the statistics."""
    out = draws.copy()
    for s in range(out.shape[0]):
        overrelax_parameters(prior, statistics, rng, out[s])
    return out


@jitted
def plug_in(prior, statistics):
    """The plug-in estimate, (1, P)."""
    out = np.empty((1, params_size(prior)))
    mean_parameters(prior, statistics, out[0])
    return out
