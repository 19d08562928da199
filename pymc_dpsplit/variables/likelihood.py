"""The likelihood of each row of a latent mixture, where the model has one for each.

What depends on the latent variable, other observations and potentials of the model, is a
likelihood of it.  Where every element of those terms depends on a single row, as in
``pm.Binomial("y", n, logit_p=b, observed=y)`` or with ``b[group]``, rows are independent given
the random measure, and the step can move them together with their labels.  Which row an
element depends on is read off the graph: operations that only move numbers about are carried
out on the indices of the rows instead, and whatever is not understood counts as depending on
all rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.compile.maker import function as pytensor_function
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import io_toposort, walk
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Join
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.symbolic import TensorSymbolicOp

from pymc_dpsplit.variables.held import HeldValues
from pymc_dpsplit.variables.lookup import MixtureVariables
from pymc_dpsplit.variables.owned_terms import TwoReadings
from pymc_dpsplit.variables.ownership import dependents_of

# An element that depends on no row, and one that depends on several.
_NO_ROW, _SEVERAL = -1, -2
_MOVING = (DimShuffle, Reshape, Subtensor, AdvancedSubtensor, Join, Alloc)


class RowLikelihood:
    """Log likelihood of each row of a latent mixture.

    Parameters
    ----------
    terms : list of TensorVariable
        Of the values of the model.
    owners : list of ndarray of int64
        Row on which each element of each term depends, -1 for none.
    value : TensorVariable
        Value of the latent variable.
    held : HeldValues
        The other values.
    """

    def __init__(
        self,
        terms: list[Variable],
        owners: list[np.ndarray],
        value: Any,
        held: HeldValues,
    ) -> None:
        self._held = held
        self._owners = [owner.reshape(-1) for owner in owners]
        self._shape = (-1, *value.type.shape[1:])
        self._function = compile_function([value], held.replace(terms), on_unused_input="ignore")

    def hold(self, point: Mapping[str, np.ndarray]) -> None:
        """Take the other variables from a point."""
        self._held.set(point)

    def evaluate(self, value: np.ndarray) -> np.ndarray:
        """Log likelihood (N,) at rows (N, D) of the latent variable."""
        total = np.zeros(len(value))
        for term, owner in zip(
            self._function(value.reshape(self._shape)), self._owners, strict=True
        ):
            is_owned = owner >= 0
            total += np.bincount(
                owner[is_owned], np.reshape(term, -1)[is_owned], minlength=len(value)
            )
        return total


def row_likelihood(
    mixture: MixtureVariables, model: Model, point: Mapping[str, np.ndarray]
) -> RowLikelihood | None:
    """Return the likelihood of the rows of a latent mixture, if each row has its own.

    Parameters
    ----------
    mixture : MixtureVariables
        A latent one.
    model : pymc.Model
    point : mapping
        Any point of the model.

    Returns
    -------
    RowLikelihood or None
        None if some term depends on several rows, or in a way that is not understood.
    """
    if mixture.rows not in model.free_RVs:
        return None
    value = model.rvs_to_values[mixture.rows]
    likelihoods = dependents_of(mixture.rows, model)
    terms = model.logp(vars=likelihoods, sum=False, jacobian=False) if likelihoods else []
    rows = np.arange(len(point[str(value.name)]))
    own = np.broadcast_to(rows.reshape(-1, *[1] * (value.ndim - 1)), point[str(value.name)].shape)
    owners = _owners_of(_inlined(terms), value, own, model, point)
    if any((owner == _SEVERAL).any() for owner in owners):
        return None
    return RowLikelihood(terms, owners, value, HeldValues(model, value, point))


def _inlined(terms: list[Variable]) -> list[Variable]:
    """Replace ops that are defined by graphs, such as LogSumExp, by these graphs."""
    while True:
        symbolic = (
            node for node in io_toposort([], terms) if isinstance(node.op, TensorSymbolicOp)
        )
        node = next(symbolic, None)
        if node is None:
            return terms
        inner = node.op.build_inner_graph(*node.inputs)
        terms = clone_replace(terms, dict(zip(node.outputs, inner, strict=True)))


def _owners_of(
    terms: list[Variable],
    value: Variable,
    own: np.ndarray,
    model: Model,
    point: Mapping[str, np.ndarray],
) -> list[np.ndarray]:
    """Row on which each element of each term depends."""
    nodes = [node for node in io_toposort([], terms) if value in _roots(node.outputs)]
    shapes, numbers = _evaluate_around(nodes, terms, model, point)
    owners: dict[Variable, np.ndarray] = {value: own}
    for node in nodes:
        for out in node.outputs:
            shape = shapes[out]
            owners[out] = _owners_after(node, owners, numbers, shape)
    nothing = {term: np.full(shapes[term], _NO_ROW) for term in terms}
    return [owners.get(term, nothing[term]) for term in terms]


def _roots(graphs: Sequence[Variable]) -> set[Variable]:
    """Variables whose numbers graphs read; shapes count as known, since they do not change."""

    def expand(variable: Any) -> Any:
        node = variable.owner
        return None if node is None or isinstance(node.op, Shape | Shape_i) else node.inputs

    return {variable for variable in walk(graphs, expand) if variable.owner is None}


def _evaluate_around(
    nodes: list[Apply], terms: list[Variable], model: Model, point: Mapping[str, np.ndarray]
) -> tuple[dict[Variable, tuple[int, ...]], dict[Variable, np.ndarray]]:
    """Shapes of what the nodes compute and read, and the values of indices that are fixed."""
    outputs = [*(out for node in nodes for out in node.outputs), *terms]
    read = [var for node in nodes for var in node.inputs if hasattr(var.type, "ndim")]
    shaped = list(dict.fromkeys([*outputs, *read]))
    fixed = [
        var
        for node in nodes
        if isinstance(node.op, _MOVING)
        for var in node.inputs
        if all(isinstance(root, Constant | SharedVariable) for root in _roots([var]))
    ]
    fixed = list(dict.fromkeys(fixed))
    values = list(model.value_vars)
    function = pytensor_function(
        values,
        [*(var.shape for var in shaped), *fixed],  # type: ignore[attr-defined]
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    found = function(*(point[str(var.name)] for var in values))
    shapes = {
        var: tuple(int(n) for n in shape)
        for var, shape in zip(shaped, found[: len(shaped)], strict=True)
    }
    return shapes, dict(zip(fixed, found[len(shaped) :], strict=True))


def _owners_after(
    node: Apply,
    owners: dict[Variable, np.ndarray],
    numbers: dict[Variable, Any],
    shape: tuple[int, ...],
) -> np.ndarray:
    """Row on which each element of the output of a node depends."""
    several = np.full(shape, _SEVERAL)
    dependent = [owners[var] for var in node.inputs if var in owners]
    if isinstance(node.op, Elemwise):
        return _combine([np.broadcast_to(owner, shape) for owner in dependent])
    if isinstance(node.op, TwoReadings):
        return owners.get(node.inputs[1], np.full(shape, _NO_ROW))
    if isinstance(node.op, CheckAndRaise | SpecifyShape):
        # Conditions raise or do nothing: they change no number.
        return owners.get(node.inputs[0], np.full(shape, _NO_ROW))
    if isinstance(node.op, CAReduce):
        axes = node.op.axis if node.op.axis is not None else tuple(range(dependent[0].ndim))
        moved = np.moveaxis(dependent[0], axes, range(len(axes)))
        return _combine(list(moved.reshape(-1, *moved.shape[len(axes) :])))
    if isinstance(node.op, _MOVING):
        sources = node.inputs if isinstance(node.op, Join) else node.inputs[:1]
        inputs: list[Any] = []
        for var in node.inputs:
            # A row on which an index depends may be anywhere.
            if var in owners and var in sources:
                inputs.append(owners[var])
            elif var in numbers:
                inputs.append(numbers[var])
            else:
                return several
        storage: list[list[Any]] = [[None]]
        if isinstance(node.op, Join):
            inputs = [
                part if var in owners else np.full_like(part, _NO_ROW, dtype=np.int64)
                for var, part in zip(node.inputs, inputs, strict=True)
            ]
        node.op.perform(node, inputs, storage)
        # Joining makes the type that it announces, which is that of the numbers.
        return np.asarray(storage[0][0]).astype(np.int64)
    return several


def _combine(owners: list[np.ndarray]) -> np.ndarray:
    """Row on which each element of a function of several arrays depends."""
    combined = owners[0]
    for owner in owners[1:]:
        differ = (combined != owner) & (combined != _NO_ROW) & (owner != _NO_ROW)
        combined = np.where(differ, _SEVERAL, np.where(combined == _NO_ROW, owner, combined))
    return combined
