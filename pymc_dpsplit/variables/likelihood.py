"""Likelihood of each row of a latent mixture, for models in which it factorises over rows.

The observations and potentials that depend on the latent variable form its likelihood.  If every
element of these terms depends on a single row, as in ``pm.Binomial("y", n, logit_p=b, observed=y)``
or with ``b[group]``, rows are independent given the random measure, and the step can move each row
together with its label.  The row on which an element depends is derived from the graph: operations
that only rearrange elements are evaluated on row indices, and any operation that is not recognised
is assumed to depend on all rows.
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

from pymc_dpsplit.variables.dependence import dependents_of
from pymc_dpsplit.variables.dims import without_dims
from pymc_dpsplit.variables.fixed_values import FixedValues
from pymc_dpsplit.variables.lookup import MixtureVariables
from pymc_dpsplit.variables.owned_terms import ConditionalTerm

# Codes of elements that depend on no row, and on several rows.
_NO_ROW, _SEVERAL = -1, -2
_MOVING = (DimShuffle, Reshape, Subtensor, AdvancedSubtensor, Join, Alloc)


class RowLikelihood:
    """Log likelihood of each row of a latent mixture.

    Parameters
    ----------
    terms : list of TensorVariable
        Log-density terms, as graphs of the values of the model.
    owners : list of ndarray of int64
        For each term, the row on which each element depends; -1 for none.
    value : TensorVariable
        Value of the latent variable.
    fixed : FixedValues
        Shared variables for the other values.

    Attributes
    ----------
    inputs : set of str
        Names of the other values on which the terms depend.
    """

    def __init__(
        self,
        terms: list[Variable],
        owners: list[np.ndarray],
        value: Any,
        fixed: FixedValues,
    ) -> None:
        self.inputs = {str(root.name) for root in _roots(terms) if fixed.holds(root)}
        self._fixed = fixed
        self._owners = [owner.reshape(-1) for owner in owners]
        self._shape = (-1, *value.type.shape[1:])
        self._function = compile_function([value], fixed.replace(terms), on_unused_input="ignore")

    def hold(self, point: Mapping[str, np.ndarray]) -> None:
        """Set the other variables to the values of a point."""
        self._fixed.set(point)

    def is_informed(self, n_rows: int) -> np.ndarray:
        """Return which of N rows some element of the terms depends on.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        ndarray of bool, shape (N,)
        """
        informed = np.zeros(n_rows, bool)
        for owner in self._owners:
            informed[owner[owner >= 0]] = True
        return informed

    def evaluate(self, value: np.ndarray) -> np.ndarray:
        """Return the log likelihood (N,) of rows (N, D) of the latent variable.

        Parameters
        ----------
        value : ndarray of float64, shape (N, D)

        Returns
        -------
        ndarray of float64, shape (N,)
        """
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
    mixture: MixtureVariables,
    model: Model,
    point: Mapping[str, np.ndarray],
    likelihoods: list[Variable] | None = None,
) -> RowLikelihood | None:
    """Return the likelihood of the rows of a latent mixture, if it factorises over rows.

    Parameters
    ----------
    mixture : MixtureVariables
        A latent mixture.
    model : pymc.Model
    point : mapping
        Any point of the model.
    likelihoods : list of TensorVariable, optional
        Variables and potentials whose density is meant, by default all that depend on the rows.

    Returns
    -------
    RowLikelihood or None
        None if an element depends on several rows, or on rows through an unknown operation.
    """
    if mixture.rv not in model.free_RVs:
        return None
    value = model.rvs_to_values[mixture.rv]
    if likelihoods is None:
        likelihoods = dependents_of(mixture.rv, model)
    # A row may bound a variable, and then enters the Jacobian of its transform.
    terms = model.logp(vars=likelihoods, sum=False) if likelihoods else []
    rows = np.arange(len(point[str(value.name)]))
    own = np.broadcast_to(rows.reshape(-1, *[1] * (value.ndim - 1)), point[str(value.name)].shape)
    owners = _owners_of(_inlined(terms), value, own, model, point)
    if any((owner == _SEVERAL).any() for owner in owners):
        return None
    return RowLikelihood(terms, owners, value, FixedValues(model, [value], point))


def _inlined(terms: list[Variable]) -> list[Variable]:
    """Replace ops that are defined by inner graphs, such as LogSumExp, by those graphs."""
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
    """Return, for each term, the row on which each element depends."""
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
    """Return the variables whose values graphs read; shapes are constant and do not count."""

    def expand(variable: Any) -> Any:
        node = variable.owner
        return None if node is None or isinstance(node.op, Shape | Shape_i) else node.inputs

    return {variable for variable in walk(graphs, expand) if variable.owner is None}


def _evaluate_around(
    nodes: list[Apply], terms: list[Variable], model: Model, point: Mapping[str, np.ndarray]
) -> tuple[dict[Variable, tuple[int, ...]], dict[Variable, np.ndarray]]:
    """Return the shapes of inputs and outputs of nodes, and the values of constant indices."""
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
        [*(without_dims(var).shape for var in shaped), *fixed],
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
    """Return the row on which each element of the output of a node depends."""
    several = np.full(shape, _SEVERAL)
    dependent = [owners[var] for var in node.inputs if var in owners]
    if isinstance(node.op, Elemwise):
        return _combine([np.broadcast_to(owner, shape) for owner in dependent])
    if isinstance(node.op, ConditionalTerm):
        # The function has no other input than the rows, so the first form applies if they decide.
        form = node.inputs[0 if any(var in owners for var in node.inputs[2:]) else 1]
        return owners.get(form, np.full(shape, _NO_ROW))
    if isinstance(node.op, CheckAndRaise | SpecifyShape):
        # An assertion raises or returns its first input unchanged.
        return owners.get(node.inputs[0], np.full(shape, _NO_ROW))
    if isinstance(node.op, CAReduce):
        axes = node.op.axis if node.op.axis is not None else tuple(range(dependent[0].ndim))
        moved = np.moveaxis(dependent[0], axes, range(len(axes)))
        return _combine(list(moved.reshape(-1, *moved.shape[len(axes) :])))
    if isinstance(node.op, _MOVING):
        sources = node.inputs if isinstance(node.op, Join) else node.inputs[:1]
        inputs: list[Any] = []
        for var in node.inputs:
            # An index that depends on a row may select any element.
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
        # Join casts its output to the dtype of the original arrays, so cast back.
        return np.asarray(storage[0][0]).astype(np.int64)
    return several


def _combine(owners: list[np.ndarray]) -> np.ndarray:
    """Return the row on which each element of an elementwise function of arrays depends."""
    combined = owners[0]
    for owner in owners[1:]:
        differ = (combined != owner) & (combined != _NO_ROW) & (owner != _NO_ROW)
        combined = np.where(differ, _SEVERAL, np.where(combined == _NO_ROW, owner, combined))
    return combined
