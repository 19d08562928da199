"""Update of alpha given the number of clusters, the weights integrated out."""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit.moves.partition_law import dirichlet_process, log_number_factor
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.variables.concentration import ConcentrationPrior


def move_concentration(
    concentration: ConcentrationPrior,
    point: Mapping[str, np.ndarray],
    target: Target,
    n_clusters: int,
    n_obs: int,
    rng: np.random.Generator,
) -> tuple[Target, dict[str, np.ndarray]]:
    """Slice-sample the variable that determines alpha from its conditional, eq. (8.6).

    Parameters
    ----------
    concentration : ConcentrationPrior
    point : mapping
        Value of every variable.
    target : Target
    n_clusters, n_obs : int
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
        With the new alpha.
    values : dict
        New value of the variable, by the name of its value variable.
    """
    prior, name = concentration.given(point), concentration.value_name

    def log_density(value: float) -> float:
        log_prior, alpha = prior(value)
        if not (np.isfinite(log_prior) and 0.0 < alpha < np.inf):
            return -np.inf
        return log_prior + log_number_factor(dirichlet_process(alpha), n_clusters, n_obs)

    value = slice_draw(log_density, float(point[name]), 1.0, rng)
    law = dirichlet_process(prior(value)[1])
    return target._replace(law=law), {name: np.asarray(value, point[name].dtype)}
