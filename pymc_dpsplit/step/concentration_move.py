"""Update of strength and discount given the partition, the weights integrated out."""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit.moves.partition_law import (
    PartitionLaw,
    is_possible,
    log_number_factor,
    log_probability,
)
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.variables.concentration import ConcentrationPrior


def move_concentration(
    concentration: ConcentrationPrior,
    point: Mapping[str, np.ndarray],
    target: Target,
    sizes: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Target, dict[str, np.ndarray]]:
    """Slice-sample a variable that determines the law from its conditional, eq. (8.6) and (14.6).

    Parameters
    ----------
    concentration : ConcentrationPrior
    point : mapping
        Value of every variable.
    target : Target
    sizes : ndarray of float64, shape (K,)
        Cluster sizes.
    rng : numpy.random.Generator

    Returns
    -------
    target : Target
        With the new law.
    values : dict
        New value of the variable, by the name of its value variable.
    """
    prior, name = concentration.given(point), concentration.value_name
    n_clusters, n_obs = len(sizes), int(sizes.sum())

    def log_partition(law: PartitionLaw) -> float:
        if concentration.moves_discount:
            return float(log_probability(law, sizes))
        return float(log_number_factor(law, n_clusters, n_obs))

    def log_density(value: float) -> float:
        log_prior, law = prior(value)
        if not (np.isfinite(log_prior) and is_possible(law)):
            return -np.inf
        return log_prior + log_partition(law)

    value = slice_draw(log_density, float(point[name]), 1.0, rng)
    return target._replace(law=prior(value)[1]), {name: np.asarray(value, point[name].dtype)}
