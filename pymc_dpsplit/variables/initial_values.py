"""Checks of `initvals`, the values that a user gives chains to start from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.basic import logp
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pymc.util import get_untransformed_name, is_transformed_name
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import array_of, as_floats, as_numbers, shown, with_remedy
from pymc_dpsplit.variables.lookup import MixtureVariables, find_mixtures, is_owned
from pymc_dpsplit.variables.n_components import MOST_COMPONENTS

# What PyMC takes in place of numbers.
_STRATEGIES = ("support_point", "prior")


def refuse_initial_values(initvals: Any, model: Model, by_chain: bool = True) -> None:
    """Refuse values from which a model with mixtures cannot start.

    Parameters
    ----------
    initvals : dict or sequence of dict, or None
        Name or variable to value.
    model : pymc.Model
    by_chain : bool
        Whether there may be a dict for each chain.

    Raises
    ------
    ValueError
        With one sentence that names the variable, the fault and the remedy.
    """
    mixtures = find_mixtures(model)
    if initvals is None:
        return
    several = by_chain and isinstance(initvals, Sequence) and not isinstance(initvals, str | bytes)
    for values in initvals if several else [initvals]:
        if values is None:
            continue
        if not isinstance(values, dict):
            remedy = ", or a list of such dicts, one for each chain" if by_chain else ""
            raise ValueError(
                f"initvals={shown(initvals)} is not a dict; give one of names of variables to "
                f"values{remedy}."
            )
        _refuse_values(values, mixtures.values(), model)


def _refuse_values(
    values: Mapping[Any, Any], mixtures: Iterable[MixtureVariables], model: Model
) -> None:
    for key, value in values.items():
        name = str(getattr(key, "name", key))
        of = get_untransformed_name(name) if is_transformed_name(name) else name
        rv = model.named_vars.get(of)
        for mixture in mixtures:
            if rv is None and name == f"{mixture.name}_labels":
                raise ValueError(
                    f"initvals holds {name}, but the labels of {mixture.name} are no variable of "
                    'the model; give dpsplit={"start_labels": labels}.'
                )
        if isinstance(value, Variable) or value is None:
            continue
        owner = next((of for of in mixtures if rv in (*of.owned, of.rv)), None)
        if isinstance(value, str) and (value in _STRATEGIES or owner is None):
            continue
        if owner is not None:
            _refuse_own(owner, rv, name, value)
            continue
        if fault := array_of(value)[1]:
            remedy = "give an array of the shape of the variable"
            raise ValueError(f"initvals[{name!r}] {with_remedy(fault, remedy)}.")
        if rv in model.free_RVs and not is_owned(rv):
            _refuse_outside(rv, name, value, model)


def _refuse_outside(rv: Any, name: str, value: Any, model: Model) -> None:
    """Refuse a value outside the support of a prior, as far as that does not move itself."""
    given: Any = pt.as_tensor(array_of(value)[0])
    transform = model.rvs_to_transforms[rv]
    tested = given
    try:
        if not is_transformed_name(name):
            inputs = rv.owner.inputs
            tested = logp(rv, given) if transform is None else transform.forward(given, *inputs)
        is_allowed = bool(rvs_in_graph([tested])) or np.isfinite(tested.eval()).all()
    except (NotImplementedError, TypeError, ValueError):
        return  # of another shape, or without a density: PyMC says what it needs
    if not is_allowed:
        raise ValueError(
            f"initvals[{name!r}]={shown(value)} is no value that the prior of {rv.name} allows; "
            "give one that it does, or leave it out."
        )


def _refuse_own(mixture: MixtureVariables, rv: Any, name: str, value: Any) -> None:
    """Refuse a value of a variable that belongs to a mixture."""
    named = f"initvals[{name!r}]"
    array = as_numbers(named, value)
    wanted = rv.type.shape
    fits = array.ndim == len(wanted) and all(
        length in (None, given) for given, length in zip(array.shape, wanted, strict=True)
    )
    if not fits:
        shape = "a single number" if not wanted else f"an array of shape {wanted}"
        raise ValueError(f"{named} has shape {array.shape}; give {shape}.")
    role = next((role for role, of in mixture.measure.items() if of is rv), "rows")
    role = "n_components" if rv is mixture.n_components else role
    if role in mixture.component.parameters:
        return  # they say nothing of where a chain starts, and rows without a cluster are NaN
    as_floats(named, value)
    is_whole = role in ("n_clusters", "labels", "n_components")
    if is_whole and (array != np.floor(array)).any():
        raise ValueError(f"{named}={shown(value)} is not whole; give integers.")
    if role == "labels":
        mixture.refuse_labels(array)
    if role in ("n_clusters", "weights") and (array < 0).any():
        raise ValueError(f"{named}={shown(value)} is negative; give numbers from 0.")
    if role == "n_components" and not 1 <= array <= MOST_COMPONENTS:
        raise ValueError(f"{named}={shown(value)} is no number of components; give one from 1.")
    if role == "n_clusters" and array > np.iinfo(np.int64).max:
        raise ValueError(f"{named}={shown(value)} is too large; give the number of clusters.")
    if role == "new_weight" and not is_transformed_name(name) and not 0 < array <= 1:
        raise ValueError(f"{named}={shown(value)} is no weight; give a number above 0, at most 1.")
