"""Update of strength and discount given the partition, the weights integrated out.

Kernels update the strength after every iteration if its log density has a compiled form and the
discount does not depend on the same variable.  What they do not is updated once per draw, here.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from pytensor.graph.basic import Variable

from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    is_possible,
    log_number_factor,
    log_probability,
)
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.moves.strength import StrengthPrior, fixed_strength
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.sampler import ChainState
from pymc_dpsplit.variables.concentration import ConcentrationPrior


def strength_prior(
    concentrations: Sequence[ConcentrationPrior],
    point: Mapping[str, np.ndarray],
    law: PartitionLaw,
    rng: np.random.Generator,
    is_search: bool = False,
) -> StrengthPrior:
    """Return what kernels need to update the strength; `fixed_strength` if they do not.

    In a greedy draw they do not update a number of components, see `for_a_search`.
    """
    for concentration in concentrations:
        if concentration.is_count and is_search:
            break
        if not concentration.moves_discount:
            return concentration.strength_prior(point, law.strength, rng)
    return fixed_strength()


def for_a_search(
    concentrations: Sequence[ConcentrationPrior], point: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the point from which a greedy draw starts, with many components if M is moved."""
    for concentration in concentrations:
        point = concentration.with_many(point) if concentration.is_count else point
    return point


def moved_by_kernels(concentrations: Sequence[ConcentrationPrior]) -> list[Variable]:
    """Return the value variables that no other step has to move."""
    return [of for concentration in concentrations for of in concentration.moved_by_kernels]


def with_present_law(target: Target, strength: StrengthPrior) -> Target:
    """Return the target with the strength that kernels have left."""
    if strength.address == 0:
        return target
    law = PartitionLaw(target.law.discount, float(strength.present[1]))
    return Target(target.prior, target.data, law)


def move_concentrations(
    concentrations: Sequence[ConcentrationPrior],
    point: Mapping[str, np.ndarray],
    target: Target,
    strength: StrengthPrior,
    state: ChainState,
    rng: np.random.Generator,
) -> tuple[Target, dict[str, np.ndarray]]:
    """Update the variables that determine the law, one after the other.

    Parameters
    ----------
    concentrations : sequence of ConcentrationPrior
        Of the variables that this step updates.
    point : mapping
        Value of every variable.
    target : Target
    strength : StrengthPrior
        After the iterations of the draw.
    state : ChainState
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
        With the new law.
    values : dict
        New values of the variables, by the names of their value variables.
    """
    moved: dict[str, np.ndarray] = {}
    for concentration in concentrations:
        name = concentration.value_name
        if strength.address != 0 and not concentration.moves_discount:
            number = float(strength.present[0])
        else:
            there = {**point, **moved}
            target, number = _moved(concentration, there, target, state, rng)
        moved[name] = concentration.value_of(number)
    return target, moved


def _moved(
    concentration: ConcentrationPrior,
    point: Mapping[str, np.ndarray],
    target: Target,
    state: ChainState,
    rng: np.random.Generator,
) -> tuple[Target, float]:
    """Slice-sample a variable from its conditional, eq. (8.6), (14.6) and (14.10)."""
    prior, sizes = concentration.given(point), state.stats[:, 0]

    def log_partition(law: PartitionLaw) -> float:
        if concentration.moves_discount:
            return float(log_probability(law, sizes))
        return float(log_number_factor(law, len(sizes), state.n_observations))

    def log_density(number: float) -> float:
        log_prior, law = prior(number)
        if not (np.isfinite(log_prior) and is_possible(law)):
            return -np.inf
        return log_prior + concentration.log_volume(number) + log_partition(law)

    number = slice_draw(log_density, concentration.number_of(point, rng), 1.0, rng)
    return target._replace(law=prior(number)[1]), number
