"""Hyperparameters that a user gives, as graphs: numbers checked, variables given their shapes."""

from typing import Any

import pytensor.tensor as pt
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.shape import specify_shape

from pymc_dpsplit.components.declaration import Component


def checked_hyperparameters(component: Component, n_features: int, model: Model) -> list[Variable]:
    """Return the hyperparameters as float64 graphs of the shapes that the family wants."""
    given = component.hyperparameters
    are_variables = {key: isinstance(value, Variable) for key, value in given.items()}
    # Legal stand-ins for the variables, so that the family can check the numbers beside them.
    stand_ins = component.stand_ins(n_features) if any(are_variables.values()) else {}
    numbers = {key: stand_ins[key] if are_variables[key] else given[key] for key in given}
    checked = component.check(numbers, n_features)
    graphs: list[Variable] = []
    for key, ndim in component.hyperparameter_ndims().items():
        if are_variables[key]:
            refuse_strangers(key, given[key], model)
            shape = component.shape_of(key, ndim, n_features)
            graphs.append(_shaped(key, given[key], ndim, shape, n_features))
        else:
            graphs.append(pt.constant(checked[key]))
    return graphs


def refuse_strangers(key: str, value: Variable, model: Model) -> None:
    """Refuse a value that depends on a distribution outside the model."""
    if strangers(value, model):
        raise ValueError(
            f"{key} holds a distribution that is not in this model; declare it by name, as in "
            f'pm.Gamma("{key}", 2, 4), inside the model.'
        )


def strangers(value: Variable, model: Model) -> set[Variable]:
    """Distributions behind a value that are not in the model, nor part of one that is."""
    known: Any = model.root.basic_RVs
    near = set(ancestors([value], blockers=known))
    return {rv for rv in rvs_in_graph(value) if rv in near} - set(known)


def _shaped(key: str, value: Any, ndim: int, shape: tuple[int, ...], n_features: int) -> Variable:
    """Give a variable its shape, of which `ndim` dimensions are of length D."""
    tensor: Any = pt.as_tensor(value).astype("float64")
    fits = tensor.type.ndim == len(shape) and all(
        given in (None, length) for given, length in zip(tensor.type.shape, shape, strict=True)
    )
    if fits:
        return specify_shape(tensor, shape) if shape else tensor
    if all(length == 1 for length in tensor.type.shape) and (ndim < 2 or n_features == 1):
        return pt.full(shape, tensor.reshape(()))
    wanted = f"shape {shape}" if shape else "a scalar"
    raise ValueError(
        f"{key} is a variable of shape {tensor.type.shape}, but the data have {n_features} "
        f"feature{'s' if n_features > 1 else ''}; give {wanted}."
    )
