"""Sparse data as variables of the graph: compressed rows, and an array that is rarely computed.

PyMC requires that the value of an observed variable is an array.  Here that array is an expression
of the compressed rows.  The package reads the compressed rows instead, and PyMC only needs the
shape of the array, except for the group `observed_data` of a trace.
"""

from collections.abc import Sequence
from typing import Any, override

from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.data.fixed_rows import fixed
from pymc_dpsplit.data.sparse_rows import SparseRows, as_array
from pymc_dpsplit.variables.object_mode import ObjectModeOp

# Largest number of bytes for which the array is computed.
_MOST = 2**26


class ExpandedRows(ObjectModeOp):
    """Dense array (N, V) of sparse rows; inputs are the parts of `SparseRows`.

    Parameters
    ----------
    n_features : int
        Number of columns V.
    """

    __props__ = ("n_features",)

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    @override
    def make_node(self, *inputs: Any) -> Apply:
        length = inputs[0].type.shape[0]
        n_rows = None if length is None else length - 1
        return Apply(self, list(inputs), [TensorType("float64", (n_rows, self.n_features))()])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [(shapes[0][0] - 1, self.n_features)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rows = self.rows_of(inputs)
        if _exceeds(rows):
            # PyMC expects a TypeError for data that cannot be stored in a trace.
            raise TypeError(
                f"sparse data of shape {rows.shape} are too large for an array; read the matrix "
                "itself."
            )
        output_storage[0][0] = as_array(rows)

    def rows_of(self, parts: Sequence[Any]) -> SparseRows:
        """Return the sparse rows with these parts."""
        indptr, indices, values = parts
        return SparseRows(indptr, indices, values, (len(indptr) - 1, self.n_features))


def expanded(rows: SparseRows) -> Variable:
    """Return sparse rows as a variable whose parts are shared and not copied.

    Parameters
    ----------
    rows : SparseRows

    Returns
    -------
    TensorVariable
    """
    parts = []
    for part in rows.parts:
        kind = TensorType(part.dtype, shape=part.shape)
        parts.append(TensorSharedVariable(kind, fixed(part), strict=True))
    op = ExpandedRows(rows.shape[1])
    out: Any = op(*parts)
    return out


def is_expanded(variable: Any) -> bool:
    """Return whether a variable is the array of sparse rows."""
    node = variable.owner
    return node is not None and isinstance(node.op, ExpandedRows)


def is_too_large(variable: Any) -> bool:
    """Return whether a variable is the array of sparse rows and too large to be computed."""
    return variable is not None and is_expanded(variable) and _exceeds(rows_behind(variable))


def _exceeds(rows: SparseRows) -> bool:
    return 8 * rows.shape[0] * rows.shape[1] > _MOST


def rows_behind(variable: Any) -> SparseRows:
    """Return the sparse rows behind the array variable."""
    node = variable.owner
    rows: SparseRows = node.op.rows_of([part.get_value(borrow=True) for part in node.inputs])
    return rows
