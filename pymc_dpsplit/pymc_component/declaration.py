"""Parsing of the arguments of `Component` into cluster parameters and shared values.

Model variables are replaced by inputs, so that the result contains no part of the graph of a model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.logprob.utils import CheckParameterValue
from pymc.pytensorf import rvs_in_graph
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.tensor.sharedvar import TensorSharedVariable

from pymc_dpsplit.components.arguments import as_floats, shown
from pymc_dpsplit.pymc_component.covariates import Held, hold, present, shape_of_rows

# Arguments of pm.CustomDist that are not parameters of the distribution.
_OF_CUSTOM = ("logp", "random", "dist", "logcdf", "support_point", "signature", "ndim_supp")
_MORE_OF_CUSTOM = ("dtype", "class_name", "ndims_params")
# For conditions on a few numbers, evaluated once.
_IN_PYTHON = Mode(linker="py", optimizer="fast_compile")


@dataclass(frozen=True)
class Declaration:
    """Parsed arguments of a component.

    Attributes
    ----------
    make : callable
        From arguments by name to an unnamed distribution of rows.
    label : str
        Name of the distribution in messages and in `repr`.
    arguments : tuple of str
        Names of the arguments of `make` without covariates; other shared values are arguments of
        the distributions in `own`.
    own : dict
        Name of each cluster parameter to its distribution.
    shared : dict
        Name of each value that all clusters share to the input that replaces it in graphs.
    held : dict
        Name of each covariate to ndarray of float64 (N, ...), or the reader of its ``pm.Data``.
    """

    make: Callable[..., Any]
    label: str
    arguments: tuple[str, ...]
    own: dict[str, Any]
    shared: dict[str, Any]
    held: dict[str, Held]

    @property
    def covariates(self) -> dict[str, np.ndarray]:
        """Return the present covariates, name to ndarray of float64 (N, ...)."""
        return present(self.held)

    @property
    def covariate_columns(self) -> np.ndarray | None:
        """Return all covariates in one array (N, C), or None if there are none."""
        if not self.held:
            return None
        covariates = self.covariates
        columns = [value.reshape(len(value), -1) for value in covariates.values()]
        if len({len(value) for value in columns}) > 1:
            lengths = ", ".join(f"{name} {len(value)}" for name, value in covariates.items())
            raise ValueError(
                f"covariates differ in their number of rows ({lengths}); give the same."
            )
        return np.ascontiguousarray(np.concatenate(columns, axis=1))

    def with_covariates(self, covariates: Any) -> "Declaration":
        """Return the declaration with other rows of the same covariates."""
        refuse_other_covariates(covariates)
        if set(covariates or ()) != set(self.covariates):
            raise ValueError(
                f"covariates are {sorted(covariates or ())}, but the component was declared with "
                f"{sorted(self.covariates)}; give a dict of these."
            )
        known = self.covariates
        other = present({name: hold(name, covariates[name]) for name in known})
        lengths = {len(value) for value in other.values()}
        for name, value in other.items():
            wanted = known[name].shape[1:]
            if value.shape[1:] != wanted or len(lengths) > 1:
                raise ValueError(
                    f"covariate {name} has shape {value.shape}; give shape "
                    f"{shape_of_rows('M', wanted)}, with the same M for all covariates."
                )
        return replace(self, held=dict(other))


def declare(
    dist: Any, arguments: Mapping[str, Any], covariates: Mapping[str, Any] | None
) -> tuple[Declaration, dict[str, Any]]:
    """Parse the arguments of a component.

    Parameters
    ----------
    dist : type or callable
        As for `Component`.
    arguments : mapping
        Arguments of the distribution by name.
    covariates : mapping, optional
        As for `Component`.

    Returns
    -------
    declaration : Declaration
    hyperparameters : dict
        Name of each value that all clusters share to a number, an array or a variable.

    Raises
    ------
    ValueError
        With one sentence that names the argument, the fault and the remedy.
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
    rows = {name: hold(name, value) for name, value in (covariates or {}).items()}
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
        return partial(_make_custom, tuple(arguments), options), label, arguments
    if isinstance(dist, type) and hasattr(dist, "dist"):
        return dist.dist, f"pm.{label}", arguments
    if callable(dist) and not isinstance(dist, type | Variable):
        return dist, label, arguments
    raise ValueError(
        f"the distribution of a component is {shown(dist)}; give a class of PyMC, such as "
        "pm.StudentT, or a function of its arguments that returns an unnamed .dist()."
    )


def _make_custom(names: tuple[str, ...], options: dict[str, Any], /, **values: Any) -> Any:
    return pm.CustomDist.dist(*(values[name] for name in names), **options)


def is_unnamed(value: Any) -> bool:
    """Return whether a value is a distribution made by ``.dist()``, outside any model."""
    return isinstance(value, Variable) and value.name is None and _is_drawn(value)


def refuse_other_covariates(covariates: Any) -> None:
    """Raise ValueError if covariates are neither left out nor given by name."""
    if covariates is not None and not isinstance(covariates, Mapping):
        raise ValueError(
            f"covariates={shown(covariates)} is not a dict; give one of names to arrays, a row for "
            "each row of the data."
        )


def refuse_impossible_laws(arguments: Mapping[str, Any]) -> None:
    """Refuse base measures whose own arguments are out of range, such as a negative scale.

    Parameters
    ----------
    arguments : mapping
        Of a component; what is no unnamed distribution is not looked at.

    Raises
    ------
    ValueError
        With one sentence that names the argument.
    """
    for name, value in arguments.items():
        if is_unnamed(value) and (fault := _fault_of_law(value)):
            raise ValueError(
                f"{name} is a distribution whose arguments {fault}; give them values in range."
            )


def _fault_of_law(rv: Any) -> str:
    """What is wrong with the numbers among the arguments of a distribution, "" if nothing is."""
    for of in rv.owner.inputs:
        is_number = isinstance(of, Constant) and np.asarray(of.data).dtype.kind == "f"
        if is_number and np.isnan(of.data).any():
            return "hold NaN"
    try:
        density = pm.logp(rv, rv.type())
    except Exception:  # one without a density is refused later, and is none of this function's
        return ""
    for of in ancestors([density]):
        op = getattr(of.owner, "op", None)
        if isinstance(op, CheckParameterValue):
            conditions = of.owner.inputs[1:]
            # A variable of the model has no value yet.
            is_known = all(isinstance(root, Constant) for root in graph_inputs(conditions))
            if is_known and not all(bool(each.eval(mode=_IN_PYTHON)) for each in conditions):
                return f"break {op.msg}"
    return ""


def _is_drawn(variable: Variable) -> bool:
    """Return whether a variable is the output of a distribution."""
    return variable.owner is not None and variable in rvs_in_graph(variable)


def _without_model(name: str, rv: Any, given: dict[str, Any]) -> Any:
    """Add the model variables behind a distribution to the shared values; return it."""
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
    """Return the input that replaces a shared value in graphs; integers keep their dtype."""
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
    """Return a copy of a distribution in which inputs replace model variables."""
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
