"""Calls, by address, of functions that a process compiles while it runs.

A density that a user composes is compiled once, by PyTensor.  If kernels referred to it by name,
each of them would be compiled again for it.  As an address it is an argument, and the kernels
stay in the cache.
"""

from typing import Any

from llvmlite import ir
from numba.core import types

from pymc_dpsplit.kernels.jit import intrinsic
from pymc_dpsplit.kernels.lanes import pointers

_F64P, _I64 = ir.DoubleType().as_pointer(), ir.IntType(64)


def _call(builder: Any, address: Any, arguments: list[Any]) -> None:
    """Write a call of a function that returns nothing."""
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)


@intrinsic
def call_density(typing_context, address, block, n_rows, theta, shared, out):
    """Write the log density of each of `n_rows` rows under `theta` into `out`.

    Parameters
    ----------
    address : int64
        Address of the compiled density.
    block : ndarray of float64, shape (F * n_rows,)
        Columns of `n_rows` numbers each.
    n_rows : int
    theta : ndarray of float64, shape (P,)
    shared : ndarray of float64
        Further inputs; lengths are those that the function was compiled for.
    out : ndarray of float64, shape (n_rows,)
        Overwritten.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        of, data, n, *rest = pointers(context, builder, sig, args)
        _call(builder, of, [data, n, *rest])
        return context.get_dummy_value()

    return types.void(types.int64, block, types.int64, theta, shared, out), generate


@intrinsic
def call_log_prior(typing_context, address, theta, shared, out):
    """Write the log density of the base measure at `theta` into `out`.

    Parameters
    ----------
    address : int64
        Address of the compiled density.
    theta : ndarray of float64, shape (P,)
    shared : ndarray of float64
        Further inputs.
    out : ndarray of float64, shape (1,)
        Overwritten.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        of, *rest = pointers(context, builder, sig, args)
        _call(builder, of, rest)
        return context.get_dummy_value()

    return types.void(types.int64, theta, shared, out), generate


@intrinsic
def call_refill(typing_context, address, key, pool, shared):
    """Fill `pool` with draws from the base measure, a function of `key`.

    Parameters
    ----------
    address : int64
        Address of the compiled function.
    key : uint64
    pool : ndarray of float64, shape (M, P)
        Overwritten.
    shared : ndarray of float64
        Further inputs.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        of, *rest = pointers(context, builder, sig, args)
        _call(builder, of, rest)
        return context.get_dummy_value()

    return types.void(types.int64, types.uint64, pool, shared), generate
