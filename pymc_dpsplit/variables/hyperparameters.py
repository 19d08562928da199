"""Conversion of hyperparameters to graphs: check numbers, and broadcast variables."""

from collections.abc import Callable
from typing import Any

import pytensor.tensor as pt
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.tensor.shape import specify_shape

from pymc_dpsplit.components.arguments import positive_scalar, shown
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.variables.dims import without_dims


def checked_hyperparameters(
    component: ComponentFamily, n_features: int, model: Model
) -> list[Variable]:
    """Return the hyperparameters as float64 graphs of the shapes that the family requires.

    Parameters
    ----------
    component : ComponentFamily
    n_features : int
        Number of features D.
    model : pymc.Model

    Returns
    -------
    list of TensorVariable
        In the order of `component.hyperparameters`.
    """
    given = component.hyperparameters
    are_variables = {key: isinstance(value, Variable) for key, value in given.items()}
    # Legal numbers replace the variables, so that the family can check the other hyperparameters.
    example_hyperparameters = (
        component.example_hyperparameters(n_features) if any(are_variables.values()) else {}
    )
    numbers = {
        key: example_hyperparameters[key] if are_variables[key] else given[key] for key in given
    }
    checked = component.check(numbers, n_features)
    graphs: list[Variable] = []
    for key, ndim in component.hyperparameter_ndims().items():
        if are_variables[key]:
            refuse_foreign_rvs(key, given[key], model)
            shape = component.shape_of(key, ndim, n_features)
            graphs.append(_shaped(key, given[key], ndim, shape, n_features))
        else:
            graphs.append(pt.constant(checked[key]))
    return graphs


def checked_scalar(
    key: str,
    value: Any,
    model: Model,
    meaning: str,
    check: Callable[[str, Any], float] = positive_scalar,
) -> Variable:
    """Return a number or a variable as a scalar of the graph.

    Parameters
    ----------
    key : str
        Name of the argument, used in messages.
    value : float or TensorVariable
    model : pymc.Model
    meaning : str
        What the argument is, and the remedy, which end the sentence about a value of None.
    check : callable
        Returns the number as a float, or raises ValueError.

    Returns
    -------
    TensorVariable
        Of float64.

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    if not isinstance(value, Variable):
        if value is None:
            raise ValueError(f"{key}=None is no {meaning}.")
        if isinstance(value, str | bytes):
            raise ValueError(f"{key}={shown(value)} is a string; give a positive number.")
        return pt.constant(check(key, value), dtype="float64")
    refuse_foreign_rvs(key, value, model)
    tensor = as_real_tensor(key, value)
    if tensor.type.ndim and any(length != 1 for length in tensor.type.shape):
        raise ValueError(
            f"{key}={value} has shape {tensor.type.shape}; give a scalar, for instance {key}[0]."
        )
    if not rvs_in_graph(value):
        check(key, value.eval())
    return tensor.reshape(()) if tensor.type.ndim else tensor


def refuse_foreign_rvs(key: str, value: Variable, model: Model) -> None:
    """Refuse a value that depends on a distribution outside the model, or on a valueless input.

    Parameters
    ----------
    key : str
        Name of the argument, used in the message.
    value : TensorVariable
    model : pymc.Model
    """
    roots = graph_inputs([value])
    free = [root for root in roots if not isinstance(root, SharedVariable | Constant)]
    if free:
        raise ValueError(
            f"{key} depends on {free[0]}, which has no value in this model; give a number, pm.Data "
            "or a variable of the model."
        )
    if foreign_rvs(value, model):
        raise ValueError(
            f"{key} holds a distribution that is not in this model; declare it by name, as in "
            f'pm.Gamma("{key}", 2, 4), inside the model.'
        )


def foreign_rvs(value: Variable, model: Model) -> set[Variable]:
    """Return the distributions that a value depends on and that are not part of the model."""
    known: Any = model.root.basic_RVs
    near = set(ancestors([value], blockers=known))
    return {rv for rv in rvs_in_graph(value) if rv in near} - set(known)


def as_real_tensor(key: str, value: Any) -> Any:
    """Return a variable as a tensor of real numbers."""
    try:
        tensor: Any = pt.as_tensor(without_dims(value))
    except (TypeError, ValueError, NotImplementedError):  # a generator of random numbers, say
        tensor = None
    kind = getattr(getattr(tensor, "type", None), "dtype", type(value).__name__)
    if tensor is None or not kind.startswith(("float", "int", "uint", "bool")):
        raise ValueError(
            f"{key}={value} is of type {kind}, not of real numbers; give a number or a variable of "
            "real numbers."
        )
    return tensor


def _shaped(key: str, value: Any, ndim: int, shape: tuple[int, ...], n_features: int) -> Variable:
    """Broadcast a variable to its shape, of which `ndim` axes have length D."""
    tensor: Any = as_real_tensor(key, value).astype("float64")
    fits = tensor.type.ndim == len(shape) and all(
        given in (None, length) for given, length in zip(tensor.type.shape, shape, strict=True)
    )
    if fits:
        return specify_shape(tensor, shape) if shape else tensor
    is_one = all(length == 1 for length in shape)
    if all(length == 1 for length in tensor.type.shape) and (ndim < 2 or is_one):
        return pt.full(shape, tensor.reshape(()))
    wanted = f"shape {shape}" if shape else "a scalar"
    raise ValueError(
        f"{key} is a variable of shape {tensor.type.shape}, but the data have {n_features} "
        f"feature{'s' if n_features > 1 else ''}; give {wanted}."
    )
