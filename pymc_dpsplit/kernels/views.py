"""Views that do not own: a part of an array without a count of its references.

numba counts the references of every view, atomically; where a loop makes several per cluster and
tile that costs more than what it computes with them.  These views are not counted.  Make them
of arguments only, which the caller keeps alive: a local array is freed where it is last named,
though views of it may still be in use.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import populate_array

from pymc_dpsplit.kernels.jit import intrinsic

_ITEM = 8


def _shaped(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """Return a C-contiguous array struct of 8-byte elements at `data`, owning nothing."""
    view = context.make_array(kind)(context, builder)
    item = context.get_constant(types.intp, _ITEM)
    strides = [builder.mul(size, item) for size in shape[1:]] + [item]
    meminfo = cgutils.get_null_value(ir.IntType(8).as_pointer())
    populate_array(view, data, shape, strides, item, meminfo)
    return view._getvalue()


def _require_contiguous(array: Any) -> None:
    if array.layout != "C" or array.dtype.bitwidth != 8 * _ITEM:
        raise TypeError("views are made of C-contiguous arrays of 8-byte elements")


@intrinsic
def row_of(typing_context, matrix, k):
    """Return matrix[k], not counted; `matrix` is C-contiguous with 8-byte elements."""
    _require_contiguous(matrix)
    kind = types.Array(matrix.dtype, 1, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        width = builder.extract_value(whole.shape, 1)
        data = builder.gep(whole.data, [builder.mul(args[1], width)])
        return _shaped(context, builder, kind, data, [width])

    return kind(matrix, types.intp), generate


@intrinsic
def part_of(typing_context, vector, start, size):
    """Return vector[start : start + size], not counted."""
    _require_contiguous(vector)
    kind = types.Array(vector.dtype, 1, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        data = builder.gep(whole.data, [args[1]])
        return _shaped(context, builder, kind, data, [args[2]])

    return kind(vector, types.intp, types.intp), generate


@intrinsic
def columns_of(typing_context, matrix, start, size):
    """Return matrix[:, start : start + size], not counted, of elements of any size."""
    kind = types.Array(matrix.dtype, 2, "A", readonly=not matrix.mutable)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        view = context.make_array(kind)(context, builder)
        n_rows = builder.extract_value(whole.shape, 0)
        pitch, step = (builder.extract_value(whole.strides, axis) for axis in range(2))
        address = builder.ptrtoint(whole.data, ir.IntType(64))
        address = builder.add(address, builder.mul(args[1], step))
        data = builder.inttoptr(address, whole.data.type)
        meminfo = cgutils.get_null_value(ir.IntType(8).as_pointer())
        populate_array(view, data, [n_rows, args[2]], [pitch, step], whole.itemsize, meminfo)
        return view._getvalue()

    return kind(matrix, types.intp, types.intp), generate


@intrinsic
def square_of(typing_context, vector, start, n):
    """Return the n * n elements of a vector from `start` on as an (n, n) matrix, not counted."""
    _require_contiguous(vector)
    kind = types.Array(vector.dtype, 2, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        data = builder.gep(whole.data, [args[1]])
        return _shaped(context, builder, kind, data, [args[2], args[2]])

    return kind(vector, types.intp, types.intp), generate
