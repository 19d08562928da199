"""Find what is declared by one measure and one variable of its rows, by the classes of both."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from pymc.model import Model
from pymc.step_methods.compound import CompoundStep
from pytensor.graph.basic import Apply, Variable

from pymc_dpsplit.variables.lookup import is_owned


class Declared(NamedTuple):
    """A measure and the variable of the rows, observed or latent, that depends on it.

    Attributes
    ----------
    name : str
    node : Apply
        Of the measure.
    measure : dict
        Role to free variable.
    value_names : dict
        The same roles to the name of the value in a point.
    rv : TensorVariable
        The observed or latent variable.
    """

    name: str
    node: Apply
    measure: dict[str, Variable]
    value_names: dict[str, str]
    rv: Variable


def declared_in(
    model: Model, step_name: str, rows_op: type[Any] | tuple[type[Any], ...]
) -> Iterator[Declared]:
    """Yield what is declared in a model, with all its variables, in order of declaration.

    Parameters
    ----------
    model : pymc.Model
    step_name : str
        Of the step that owns the measure.
    rows_op : type or tuple of type
        Class of the op of the rows, whose `target` names the measure.

    Yields
    ------
    Declared
    """
    owned = (rv.owner for rv in model.free_RVs if is_owned(rv, step_name))
    # Missing entries are owned too, and have no roles.
    nodes = {node.op.target: node for node in owned if hasattr(node.op, "roles")}
    for rv in model.basic_RVs:
        op: Any = None if rv.owner is None else rv.owner.op
        if not isinstance(op, rows_op) or op.target not in nodes:
            continue
        node = nodes[op.target]
        measure = dict(zip(node.op.roles, node.outputs[1:], strict=True))
        if set(measure.values()) <= set(model.free_RVs):
            names = {role: str(model.rvs_to_values[of].name) for role, of in measure.items()}
            yield Declared(op.target, node, measure, names, rv)


def owners_of(
    found: Mapping[str, Any], vars: Any, model: Model, kind: str, declaration: str
) -> list[Any]:
    """Return those to which variables belong.

    Parameters
    ----------
    found : mapping
        Name to a record that has `owned`, the variables of one step.
    vars : sequence of variables, optional
        All by default.
    model : pymc.Model
    kind, declaration : str
        What is looked for, in words and as it is declared.

    Returns
    -------
    list
        Values of `found`, at least one, in order of declaration.

    Raises
    ------
    ValueError
        If these are not all variables of one or more of them.
    """
    given = None if vars is None else {model.values_to_rvs.get(var, var) for var in vars}
    chosen = [one for one in found.values() if given is None or given & set(one.owned)]
    if not chosen or (given is not None and given != {rv for one in chosen for rv in one.owned}):
        raise ValueError(
            f"vars must be all variables of one {kind} or of several, of which the model has "
            f"{len(found)}; give those of each {declaration} whole."
        )
    return chosen


def owner_of(found: Mapping[str, Any], vars: Any, model: Model, kind: str, declaration: str) -> Any:
    """Return the one to which variables belong, as `owners_of`.

    Parameters
    ----------
    found, vars, model, kind, declaration
        See `owners_of`.

    Returns
    -------
    object
        A value of `found`.

    Raises
    ------
    ValueError
        If these are not all variables of a single one.
    """
    chosen = owners_of(found, vars, model, kind, declaration)
    if len(chosen) != 1:
        raise ValueError(
            f"vars must be all variables of one {kind}, of which the model has {len(found)}; "
            f"give those of one {declaration}, each its own step."
        )
    return chosen[0]


def one_step_each(
    new: Callable[..., Any],
    chosen: Sequence[Any],
    rng: np.random.Generator,
    arguments: Mapping[str, Any],
) -> CompoundStep:
    """Return a step for each of several, which have generators of their own.

    Parameters
    ----------
    new : callable
        `__new__` of the class of the steps, of the variables and the arguments.
    chosen : sequence
        Those whose variables, `owned`, a step takes.
    rng : numpy.random.Generator
        Those of the steps are spawned from it.
    arguments : mapping
        Of all steps, by name.

    Returns
    -------
    CompoundStep
    """
    steps = []
    for one, own in zip(chosen, rng.spawn(len(chosen)), strict=True):
        given = {**arguments, "rng": own, "blocked": True}
        step = new(one.owned, **given)
        step.__init__(one.owned, **given)
        steps.append(step)
    return CompoundStep(steps)
