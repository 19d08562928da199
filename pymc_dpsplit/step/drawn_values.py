"""Values of a mixture in PyMC's point at the end of a draw."""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.patterns import Incomplete
from pymc_dpsplit.step.joint_label_row_update import impute, with_entries
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.conditioning import Conditioning


def drawn_values(
    mixture: MixtureVariables,
    measure: sampler.Measure,
    labels: np.ndarray,
    conditioning: Conditioning,
    point: Mapping[str, np.ndarray],
    shift: np.ndarray,
    incomplete: Incomplete,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Return the values of the measure, and draw missing entries given measure and partition.

    Parameters
    ----------
    mixture : MixtureVariables
    measure : Measure
        Drawn given the partition.
    labels : ndarray of int32, shape (N,)
        Cluster of each observation.
    conditioning : Conditioning
        What the model gives the mixture at `point`.
    point : mapping
        Value of every variable.
    shift : ndarray of float64, shape (D,)
        Subtracted from the observations of the target.
    incomplete : Incomplete
    rng : numpy.random.Generator

    Returns
    -------
    dict
        Name to ndarray.
    """
    parameters = mixture.items.unpack(measure.params, conditioning.values, shift)
    needs_labels = mixture.is_labelled or mixture.unobserved is not None
    labels = measure.rank[labels] if needs_labels else labels
    drawn = measure.weights, measure.log_rest, parameters, labels, measure.sum_log_weights
    values: dict[str, np.ndarray] = mixture.point_values(len(measure.rank), *drawn)
    if mixture.unobserved is not None:
        component = with_values(mixture.component, conditioning.values)
        name = mixture.value_names["unobserved"]
        known = conditioning.rows, point[name], incomplete
        values[name] = impute(component, *known, parameters, labels, rng)
    return values


def with_drawn_entries(
    mixture: MixtureVariables,
    target: sampler.Target,
    state: sampler.ChainState,
    measure: sampler.Measure,
    conditioning: Conditioning,
    point: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    incomplete: Incomplete,
) -> tuple[sampler.Target, sampler.ChainState, sampler.Measure]:
    """Return target, state and log joint density of data whose missing entries were drawn.

    Parameters
    ----------
    mixture : MixtureVariables
    target : Target
    state : ChainState
    measure : Measure
        Of the partition of `state`.
    conditioning : Conditioning
        What the model gives the mixture at `point`.
    point : mapping
        Value of every variable before the draw.
    values : mapping
        Result of `drawn_values`.
    incomplete : Incomplete

    Returns
    -------
    target : Target
    state : ChainState
    measure : Measure
    """
    name = mixture.value_names["unobserved"]
    rows = with_entries(conditioning.rows, incomplete, point[name], values[name])
    target = target._replace(data=mixture.component.arranged(rows))
    atoms = measure.params[measure.rank]
    state = sampler.resume_with_atoms(target, state.labels, atoms)
    return target, state, measure._replace(log_joint=log_joint(target, state.stats))
