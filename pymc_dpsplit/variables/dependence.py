"""Which variables of a model change with another one while the values in a point stay.

A point holds transformed values.  The value of ``u = pm.Uniform("u", 0, alpha)`` is its log odds
between the bounds, so that u itself, and all that depends on it, moves with alpha
(docs/decisions/0082-what-moves-with-a-variable.md).
"""

from collections.abc import Iterable
from typing import Any

from pymc.model import Model
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors


def variables_above(graphs: Iterable[Variable], model: Model) -> set[Any]:
    """Return the random variables on which graphs depend directly.

    Parameters
    ----------
    graphs : iterable of TensorVariable
    model : pymc.Model

    Returns
    -------
    set of TensorVariable
    """
    variables: Any = model.basic_RVs
    return set(ancestors(list(graphs), blockers=variables)).intersection(variables)


def variables_read(graphs: Iterable[Variable], model: Model) -> set[Any]:
    """Return the random variables that change graphs if the other values in a point stay.

    Parameters
    ----------
    graphs : iterable of TensorVariable
    model : pymc.Model

    Returns
    -------
    set of TensorVariable
        Those on which graphs depend directly, and those that bound one of them.
    """
    found: set[Any] = set()
    new = variables_above(graphs, model)
    while new:
        found |= new
        new = variables_above([_from_value(rv, model) for rv in new], model) - found
    return found


def dependents_of(rv: Variable, model: Model) -> list[Variable]:
    """Return the variables and potentials whose terms change with a variable.

    Parameters
    ----------
    rv : TensorVariable
    model : pymc.Model

    Returns
    -------
    list of TensorVariable
        Those whose log density, as a function of the values in a point, depends on the variable.
    """
    # In the term of a variable the others are values, so their ancestors do not count.
    inputs = {other: other.owner.inputs for other in model.basic_RVs if other is not rv}
    inputs |= {potential: [potential] for potential in model.potentials}
    return [term for term, graphs in inputs.items() if rv in variables_read(graphs, model)]


def _from_value(rv: Any, model: Model) -> Any:
    """Return a variable as a function of its value, which is the value itself if that is plain."""
    value, transform = model.rvs_to_values[rv], model.rvs_to_transforms.get(rv)
    return value if transform is None else transform.backward(value, *rv.owner.inputs)
