"""Views of arrays without reference counts.

numba counts the references of every view, atomically; a loop that makes several per cluster and
tile spends more time on this than on the computation.  These views are not counted.  Make them of
arguments only, which the caller keeps alive: a local array is freed after its name is last used,
even if views of it are still in use.  In compiled code the bounds are not checked; in plain
Python they are.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np.arrayobj import populate_array

from pymc_dpsplit.kernels.jit import compiled_form_of

_ITEMS = (4, 8)


def _shaped(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """Return a C-contiguous array struct at `data`, without ownership."""
    view = context.make_array(kind)(context, builder)
    item = context.get_constant(types.intp, kind.dtype.bitwidth // 8)
    strides = [builder.mul(size, item) for size in shape[1:]] + [item]
    meminfo = cgutils.get_null_value(ir.IntType(8).as_pointer())
    populate_array(view, data, shape, strides, item, meminfo)
    return view._getvalue()


def _require(is_contiguous: bool, n_bytes: int) -> None:
    if not is_contiguous or n_bytes not in _ITEMS:
        raise TypeError("views are made of C-contiguous arrays of 4- or 8-byte elements")


def _require_contiguous(kind: Any) -> None:
    """Raise TypeError unless a numba array type is C-contiguous with 4- or 8-byte elements."""
    _require(kind.layout == "C", kind.dtype.bitwidth // 8)


def _plain_row(matrix, k):
    _require(matrix.flags.c_contiguous, matrix.itemsize)
    return matrix[k]


@compiled_form_of(_plain_row)
def row_of(typing_context, matrix, k):
    """Return matrix[k] without a reference count.

    Parameters
    ----------
    matrix : ndarray, shape (K, n)
        C-contiguous with 4- or 8-byte elements.
    k : int

    Returns
    -------
    ndarray, shape (n,)
    """
    _require_contiguous(matrix)
    kind = types.Array(matrix.dtype, 1, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        width = builder.extract_value(whole.shape, 1)
        data = builder.gep(whole.data, [builder.mul(args[1], width)])
        return _shaped(context, builder, kind, data, [width])

    return kind(matrix, types.intp), generate


def _plain_part(vector, start, size):
    _require(vector.flags.c_contiguous, vector.itemsize)
    if not 0 <= start <= start + size <= vector.shape[0]:
        raise IndexError(f"{start} .. {start + size} of {vector.shape[0]} elements")
    return vector[start : start + size]


@compiled_form_of(_plain_part)
def part_of(typing_context, vector, start, size):
    """Return vector[start : start + size] without a reference count.

    Parameters
    ----------
    vector : ndarray, shape (n,)
        C-contiguous with 4- or 8-byte elements.
    start, size : int

    Returns
    -------
    ndarray, shape (size,)
    """
    _require_contiguous(vector)
    kind = types.Array(vector.dtype, 1, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        data = builder.gep(whole.data, [args[1]])
        return _shaped(context, builder, kind, data, [args[2]])

    return kind(vector, types.intp, types.intp), generate


def _plain_columns(matrix, start, size):
    if not 0 <= start <= start + size <= matrix.shape[1]:
        raise IndexError(f"{start} .. {start + size} of {matrix.shape[1]} columns")
    return matrix[:, start : start + size]


@compiled_form_of(_plain_columns)
def columns_of(typing_context, matrix, start, size):
    """Return matrix[:, start : start + size] without a reference count, for elements of any size.

    Parameters
    ----------
    matrix : ndarray, shape (N, D)
    start, size : int

    Returns
    -------
    ndarray, shape (N, size)
    """
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


def _plain_square(vector, start, n):
    return _plain_part(vector, start, n * n).reshape(n, n)


@compiled_form_of(_plain_square)
def square_of(typing_context, vector, start, n):
    """Return n * n elements of a vector as an (n, n) matrix, without a reference count.

    Parameters
    ----------
    vector : ndarray
        C-contiguous with 4- or 8-byte elements.
    start : int
        Index of the first element.
    n : int

    Returns
    -------
    ndarray, shape (n, n)
    """
    _require_contiguous(vector)
    kind = types.Array(vector.dtype, 2, "C")

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        whole = context.make_array(sig.args[0])(context, builder, args[0])
        data = builder.gep(whole.data, [args[1]])
        return _shaped(context, builder, kind, data, [args[2], args[2]])

    return kind(vector, types.intp, types.intp), generate
