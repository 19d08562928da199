"""Prefetching: lines of the cache that are known before they are needed."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from pymc_dpsplit.kernels.jit import compiled_form_of
from pymc_dpsplit.kernels.lanes import index, pointers

_LINE = 64
_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()


def _prefetch(builder: Any, address: Any, writes: bool) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_BYTES, _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # The last two: keep in all levels, and data.
    options = [ir.Constant(_I32, option) for option in (int(writes), 3, 1)]
    builder.call(function, [builder.bitcast(address, _BYTES), *options])


def _do_nothing(array, row, n):
    pass


@compiled_form_of(_do_nothing)
def prefetch_row(typing_context, array, row, n):
    """Ask for the lines of a row, which will be read.

    Parameters
    ----------
    array : ndarray of float64, shape (R, n)
        Contiguous.
    row, n : int
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array, row, n = pointers(context, builder, sig, args)
        begin = builder.gep(array, [builder.mul(row, n)])
        step = _LINE // 8
        with cgutils.for_range_slice(builder, index(0), n, index(step), _I64) as (at, _):
            _prefetch(builder, builder.gep(begin, [at]), False)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate


@compiled_form_of(_do_nothing)
def prefetch_element(typing_context, array, row, column):
    """Ask for the line of array[row, column], an element that will be changed.

    Parameters
    ----------
    array : ndarray, shape (R, C)
        Contiguous.
    row, column : int
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.args[0]
        array = context.make_array(kind)(context, builder, args[0])
        columns = cgutils.unpack_tuple(builder, array.shape)[1]
        at = builder.add(builder.mul(args[1], columns), args[2])
        _prefetch(builder, builder.gep(array.data, [at]), True)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), generate
