"""Compilation of kernels: the only module in which numba options are chosen or switched off.

With NUMBA_DISABLE_JIT=1 kernels run as plain Python, for a debugger or for coverage.  Code that is
not Python then has a Python form: vector code has its plain twin, see `kernels.lanes`, and an
intrinsic on single numbers has the function passed to `compiled_form_of`.

Kernels are compiled lazily, cached on disk, see `kernels.cache`, and release the interpreter lock.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, update_wrapper
from inspect import signature
from typing import Any

import numba
import numba.extending
import numpy as np
from numba.core import config

from pymc_dpsplit.kernels.beside import start
from pymc_dpsplit.kernels.cache import SourceCache, source_digest
from pymc_dpsplit.kernels.interrupts import undisturbed
from pymc_dpsplit.kernels.linking import CalledKernel, EntryKernel

# numba reads the variable when it is imported.
COMPILES = not vars(config)["DISABLE_JIT"]

# Contraction to fused multiply-adds and ignoring the sign of zero are safe.  Re-association
# would break the rounding trick of `exp2_plainly`; no-NaN and no-inf would break log(0) = -inf.
# Divisions by zero give inf or NaN, as in NumPy, and do not raise.
OPTIONS: Any = {"nogil": True, "fastmath": {"contract", "nsz"}, "error_model": "numpy"}
# What `numba.njit` adds to them.
_AS_NJIT = {"nopython": True, "boundscheck": None}
# numba counts the references of every array that is taken from a NamedTuple, atomically and, in
# loops, each time.  Code without counts allocates nothing and returns no arrays.
COUNTED, UNCOUNTED = {"_nrt": True}, {"_nrt": False}
# Code that only kernels call needs no form for Python or C.
WITHOUT_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Kernel:
    """Compiled function with one form for Python and one for other kernels.

    Calls from Python need code that unpacks the arguments and raises, which often takes longer to
    compile than the kernel.  So each caller has its own form, compiled when it is first needed.

    Parameters
    ----------
    function : callable
    copied : bool
        Whether callers copy its code, however long it is, see `kernels.linking`.
    uncounted : bool
        Whether the form that kernels call counts no references.
    result_like : tuple of str
        See `kernels.linking.CalledKernel`.
    **options
        Options of `numba.njit`.

    Attributes
    ----------
    py_func : callable
    """

    def __init__(
        self,
        function: Callable[..., Any],
        copied: bool = False,
        uncounted: bool = False,
        result_like: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._copied, self._uncounted, self._options = copied, uncounted, options
        self._result_like = result_like
        source_digest(function)  # reads the sources as they are now

    # Both forms are made when they are first used: making those of all kernels takes longer than
    # the rest of importing the package.
    @cached_property
    def entry(self) -> Any:
        """Form that Python calls, a numba dispatcher."""
        options = {**OPTIONS, **_AS_NJIT, **self._options}
        entry: Any = EntryKernel(self.py_func, targetoptions=options)
        entry._cache = SourceCache(self.py_func, "for Python")
        return entry

    @cached_property
    def called(self) -> Any:
        """Form that other kernels call, a `CalledKernel`."""
        counts = UNCOUNTED if self._uncounted else COUNTED
        options = {**OPTIONS, **_AS_NJIT, **counts, **self._options, **WITHOUT_WRAPPERS}
        called = CalledKernel(self.py_func, targetoptions=options)
        called._cache = SourceCache(self.py_func, "for kernels")
        called.copied, called.result_like = self._copied, self._result_like
        return called

    @property
    def _numba_type_(self) -> Any:
        """Type by which numba recognises the form that kernels call."""
        return self.called._numba_type_

    def __call__(self, *arguments: Any) -> Any:
        return undisturbed(self.entry, arguments)

    def kinds(self, arguments: Mapping[str, Any]) -> tuple[Any, ...]:
        """Types of the arguments, which are found by their names."""
        return tuple(numba.typeof(arguments[name]) for name in signature(self.py_func).parameters)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


def jitted(function: Callable[..., Any]) -> Any:
    """Compile `function` with the options of the package.

    If the compiled code is long, the kernels that call it share it.

    Parameters
    ----------
    function : callable
        Plain Python that numba can type: arrays, scalars, NamedTuples and a
        `numpy.random.Generator`.  It does not raise.

    Returns
    -------
    Kernel
    """
    return _compile(function)


def jitted_beside(*result_like: str) -> Callable[[Callable[..., Any]], Any]:
    """Make a decorator like `jitted` for kernels that `compile_beside` may be given.

    Parameters
    ----------
    *result_like : str
        Names of the arguments that have the types of the results, several if it returns a tuple.
    """
    return lambda function: _compile(function, result_like=result_like)


def jitted_copied(function: Callable[..., Any]) -> Any:
    """Compile like `jitted`, but every caller has a copy of the code, optimised with it.

    Use it for functions called per tile, row or feature, where calls with arrays are costly.
    """
    return _compile(function, copied=True)


def jitted_inlined(function: Callable[..., Any]) -> Any:
    """Compile like `jitted`, but inline the code at every call.

    Use it for short functions: a call with array arguments costs as much as thirty loads and
    stores, which is more than the work for a tile and cluster with few features.
    """
    return _compile(function, copied=True, forceinline=True)


def jitted_uncounted(function: Callable[..., Any]) -> Any:
    """Compile like `jitted`, without counting references.

    Use it for functions called per row that take arrays from NamedTuples.  They allocate nothing
    and return no arrays, and every array that they read is kept alive by their caller.
    """
    return _compile(function, uncounted=True)


def jitted_inlined_uncounted(function: Callable[..., Any]) -> Any:
    """Compile like `jitted_inlined`, without counting references, see `jitted_uncounted`."""
    return _compile(function, copied=True, uncounted=True, forceinline=True)


def compile_beside(
    kernels: Sequence[Any], for_python: Sequence[Any], arguments: Mapping[str, Any]
) -> None:
    """Let another process compile kernels, unless they are known or no process is free.

    Parameters
    ----------
    kernels : sequence of Kernel
        Made by `jitted_beside`, in the form that other kernels call.  A caller that is compiled
        meanwhile waits for the process only when its own code is written.
    for_python : sequence of Kernel
        Kernels that Python calls.
    arguments : mapping
        Examples of all arguments by name.
    """
    if not COMPILES:
        return
    called = [(kernel.called, kernel.kinds(arguments)) for kernel in kernels]
    if all(form.known(kinds) is not None for form, kinds in called):
        return
    forms = called + [(kernel.entry, kernel.kinds(arguments)) for kernel in for_python]
    process = start(lambda: [form.compile(kinds) for form, kinds in forms])
    if process is not None:
        for form, kinds in called:
            form.beside[kinds] = process


def c_function(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a decorator that compiles a function which is called by its address.

    It compiles at once, without a cache, as the address belongs to a process.

    Parameters
    ----------
    signature : numba signature
    """
    made: Callable[[Callable[..., Any]], Any] = numba.cfunc(signature)
    return made


def intrinsic(function: Callable[..., Any]) -> Any:
    """Make an intrinsic, whose code `function` writes, see `numba.extending.intrinsic`.

    It can be called from compiled kernels only.
    """
    return numba.extending.intrinsic(function)


def compiled_form_of(python: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Make a decorator like `intrinsic` for code that has an equivalent Python function.

    Parameters
    ----------
    python : callable
        Used instead if the compiler is switched off.
    """
    return lambda function: intrinsic(function) if COMPILES else python


def require_compiler(what: str) -> None:
    """Raise RuntimeError if the compiler, which `what` needs, is switched off."""
    if not COMPILES:
        raise RuntimeError(f"{what} needs compiled kernels; unset NUMBA_DISABLE_JIT")


def _compile(function: Callable[..., Any], **options: Any) -> Any:
    """Compile `function`, or prepare it to run as Python if the compiler is switched off."""
    if not COMPILES:
        # Compiled code does not warn of overflow, on which the hashes rely.
        return np.errstate(all="ignore")(function)
    return Kernel(function, **options)
