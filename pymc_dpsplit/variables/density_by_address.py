"""C functions of the log density of a scalar variable, which kernels call by their address.

An address is valid in one process only.  A pickled density omits the function, and it is compiled
again on first use.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numba import carray  # type: ignore[attr-defined]
from numba.core import types
from pymc.logprob.utils import CheckParameterValue
from pymc.model import Model
from pymc.pytensorf import compile as compile_function
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import applys_between, graph_inputs
from pytensor.tensor.basic import (
    Alloc,
    Join,
    MakeVector,
    ScalarFromTensor,
    TensorFromScalar,
)
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import Subtensor

from pymc_dpsplit.kernels.jit import COMPILES, c_function

# What densities of the scalar distributions of PyMC consist of, all of it compiled by PyTensor
# without calls of Python, for which a kernel would have to hold the interpreter lock.
_COMPILED = (
    Elemwise, CAReduce, DimShuffle, CheckParameterValue, Alloc, Join, MakeVector, ScalarFromTensor,
    TensorFromScalar, Reshape, Shape, Shape_i, SpecifyShape, Subtensor,
)  # fmt: skip
_F64P = types.CPointer(types.float64)
# Kernels hold nothing but the addresses, so references to the functions are kept here.
_KEPT: list[Any] = []


class DensityByAddress:
    """Compiled function from a scalar and other values to two numbers.

    Parameters
    ----------
    outputs : sequence of TensorVariable
        Two scalars: a log density and a number.
    value : TensorVariable
        The scalar.
    others : sequence of TensorVariable
        Other values that `outputs` depend on.
    shapes : sequence of tuple of int
        Of `others`.
    """

    def __init__(
        self,
        outputs: Sequence[Any],
        value: Variable,
        others: Sequence[Any],
        shapes: Sequence[tuple[int, ...]],
    ) -> None:
        self._outputs, self._value, self._others = outputs, value, others
        self._shapes = shapes

    def others_at(self, point: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the other values (M,) at a point, one after another."""
        values = [np.ravel(point[str(other.name)]) for other in self._others]
        return np.concatenate([np.empty(0), *values]).astype(np.float64)

    @cached_property
    def _filling(self) -> Any:
        values = pt.tensor("value", dtype="float64", shape=(1,))
        flat = pt.vector("others", dtype="float64")
        given: dict[Any, Any] = {self._value: values[0]}
        n_others = 0
        for other, shape in zip(self._others, self._shapes, strict=True):
            size = int(np.prod(shape))
            part = flat[n_others : n_others + size].reshape(shape)
            given[other] = part.astype(other.type.dtype)
            n_others += size
        both = pt.stack([pt.cast(output, "float64") for output in self._outputs])
        found = clone_replace(both, given)
        options: Any = {"on_unused_input": "ignore", "trust_input": True, "mode": "NUMBA"}
        density = compile_function([values, flat], found, **options).vm.jit_fn

        @c_function(types.void(_F64P, _F64P, _F64P))
        def fill(value, others, out):  # type: ignore[no-untyped-def]
            (found,) = density(carray(value, (1,)), carray(others, (n_others,)))
            out[0], out[1] = found[0], found[1]

        _KEPT.append(fill)
        return fill

    @property
    def address(self) -> int:
        """Return the address of a function from the scalar and `others_at` to the two numbers."""
        return int(self._filling.address)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the function."""
        return {name: value for name, value in self.__dict__.items() if name != "_filling"}


def density_by_address(
    outputs: Sequence[Any], value: Variable, model: Model, point: Mapping[str, np.ndarray]
) -> DensityByAddress | None:
    """Return the compiled form of a log density and a number that depend on a scalar value.

    Parameters
    ----------
    outputs : sequence of TensorVariable
        Graphs of values of the model.
    value : TensorVariable
        Value of the scalar.
    model : pymc.Model
    point : mapping
        Any point of the model.

    Returns
    -------
    DensityByAddress or None
        None if the graphs contain shared variables or operations that might call Python, if a value
        is not in double precision, or if the compiler is switched off.
    """
    found = [at for at in graph_inputs(outputs) if not isinstance(at, Constant)]
    others = [at for at in dict.fromkeys(found) if at is not value]
    are_values = all(other in model.value_vars for other in others)
    are_compiled = all(
        isinstance(node.op, _COMPILED) for node in applys_between(found, list(outputs))
    )
    if not (COMPILES and are_values and are_compiled and value.type.dtype == "float64"):
        return None
    shapes = [np.shape(point[str(other.name)]) for other in others]
    return DensityByAddress(list(outputs), value, others, shapes)
