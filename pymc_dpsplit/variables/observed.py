"""Parsing of the argument `observed`: data, their mean, and the missing entries."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.data import MinibatchOp
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.scalar.basic import Add, Neg, Sub
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.arguments import array_of, rows_of
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.sparse_counts import is_sparse, rows_of_sparse
from pymc_dpsplit.components.unmoved_rows import what_no_step_moves
from pymc_dpsplit.data.blocks import missing_index_of
from pymc_dpsplit.data.fixed_rows import fixed, memory_map_of
from pymc_dpsplit.data.sparse_rows import Rows
from pymc_dpsplit.variables.sparse_data import expanded, is_expanded, rows_behind

# Arrays of fewer bytes are copied, so that later changes by the user do not affect the model.
_COPIED_BELOW = 2**24


@dataclass(frozen=True)
class Observed:
    """Observations of a mixture, read and checked.

    Attributes
    ----------
    shape : tuple of int
        Number of observations N and of features D.
    component : ComponentFamily
        The family, adapted to the data.
    values : TensorVariable, optional
        Observed data, shape (N,) or (N, D), NaN where missing; None if the mixture is latent.
    mean : TensorVariable, optional
        Subtracted from the data; depends on variables of the model.
    missing_index : tuple of ndarray of int64, shape (M,)
        Row and feature of each missing entry; () if the data are complete.
    initial_values : ndarray of float64, shape (M,)
        Initial values of the missing entries: the mean of the feature, rounded if discrete.
    warning : str, optional
        Warning for the user.
    """

    shape: tuple[int, int]
    component: ComponentFamily
    values: Any = None
    mean: Any = None
    missing_index: tuple[np.ndarray, ...] = ()
    initial_values: np.ndarray = field(default_factory=lambda: np.empty(0))
    warning: str | None = None

    @property
    def dtype(self) -> str:
        """Return the dtype of the observed or latent variable: that of the data, if supported."""
        is_single = self.values is not None and self.mean is None
        return "float32" if is_single and self.values.type.dtype == "float32" else "float64"

    @property
    def is_labelled(self) -> bool:
        """Return whether other variables depend on the labels, so that these are variables too."""
        held = [self.component.hyperparameters[key] for key in self.component.likelihood_arguments]
        moves = any(isinstance(value, Variable) and rvs_in_graph(value) for value in held)
        return self.values is None or self.mean is not None or moves


def may_grow(observed: Any) -> bool:
    """Whether `pm.set_data` may give a mixture more rows than it is declared with."""
    roots = graph_inputs([observed]) if isinstance(observed, Variable) else []
    return any(isinstance(root, SharedVariable) for root in roots)


def lengths_of(shape: Any) -> list[Any]:
    """Entries of the argument `shape`, None in place of what is no number."""
    array, fault = array_of(shape)
    entries = [None] if fault or array.ndim > 1 else list(np.atleast_1d(array))
    return [n if isinstance(n, int | float | np.number) else None for n in entries]


def _with_holes(values: Any, mean: Any, rows: np.ndarray, component: ComponentFamily) -> Observed:
    """Check rows against the family, and find their missing entries.

    Values are a variable, or an array that is used in the graph as it is.
    """
    component = component.validate_rows(rows)
    n_obs, n_features = shape = rows.shape
    where, features = missing_index_of(rows)
    if isinstance(values, np.ndarray):
        values = _as_variable(values, is_complete=not len(where))
    # Ties in the data do not matter if a mean that varies is subtracted.
    warning = component.warning_for(rows) if mean is None else None
    if not len(where):
        return Observed(shape, component, values, mean, warning=warning)
    n_present = n_obs - np.bincount(features, minlength=n_features)
    means = np.nansum(rows, axis=0, dtype=np.float64) / np.maximum(n_present, 1)
    start = component.support_point(means)[features]
    return Observed(shape, component, values, mean, (where, features), start, warning)


def values_of(data: Any) -> Rows:
    """Return the value of an expression of data alone, without a copy if possible.

    Parameters
    ----------
    data : TensorVariable

    Returns
    -------
    SparseRows, or ndarray
    """
    if is_expanded(data):
        return rows_behind(data)
    if isinstance(data, SharedVariable):
        return data.get_value(borrow=True)
    return data.data if isinstance(data, Constant) else data.eval()


def _as_variable(values: np.ndarray, is_complete: bool) -> Variable:
    """Return data as a variable of the graph.

    Complete data become a shared variable, whose array PyTensor uses in place; a constant would be
    hashed, compared by value and embedded in compiled code.  Incomplete data become a constant,
    because PyTensor then locates the missing entries once.
    """
    if not is_complete:
        return pt.constant(np.array(values))
    of = TensorType(values.dtype, shape=values.shape)
    return TensorSharedVariable(of, fixed(values), strict=True)


def _of_its_own(values: np.ndarray) -> np.ndarray:
    """Return values, copied if they are small."""
    stays = values.nbytes >= _COPIED_BELOW or memory_map_of(values) is not None
    return values if stays else values.copy()


def read_observed(observed: Any, component: ComponentFamily) -> Observed:
    """Check observations and split them into data, mean and missing entries.

    Parameters
    ----------
    observed : array-like or TensorVariable
        Numbers, ``pm.Data``, or either less an expression of variables of the model.
    component : ComponentFamily

    Returns
    -------
    Observed

    Raises
    ------
    ValueError
        With one sentence that names the fault and the remedy.
    """
    if is_sparse(observed):
        return _read_sparse(observed, component)
    if not isinstance(observed, Variable):
        component, observed = component.read_table(observed)
        rows = rows_of(observed, component.row_ndim, may_miss=True)
        values = _of_its_own(rows if component.row_ndim else rows[:, 0])
        return _with_holes(values, None, rows, component)
    _refuse_minibatch(observed)
    data, mean = _split_mean(observed) if rvs_in_graph(observed) else (observed, None)
    unmoved = what_no_step_moves(component)
    if mean is not None and unmoved:
        raise ValueError(
            f"observed is data less a mean, of which {type(component).__name__} is no model, as "
            f"its rows hold {unmoved}; give the data alone."
        )
    if not all(isinstance(root, SharedVariable | Constant) for root in graph_inputs([data])):
        raise ValueError(
            f"observed={observed} depends on variables that are not data; give an array or pm.Data."
        )
    array: Any = values_of(data)
    rows = rows_of(array, component.row_ndim, may_miss=True)
    if mean is not None:
        _refuse_broadcasting(array.shape, mean)
    return _with_holes(data, mean, rows, component)


def _read_sparse(observed: Any, component: ComponentFamily) -> Observed:
    if not component.reads_sparse:
        raise ValueError(
            f"observed is a sparse matrix, which {type(component).__name__} cannot read; give "
            "observed.toarray()."
        )
    rows = rows_of_sparse(observed)
    return Observed(rows.shape, component.validate_rows(rows), expanded(rows))


def register_observed(
    x: Any, name: str, observed: Observed, dims: tuple[str, ...] | None, model: Model
) -> Variable:
    """Register an observed variable in a model without a copy of the data.

    `Model.register_rv` would convert the data to ``floatX``, in a second array.

    Parameters
    ----------
    x : TensorVariable
    name : str
    observed : Observed
    dims : tuple of str, optional
    model : pymc.Model

    Returns
    -------
    TensorVariable
        `x`, named.
    """
    x.name = model.name_for(name)
    for axis, dim in enumerate(dims or ()):
        if dim not in model.dim_lengths:
            model.add_coord(dim, values=None, length=x.shape[axis])
    value = observed.values.astype(observed.dtype)
    model.create_value_var(x, transform=None, default_transform=None, value_var=value)
    model.add_named_variable(x, dims)
    model.observed_RVs.append(x)
    return x


def names_of_holes(observed: Observed, dims: tuple[str, ...] | None, model: Model) -> list[str]:
    """Return a name for each missing entry, from its row and, if D > 1, its feature.

    Parameters
    ----------
    observed : Observed
    dims : tuple of str, optional
    model : pymc.Model

    Returns
    -------
    list of str
    """
    columns = []
    for axis in range(observed.values.ndim):
        known = model.coords.get(dims[axis]) if dims else None
        index = observed.missing_index[axis]
        columns.append([str(i if known is None else known[i]) for i in index])
    return [", ".join(names) for names in zip(*columns, strict=True)]


def _refuse_broadcasting(data: tuple[int, ...], mean: Any) -> None:
    shape = tuple(int(n) for n in mean.shape.eval())
    try:
        fits = np.broadcast_shapes(data, shape) == data
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"observed is data of shape {data} less a mean of shape {shape}; give a mean of one "
            "value for each entry of the data."
        )


def _refuse_minibatch(observed: Variable) -> None:
    nodes = (variable.owner for variable in ancestors([observed]))
    if any(node is not None and isinstance(node.op, MinibatchOp) for node in nodes):
        raise ValueError(
            "observed is a pm.Minibatch, but the sampler of a mixture reads all observations in "
            "every sweep; give the whole array, which it handles at a million rows."
        )


def _split_mean(expression: Variable) -> tuple[Any, Variable]:
    """Write an expression as data less a mean that depends on variables of the model.

    Only sums and differences are split, so that the density of the data equals that of the
    expression, without a Jacobian.
    """
    data: Any = None
    mean: Any = None
    term: Any
    for sign, term in _terms_of(expression, 1):
        signed = term if sign > 0 else -term
        if rvs_in_graph(term):
            mean = -signed if mean is None else mean - signed
        else:
            data = signed if data is None else data + signed
    if data is None or data.type.ndim != expression.type.ndim:
        raise ValueError(
            f"observed={expression} depends on variables of the model otherwise than as data less "
            "a mean; give observed=data - mean, with the data an array or pm.Data."
        )
    return data, mean


def _terms_of(expression: Any, sign: int) -> Iterator[tuple[int, Variable]]:
    """Yield the terms of a sum with their signs; an expression of data alone is one term."""
    node = expression.owner
    scalar_op = getattr(node.op, "scalar_op", None) if node is not None else None
    is_sum = node is not None and isinstance(node.op, Elemwise) and rvs_in_graph(expression)
    if is_sum and isinstance(scalar_op, Add):
        for term in node.inputs:
            yield from _terms_of(term, sign)
    elif is_sum and isinstance(scalar_op, Sub):
        yield from _terms_of(node.inputs[0], sign)
        yield from _terms_of(node.inputs[1], -sign)
    elif is_sum and isinstance(scalar_op, Neg):
        yield from _terms_of(node.inputs[0], -sign)
    else:
        yield sign, expression
