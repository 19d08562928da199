"""A family whose likelihood is constant: the posterior of the partition is its prior.

It also shows that a family is one file: nothing else in the project knows it.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components import base
from pymc_dpsplit.kernels.tiles import TILE
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.sampler import Target


class FlatPrior(NamedTuple):
    """No hyperparameters; numba wants one field."""

    nothing: float


def flat_target(n_obs: int, alpha: float) -> Target:
    """Target without information in the data."""
    return Target(FlatPrior(0.0), np.zeros((n_obs, 1)), dirichlet_process(alpha))


@base.implements(base.stats_size, FlatPrior)
def _stats_size(prior):
    return 1


@base.implements(base.params_size, FlatPrior)
def _params_size(prior):
    return 1


@base.implements(base.tile_size, FlatPrior)
def _tile_size(prior):
    return 1


@base.implements(base.predictive_size, FlatPrior)
def _cache_size(prior):
    return 1


@base.implements(base.load_tile, FlatPrior)
def _load_tile(prior, data, rows, tile):
    pass


@base.implements(base.fill_log_density, FlatPrior)
def _fill_log_density(prior, tile, params, out, scratch):
    for t in range(TILE):
        out[t] = params[0]


@base.implements(base.add_row, FlatPrior)
def _add_row(prior, data, i, stats):
    stats[0] += 1.0


@base.implements(base.log_marginal, FlatPrior)
def _log_marginal(prior, stats):
    return 0.0


@base.implements(base.draw_parameters, FlatPrior)
def _draw_parameters(prior, stats, rng, params):
    params[0] = 0.0


@base.implements(base.mean_parameters, FlatPrior)
def _mean_parameters(prior, stats, params):
    params[0] = 0.0


@base.implements(base.fill_predictive, FlatPrior)
def _fill_cache(prior, stats, cache):
    cache[0] = stats[0]


@base.implements(base.predictive_add, FlatPrior)
def _cache_add(prior, data, i, cache):
    cache[0] += 1.0


@base.implements(base.predictive_remove, FlatPrior)
def _cache_remove(prior, data, i, cache):
    cache[0] -= 1.0
    return True


@base.implements(base.log_predictive, FlatPrior)
def _log_predictive(prior, data, i, cache):
    return 0.0
