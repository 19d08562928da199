"""Update of alpha given the number of clusters, the weights integrated out.

Kernels update it after every iteration if its log density has a compiled form; otherwise it is
updated once per draw, here.
"""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit.moves.partition_law import dirichlet_process, log_number_factor
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.moves.strength import StrengthPrior, fixed_strength
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.sampler import ChainState
from pymc_dpsplit.variables.concentration import ConcentrationPrior


def strength_prior(
    concentration: ConcentrationPrior | None, point: Mapping[str, np.ndarray], alpha: float
) -> StrengthPrior:
    """Return what kernels need to update alpha; `fixed_strength` if they do not."""
    if concentration is None:
        return fixed_strength()
    return concentration.strength_prior(point, alpha)


def with_present_law(target: Target, strength: StrengthPrior) -> Target:
    """Return the target with the alpha that kernels have left."""
    if strength.address == 0:
        return target
    return target._replace(law=dirichlet_process(strength.present[1]))


def move_concentration(
    concentration: ConcentrationPrior | None,
    point: Mapping[str, np.ndarray],
    target: Target,
    strength: StrengthPrior,
    state: ChainState,
    rng: np.random.Generator,
) -> tuple[Target, dict[str, np.ndarray]]:
    """Slice-sample the variable that determines alpha, eq. (8.6), unless kernels have done so.

    Parameters
    ----------
    concentration : ConcentrationPrior, optional
        None if another step updates alpha.
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
        With the new alpha.
    values : dict
        New value of the variable, by the name of its value variable.
    """
    if concentration is None:
        return target, {}
    name = concentration.value_name
    if strength.address != 0:
        return target, {name: np.asarray(strength.present[0], point[name].dtype)}
    prior, sizes = concentration.given(point), (len(state.stats), state.n_observations)

    def log_density(value: float) -> float:
        log_prior, alpha = prior(value)
        if not (np.isfinite(log_prior) and 0.0 < alpha < np.inf):
            return -np.inf
        return log_prior + log_number_factor(dirichlet_process(alpha), *sizes)

    value = slice_draw(log_density, float(point[name]), 1.0, rng)
    law = dirichlet_process(prior(value)[1])
    return target._replace(law=law), {name: np.asarray(value, point[name].dtype)}
