"""Early tuning: how many draws search for clusters, and new starts with which a chain is crossed.

On real tables partitions are often local modes, tens of nats apart, that splits, merges and
regroupings do not leave, however long a chain is.  Another start reaches another mode after a few
iterations.  So from time to time a chain goes on from the best partition made of its own and that
of a new start, see `moves.split_merge.crossing`.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.generators import address_of
from pymc_dpsplit.moves.split_merge.crossing import cross
from pymc_dpsplit.moves.strength import fixed_strength
from pymc_dpsplit.step.kernel_choice import COLLAPSED, SLICES
from pymc_dpsplit.step.schedule import cost_of_iteration
from pymc_dpsplit.variables import MixtureVariables

# Greedy moves, or more attempts, are made in the first third of tuning, and no longer than this.
_MOST_DRAWS = {SLICES: 300, COLLAPSED: 100}
# Draws in which a new start climbs.
_DRAWS_OF_START = 30
# New starts of a chain: as many as are estimated to take this time in nanoseconds, and at most one
# in so many draws of early tuning.
_TIME_OF_STARTS, _LEAST_BETWEEN, _MOST_STARTS = 2e9, 5, 32


def n_early_draws(kernel_name: str, n_tune: int) -> int:
    """Return how many draws search for clusters instead of following the posterior.

    Parameters
    ----------
    kernel_name : str
        One of `sampler.KERNELS`.
    n_tune : int

    Returns
    -------
    int
    """
    return min(n_tune // 3, _MOST_DRAWS.get(kernel_name, 0))


def has_new_starts(mixture: MixtureVariables, target: sampler.Target) -> bool:
    """Return whether early tuning makes new starts: for conjugate families.

    Latent rows fit the partition that the chain has, so that a new start would be behind.
    """
    return sampler.moves_of(target.prior).is_conjugate and not mixture.is_latent


def searched(
    mixture: MixtureVariables,
    form: str,
    target: sampler.Target,
    state: sampler.ChainState,
    schedule: sampler.Schedule,
    n_done: int,
    n_early: int,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor | None = None,
) -> sampler.ChainState:
    """Cross a chain with a new start, if it has such and it is time for one.

    Parameters
    ----------
    mixture : MixtureVariables
        May have to record all clusters; partitions with more than it can record are left out.
    form : str
        Kernel of early tuning: one of `sampler.KERNELS`, or `GREEDY`.
    target : Target
    state : ChainState
        Not modified.
    schedule : Schedule
        By which the new start climbs, but for alpha, which is not moved.
    n_done, n_early : int
        Draws made, and draws of early tuning.
    rng : numpy.random.Generator
    pool : ThreadPoolExecutor, optional

    Returns
    -------
    ChainState
        With a joint density as high as that of `state` or higher.
    """
    if n_done == 0 or not has_new_starts(mixture, target):
        return state
    n_starts = _n_starts(form, target, state, schedule, n_early)
    if n_starts == 0 or n_done % (n_early // n_starts):
        return state
    schedule = schedule._replace(strength=fixed_strength())
    other = sampler.start(target, rng)
    for _ in range(_DRAWS_OF_START):
        other, _ = sampler.advance(form, target, other, rng, schedule, pool)
    best = best_of(target, state, other, rng)
    is_recorded = len(best.stats) <= mixture.max_clusters or not mixture.needs_all_rows
    return best if is_recorded else state


def _n_starts(
    form: str,
    target: sampler.Target,
    state: sampler.ChainState,
    schedule: sampler.Schedule,
    n_early: int,
) -> int:
    n_iterations = 1 if form == sampler.GREEDY else schedule.n_iterations
    cost = _DRAWS_OF_START * n_iterations * cost_of_iteration(form, target, state, schedule)
    return min(_MOST_STARTS, n_early // _LEAST_BETWEEN, int(_TIME_OF_STARTS / cost))


def best_of(
    target: sampler.Target,
    state: sampler.ChainState,
    other: sampler.ChainState,
    rng: np.random.Generator,
) -> sampler.ChainState:
    """Return the best partition made of two, neither of which is modified."""
    labels = state.labels.copy()
    stats = cross(target, labels, state.stats, other.labels, other.stats, address_of(rng))
    return sampler.ChainState(labels, stats)
