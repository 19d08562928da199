"""What a user gives `Component`, taken apart: what each cluster has of its own, and what all share.

A model variable enters as an input that stands for it, so that what is kept holds no part of the
graph of a model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.sharedvar import TensorSharedVariable

from pymc_dpsplit.components.arguments import as_floats, shown

# Arguments of pm.CustomDist that are no parameters of the distribution.
_OF_CUSTOM = ("logp", "random", "dist", "logcdf", "support_point", "signature", "ndim_supp")
_MORE_OF_CUSTOM = ("dtype", "class_name", "ndims_params")


@dataclass(frozen=True)
class Declaration:
    """A component taken apart.

    Attributes
    ----------
    make : callable
        From arguments by name to an unnamed distribution of rows.
    label : str
        How messages and `repr` name the distribution.
    arguments : tuple of str
        Names of the arguments of `make` beside covariates; what else is shared belongs to the
        distributions in `own`.
    own : dict
        Name of each argument that a cluster has for itself to its distribution.
    shared : dict
        Name of each value that all clusters share to the input that stands for it in graphs.
    covariates : dict
        Name to ndarray of float64 (N, ...): values of each row.
    """

    make: Callable[..., Any]
    label: str
    arguments: tuple[str, ...]
    own: dict[str, Any]
    shared: dict[str, Any]
    covariates: dict[str, np.ndarray]

    @property
    def covariate_columns(self) -> np.ndarray | None:
        """All covariates side by side, (N, C); None if there are none."""
        if not self.covariates:
            return None
        columns = [value.reshape(len(value), -1) for value in self.covariates.values()]
        return np.ascontiguousarray(np.concatenate(columns, axis=1))


def declare(
    dist: Any, arguments: Mapping[str, Any], covariates: Mapping[str, Any] | None
) -> tuple[Declaration, dict[str, Any]]:
    """Take a component apart.

    Parameters
    ----------
    dist : type or callable
    arguments : mapping
    covariates : mapping, optional

    Returns
    -------
    declaration : Declaration
    hyperparameters : dict
        Name of each value that all clusters share to the value: a number, an array or a variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and what to give instead.
    """
    make, label, arguments = _maker_of(dist, dict(arguments))
    own: dict[str, Any] = {}
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if is_unnamed(value):
            own[name] = _without_model(name, value, given)
        elif value is not None:
            given[name] = value if isinstance(value, Variable) else as_floats(name, value)
    if not own:
        raise ValueError(_none_of_its_own(label, arguments))
    shared = {name: _stand_in(name, value, arguments) for name, value in given.items()}
    own = {name: _replaced(rv, given, shared) for name, rv in own.items()}
    rows = {name: _checked_covariate(name, value) for name, value in (covariates or {}).items()}
    if twice := sorted(set(rows) & set(arguments)):
        raise ValueError(
            f"{twice[0]} is given as an argument and among the covariates; leave one of them out."
        )
    return Declaration(make, label, tuple(arguments), own, shared, rows), given


def _maker_of(dist: Any, arguments: dict[str, Any]) -> tuple[Callable[..., Any], str, Any]:
    """Return a function from arguments to a distribution, its name, and the arguments it takes."""
    label = getattr(dist, "__name__", type(dist).__name__)
    if dist is pm.CustomDist:
        known = (*_OF_CUSTOM, *_MORE_OF_CUSTOM)
        options = {key: arguments.pop(key) for key in known if key in arguments}

        def make_custom(**values: Any) -> Any:
            return pm.CustomDist.dist(*(values[name] for name in arguments), **options)

        return make_custom, label, arguments
    if isinstance(dist, type) and hasattr(dist, "dist"):
        return dist.dist, f"pm.{label}", arguments
    if callable(dist) and not isinstance(dist, type | Variable):
        return dist, label, arguments
    raise ValueError(
        f"the distribution of a component is {shown(dist)}; give a class of PyMC, such as "
        "pm.StudentT, or a function of its arguments that returns an unnamed .dist()."
    )


def is_unnamed(value: Any) -> bool:
    """Whether a value is a distribution made by ``.dist()``, not registered in any model."""
    return isinstance(value, Variable) and value.name is None and _is_drawn(value)


def _is_drawn(variable: Variable) -> bool:
    """Whether a variable is itself a distribution."""
    return variable.owner is not None and variable in rvs_in_graph(variable)


def _without_model(name: str, rv: Any, given: dict[str, Any]) -> Any:
    """Add the model variables that a distribution depends on to what is shared; return it."""
    inner = isinstance(rv.owner.op, SymbolicRandomVariable)
    for variable in ancestors([rv]):
        is_data = isinstance(variable, TensorSharedVariable)
        if variable is rv or not (is_data or _is_drawn(variable)):
            continue
        if is_data or variable.name is not None:
            given[f"{name}_{str(variable.name).replace('::', '_')}"] = variable
        elif not inner:
            raise ValueError(
                f"{name} is a distribution whose own arguments are unnamed distributions; give "
                "them numbers or variables of the model, or give Component a function of all "
                "arguments that returns the distribution of a row."
            )
    return rv


def _stand_in(name: str, value: Any, arguments: Mapping[str, Any]) -> Any:
    """Input of graphs that stands for a shared value; whole numbers stay whole."""
    if isinstance(value, Variable):
        tensor: Any = pt.as_tensor(value)
        if None in tensor.type.shape:
            raise ValueError(
                f"{name} is a variable of shape {tensor.type.shape}; give one whose shape is known "
                "beforehand, by shape= in its declaration."
            )
        return pt.tensor(name, dtype=tensor.type.dtype, shape=tensor.type.shape)
    is_whole = np.asarray(arguments.get(name)).dtype.kind in "iu"
    return pt.tensor(name, dtype="int64" if is_whole else "float64", shape=np.shape(value))


def _replaced(rv: Any, given: Mapping[str, Any], shared: Mapping[str, Any]) -> Any:
    """Copy of a distribution in which inputs stand for model variables."""
    pairs = [(value, shared[key]) for key, value in given.items() if isinstance(value, Variable)]
    return clone_replace([rv], replace=pairs)[0]


def _none_of_its_own(label: str, arguments: Mapping[str, Any]) -> str:
    named = [name for name, value in arguments.items() if isinstance(value, Variable)]
    if named:
        return (
            f"{named[0]} of {label} is a variable of the model, which all clusters share, and no "
            f"argument differs by cluster; give {named[0]} as an unnamed .dist(), such as "
            "pm.Normal.dist(0, 10)."
        )
    return (
        f"no argument of {label} differs by cluster; give at least one as an unnamed .dist(), "
        "such as mu=pm.Normal.dist(0, 10)."
    )


def _checked_covariate(name: str, value: Any) -> np.ndarray:
    array = as_floats(name, value)
    if not array.ndim:
        raise ValueError(
            f"covariate {name} is a single number; give an array, a row for each row of the data."
        )
    return array
