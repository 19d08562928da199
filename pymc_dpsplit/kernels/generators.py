"""Generators by address, which compiled code opens without asking Python.

To recognise a `numpy.random.Generator` and to find its state and functions takes numba longer than
a draw of a small mixture takes without iterations.  Both are found once per generator here.
"""

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import cgutils, types

from pymc_dpsplit.kernels.jit import COMPILES, compiled_form_of

# Fields of numba's record of a bit generator, in the order of the addresses.
_FIELDS = (
    "state_address",
    "state",
    "fnptr_next_uint64",
    "fnptr_next_uint32",
    "fnptr_next_double",
    "bit_generator",
)


@lru_cache(maxsize=64)
def _found(rng: np.random.Generator) -> np.ndarray:
    """Find the addresses.  The cache keeps the generator, so that they remain valid."""
    interface = rng.bit_generator.ctypes
    functions = interface.next_uint64, interface.next_uint32, interface.next_double
    of_functions = [ctypes.cast(function, ctypes.c_void_p).value for function in functions]
    found = [interface.state_address, interface.state.value, *of_functions]
    return np.array([*found, interface.bit_generator.value], np.uint64)


def address_of(rng: np.random.Generator) -> Any:
    """Return what a kernel opens by `open_generator`.

    Parameters
    ----------
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of uint64, shape (6,)
        Addresses in this process; the generator itself if the compiler is switched off.
    """
    return _found(rng) if COMPILES else rng


def _same(generator):
    return generator


@compiled_form_of(_same)
def open_generator(typing_context, generator):
    """Return the generator that has an address.

    Parameters
    ----------
    generator : result of `address_of`, or numpy.random.Generator

    Returns
    -------
    numpy.random.Generator
    """

    def opened(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        record = cgutils.create_struct_proxy(sig.return_type)(context, builder)
        found = cgutils.create_struct_proxy(_TYPE_OF_BITS)(context, builder)
        addresses = context.make_array(sig.args[0])(context, builder, args[0])
        for j, field in enumerate(_FIELDS):
            setattr(found, field, builder.load(cgutils.gep(builder, addresses.data, j)))
        # No Python object is counted: the caller keeps the generator.
        record.bit_generator = found._getvalue()
        return record._getvalue()

    def kept(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        context.nrt.incref(builder, sig.args[0], args[0])
        return args[0]

    if isinstance(generator, types.NumPyRandomGeneratorType):
        return generator(generator), kept
    return types.npy_rng(generator), opened


_TYPE_OF_BITS = types.NumPyRandomBitGeneratorType("bit_generator")
