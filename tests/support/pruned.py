"""The pruned sweep, whatever it is worth: on any number of features, and with other margins."""

import math
from typing import Any

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import find_bounds
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.moves.assignment import (
    assign_strips,
    begin_sweep,
    complete_atoms,
    lowest_slice,
    new_counter,
    new_strip_stats,
    renumber,
    total_strips,
)
from pymc_dpsplit.moves.measure import no_atoms
from pymc_dpsplit.moves.pruning import Pruning

# Large, so that observations are redrawn with all atoms now and then.
SMALL = 2.0**-6


@kernel
def _force(found, small, slack):
    if found is None:
        return None
    bounds, _ = found
    return Pruning(bounds, math.log(0.5 * small), slack)


@kernel
def forced_pruning(prior, params, n_clusters, small, slack):
    """What `plan_pruning` would return if pruning always paid, with other margins."""
    return _force(find_bounds(prior, params, n_clusters), small, slack)


@kernel
def _sweep(prior, data, labels, stats, alpha, rng, small, slack):
    n_obs = labels.shape[0]
    log_weights, log_rest, params, caps, slice_key, label_key = begin_sweep(
        prior, stats, n_obs, alpha, rng, no_atoms(prior)
    )
    lowest = lowest_slice(labels, caps, slice_key, new_counter())
    _, params, reach = complete_atoms(
        prior, log_weights, log_rest, params, n_obs, alpha, lowest, rng
    )
    pruning = forced_pruning(prior, params, stats.shape[0], small, slack)
    strip_stats = new_strip_stats(prior, n_obs, reach.caps.shape[0])
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
    prior: Any,
    data: np.ndarray,
    labels: np.ndarray,
    stats: np.ndarray,
    alpha: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """The sweep of `slice_sweep`, pruned."""
    return _sweep(bounded(prior), data, labels, stats, alpha, rng, SMALL, SMALL)


def uncertified_sweep(
    target: sampler.Target, state: sampler.ChainState, rng: np.random.Generator
) -> sampler.ChainState:
    """A sweep that drops whatever is below sixteen times the present cluster, unchecked."""
    labels = state.labels.copy()
    prior, data, alpha = target
    stats = _sweep(bounded(prior), data, labels, state.stats, alpha, rng, 16.0, 0.0)
    return sampler.ChainState(labels, stats)
