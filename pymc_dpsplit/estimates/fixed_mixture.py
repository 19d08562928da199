"""A mixture of a model as data: complete observations, and all else fixed at a point."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pymc.initial_point import make_initial_point_fn
from pymc.model import Model

from pymc_dpsplit import sampler
from pymc_dpsplit.components.nonconjugate.family import NonconjugateFamily
from pymc_dpsplit.data.blocks import column_centres
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables, find_hierarchical
from pymc_dpsplit.topic_model.lookup import find_topic_models
from pymc_dpsplit.variables import (
    MixtureVariables,
    evaluator_of_points,
    find_mixtures,
    refuse_initial_values,
)


class FixedMixture(NamedTuple):
    """What an estimate reads of a model.

    Attributes
    ----------
    point : dict
        Values of all variables.
    values : dict
        Hyperparameters.
    shift : ndarray of float64, shape (D,)
        Subtracted from the observations.
    target : Target
    rows : ndarray of float64 or float32, shape (N, D), or SparseRows
        The observations.
    """

    point: dict[str, np.ndarray]
    values: dict[str, np.ndarray]
    shift: np.ndarray
    target: sampler.Target
    rows: Any


def complete_mixture(model: Model, var_name: str | None, caller: str) -> MixtureVariables:
    """Return the mixture of this name; raise ValueError unless it has complete data.

    Parameters
    ----------
    model : pymc.Model
    var_name : str, optional
        May be left out if there is one mixture.
    caller : str
        Name of the public function, for messages.

    Returns
    -------
    MixtureVariables
    """
    mixtures, grouped = find_mixtures(model), grouped_mixture(model, var_name)
    if grouped is not None:
        raise ValueError(
            f"{grouped.name} is an HDPMixture, which {caller} does not take; sample, and use "
            "point_partition."
        )
    every = [*mixtures, *find_hierarchical(model)]
    if var_name is None and mixtures and len(every) == 1:
        (var_name,) = mixtures
    topic_models = list(find_topic_models(model))
    if var_name in topic_models or (var_name is None and topic_models and not mixtures):
        raise ValueError(
            f"{var_name or topic_models[0]} is an HDPTopics, which {caller} does not "
            "take; sample, and read the draw of the highest log_joint with top_words."
        )
    if not isinstance(var_name, str) or var_name not in mixtures:
        if not every:
            raise ValueError(f"the model has no mixture, which {caller} needs; declare one in it.")
        known = ", ".join(every)
        raise ValueError(f"var_name={var_name!r} is no mixture of the model; it has {known}.")
    mixture = mixtures[var_name]
    refuse_incomplete(mixture, caller)
    return mixture


def refuse_incomplete(mixture: MixtureVariables, caller: str) -> None:
    """Refuse a mixture that is latent or has missing entries; `caller` is named in the message."""
    if mixture.is_latent or mixture.unobserved is not None:
        fault = "has missing entries" if mixture.unobserved is not None else "is latent"
        raise ValueError(
            f"{mixture.name} {fault}, and {caller} needs complete observations; fill them in, or "
            "use pm.sample."
        )


def grouped_mixture(model: Model, var_name: str | None) -> HierarchicalVariables | None:
    """Return the hierarchical mixture of this name, or the only mixture if it is one.

    Parameters
    ----------
    model : pymc.Model
    var_name : str, optional

    Returns
    -------
    HierarchicalVariables or None
    """
    grouped = find_hierarchical(model)
    if var_name is None and len(grouped) == 1 and not find_mixtures(model):
        (found,) = grouped.values()
        return found
    return grouped.get(var_name) if isinstance(var_name, str) else None


def of_other_mixtures(model: Model, name: str) -> set[Any]:
    """Return the variables and rows of mixtures other than the one of this name.

    Their values at the initial point mean nothing: the steps choose where they start.
    """
    every: list[Any] = []
    for find in (find_mixtures, find_hierarchical, find_topic_models):
        every += [of for key, of in find(model).items() if key != name]
    return {rv for of in every for rv in (*of.owned, of.rv)}


def read_mixture(
    mixture: MixtureVariables,
    model: Model,
    initvals: Mapping[str, Any] | None,
    seed: int,
    caller: str,
) -> FixedMixture:
    """Read prior, data and law of a conjugate mixture from a model at its initial point.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model
    initvals : mapping, optional
        Values of other variables, as in `pm.sample`.
    seed : int
        Of the initial point.
    caller : str
        Name of the public function, for messages.

    Returns
    -------
    FixedMixture

    Raises
    ------
    ValueError
        If the family is not conjugate, or the observations depend on other variables.
    """
    if isinstance(mixture.component, NonconjugateFamily):
        raise ValueError(
            f"{mixture.name} is of {mixture.component!r}, whose parameters cannot be integrated "
            f"out, as {caller} does; use pm.sample, or a family such as Normal."
        )
    evaluator = evaluator_of_points(mixture, model, {})
    if not evaluator.rows_are_fixed:
        raise ValueError(
            f"the observations of {mixture.name} depend on other variables, and {caller} needs "
            "data; give those less an estimate of what depends on others, or use pm.sample."
        )
    refuse_initial_values(initvals, model, by_chain=False)
    overrides: Any = None if initvals is None else dict(initvals)
    try:
        start = make_initial_point_fn(model=model, overrides=overrides)
    except KeyError as error:
        raise ValueError(
            f"initvals holds {error}, which is no variable of the model; leave it out."
        ) from None
    point = start(seed)
    conditioning = evaluator.read(point)
    shift = column_centres(conditioning.rows)
    items, values = mixture.items, conditioning.values
    data = items.arranged(conditioning.rows)
    target = sampler.Target(items.prior(values, shift), data, conditioning.law)
    return FixedMixture(point, values, shift, target, conditioning.rows)
