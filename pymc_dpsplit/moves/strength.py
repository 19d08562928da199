"""Move of the strength of the law of the partition between two iterations of a draw."""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.addresses import call_log_prior
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import first_column_sum
from pymc_dpsplit.moves.measure import change_law
from pymc_dpsplit.moves.partition_law import PartitionLaw, log_number_factor
from pymc_dpsplit.moves.target import Target

_MOST_STEPS = 50


class StrengthPrior(NamedTuple):
    """Prior of the variable that determines the strength, as kernels read it.

    Attributes
    ----------
    address : int
        Address of a C function from the variable and `others` to its log density and the strength,
        see `kernels.addresses.call_log_prior`; 0 if kernels do not move the strength.
    others : ndarray of float64
        Values of the other variables that the log density depends on.
    present : ndarray of float64, shape (2,)
        The variable and the strength; overwritten by moves.
    """

    address: int
    others: np.ndarray
    present: np.ndarray


_FIXED = StrengthPrior(0, np.empty(0), np.zeros(2))


def fixed_strength() -> StrengthPrior:
    """Return the record of a strength that kernels do not move, always the same one."""
    return _FIXED


@jitted
def _evaluate(prior, law, value, n_clusters, n_obs, out):
    """Log density at `value` given the partition, unnormalised; `out` (2,) has the strength."""
    out[0], out[1] = -np.inf, np.nan
    call_log_prior(prior.address, np.array([value]), prior.others, out)
    if not (math.isfinite(out[0]) and min(0.0, -law.discount) < out[1] < np.inf):
        return -np.inf
    return out[0] + log_number_factor(PartitionLaw(law.discount, out[1]), n_clusters, n_obs)


@jitted
def draw_strength(prior, law, n_clusters, n_obs, rng):
    """Slice-sample the variable behind the strength from its conditional law, eq. (8.6).

    The weights are integrated out.  Slices are found by stepping out and shrinkage, see
    `moves.slice`, from an interval of width 1: the variable is on the scale on which PyMC
    samples it, usually a logarithm.

    Parameters
    ----------
    prior : StrengthPrior
        Its `present` is overwritten.
    law : PartitionLaw
    n_clusters : int
    n_obs : float
    rng : numpy.random.Generator

    Returns
    -------
    PartitionLaw
    """
    out = np.empty(2)
    start = prior.present[0]
    level = _evaluate(prior, law, start, n_clusters, n_obs, out) - rng.standard_exponential()
    left = start - rng.random()
    right = left + 1.0
    steps_left = int(_MOST_STEPS * rng.random())
    for _ in range(steps_left):
        if _evaluate(prior, law, left, n_clusters, n_obs, out) <= level:
            break
        left -= 1.0
    for _ in range(_MOST_STEPS - 1 - steps_left):
        if _evaluate(prior, law, right, n_clusters, n_obs, out) <= level:
            break
        right += 1.0
    while True:
        drawn = left + (right - left) * rng.random()
        density = _evaluate(prior, law, drawn, n_clusters, n_obs, out)
        if density > level or drawn == start:
            prior.present[0], prior.present[1] = drawn, out[1]
            return PartitionLaw(law.discount, out[1])
        if drawn < start:
            left = drawn
        else:
            right = drawn


@jitted
def move_strength_given(prior, law, n_clusters, n_obs, rng):
    """Move the strength given the number of clusters, unless `prior` says that kernels do not.

    Parameters
    ----------
    prior : StrengthPrior
    law : PartitionLaw
    n_clusters : int
    n_obs : float
    rng : numpy.random.Generator

    Returns
    -------
    PartitionLaw
    """
    return law if prior.address == 0 else draw_strength(prior, law, n_clusters, n_obs, rng)


@jitted
def move_strength(target, stats, atoms, prior, rng):
    """Move the strength given the partition, unless `prior` says that kernels do not.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)
    atoms : Atoms
        What the next sweep starts from; weights are changed in place to those of the new law.
    prior : StrengthPrior
    rng : numpy.random.Generator

    Returns
    -------
    Target
        With the new law.
    """
    if prior.address == 0:
        return target
    law = draw_strength(prior, target.law, stats.shape[0], first_column_sum(stats), rng)
    change_law(atoms, target.law, law, rng)
    return Target(target.prior, target.data, law)
