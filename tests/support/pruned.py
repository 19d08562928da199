"""The pruned sweep, whatever it is worth: on any number of features, and with other margins."""

import math
from typing import Any

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import find_bounds
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.sweep.assignment import (
    assign_strips,
    begin_sweep,
    complete_atoms,
    lowest_slice,
    new_counter,
    new_strip_stats,
    renumber,
    total_strips,
)
from pymc_dpsplit.moves.sweep.pruning import Pruning

# Large, so that observations are redrawn with all atoms now and then.
SMALL = 2.0**-6


@jitted
def _force(found, small, slack):
    if found is None:
        return None
    bounds, _ = found
    return Pruning(bounds, math.log(0.5 * small), slack)


@jitted
def forced_pruning(prior, params, n_clusters, small, slack):
    """What `plan_pruning` would return if pruning always paid, with other margins."""
    return _force(find_bounds(prior, params, n_clusters), small, slack)


@jitted
def _sweep(target, labels, stats, rng, small, slack):
    prior, data, n_obs = target.prior, target.data, labels.shape[0]
    log_weights, log_rest, params, slice_bounds, slice_key, label_key = begin_sweep(
        target, labels, stats, rng, no_atoms(prior)
    )
    lowest = lowest_slice(labels, slice_bounds, slice_key, new_counter())
    _, params, reach = complete_atoms(target, rng, log_weights, log_rest, params, lowest)
    pruning = forced_pruning(prior, params, stats.shape[0], small, slack)
    strip_stats = new_strip_stats(prior, n_obs, reach.slice_bounds.shape[0])
    assign_strips(
        prior,
        data,
        labels,
        params,
        reach,
        pruning,
        slice_key,
        label_key,
        strip_stats,
        new_counter(),
    )
    totals, renumbered = total_strips(strip_stats)
    renumber(labels, renumbered, new_counter())
    return totals


def bounded(prior: Any, has_bounds: bool | None = True) -> Any:
    """The prior of a family with bounds, whether or not these pay; others as they are."""
    return prior._replace(has_bounds=has_bounds) if hasattr(prior, "has_bounds") else prior


def pruned_sweep(
    target: sampler.Target,
    labels: np.ndarray,
    stats: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The sweep of `slice_sweep`, pruned."""
    target = target._replace(prior=bounded(target.prior))
    return _sweep(target, labels, stats, rng, SMALL, SMALL)


def uncertified_sweep(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """A sweep that drops whatever is below sixteen times the present cluster, unchecked."""
    labels = state.labels.copy()
    target = target._replace(prior=bounded(target.prior))
    stats = _sweep(target, labels, state.stats, rng, 16.0, 0.0)
    return sampler.ChainState(labels, stats)
