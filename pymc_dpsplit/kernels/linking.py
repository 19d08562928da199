"""Kernels that are called by their symbol, instead of being copied into each caller.

numba passes the code of a kernel to every kernel that calls it, directly or indirectly, and LLVM
optimises all of it each time.  Long code is not worth a copy: it is compiled once, and callers
find it by a symbol, a name that the process resolves to an address.

The symbol is a function of the kernel and the types of its arguments, so that callers loaded from
the cache find it too.  Their callees are loaded or compiled before them.
"""

import copy
import hashlib
from importlib import import_module
from typing import Any, NamedTuple

import llvmlite.binding
from numba.core import event, types
from numba.core.compiler import Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typing.templates import make_concrete_template, signature

from pymc_dpsplit.kernels.beside import wait_for
from pymc_dpsplit.kernels.code_library import lazy_libraries
from pymc_dpsplit.kernels.interrupts import disturbed

# Number of instructions from which a kernel is called and not copied.  With a lower limit calls
# cost more than they save; with a much higher one, kernels of a family compile twice as long.
_LONG = 400
_PREFIX = "pymc_dpsplit:"


class Callee(NamedTuple):
    """A kernel and the types of its arguments.

    Attributes
    ----------
    module, name : str
        Module and qualified name of the kernel.
    types : tuple of numba types
    """

    module: str
    name: str
    types: tuple[Any, ...]

    @property
    def symbol(self) -> str:
        digest = hashlib.sha256(str(self.types).encode()).hexdigest()
        return f"{_PREFIX}{self.module}.{self.name}:{digest}"

    def load(self) -> None:
        """Load the kernel from the cache, or compile it, and register its symbol."""
        getattr(import_module(self.module), self.name).called.compile(self.types)


class QuickFlags(Flags):
    """Options of the compiler that are compared fast.

    numba compares them whenever it looks for the implementation of a function, by all their values.
    """

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and _changed(self) == _changed(other)


def _changed(flags: Any) -> dict[str, Any]:
    """Options that do not have their defaults."""
    options = flags.options
    return {key: value for key, value in flags._values.items() if value != options[key].default}


class EntryKernel(CPUDispatcher):
    """The form of a kernel that Python calls."""

    targetctx: Any

    def compile(self, sig: Any) -> Any:
        """Load or compile the kernel for some types of arguments."""
        with disturbed(), global_compiler_lock, lazy_libraries(self.targetctx.codegen()):
            return super().compile(sig)


class CalledKernel(CPUDispatcher):
    """The form of a kernel that other kernels call, without the wrapper for Python.

    Attributes
    ----------
    copied : bool
        Whether callers copy its code, however long it is.
    result_like : tuple of str
        Names of arguments that have the types of the results; empty if these are not known before
        the kernel is compiled.
    beside : dict of tuple of numba types to int
        Types of arguments for which another process compiles the kernel, see `kernels.beside`.
    """

    copied = False
    result_like: tuple[str, ...] = ()
    _cache: Any
    _cache_hits: Any
    _cache_misses: Any
    _compiler: Any
    targetctx: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._compiler._customize_flags = QuickFlags
        self.beside: dict[tuple[Any, ...], int] = {}

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the types of arguments and results for a caller, see numba.

        The caller does not wait for a process that compiles the kernel.
        """
        if not self.beside:
            return super().get_call_template(args, kws)
        pysig, arguments = self._compiler.fold_argument_types(args, kws)
        kinds = tuple(arguments)
        if kinds not in self.beside:
            return super().get_call_template(args, kws)
        signatures = [signature(self._result(kinds), *kinds)]
        template = make_concrete_template("beside", self.py_func.__name__, signatures)
        return template, pysig, kinds, {}

    def _result(self, kinds: tuple[Any, ...]) -> Any:
        """Type of the result, which is known before the kernel is compiled."""
        kind_of = dict(zip(self._compiler.pysig.parameters, kinds, strict=True))
        results = [kind_of[name] for name in self.result_like]
        return results[0] if len(results) == 1 else types.BaseTuple.from_types(results)

    def get_overload(self, sig: Any) -> Any:
        """Return the compiled code, which a caller needs from now on."""
        kinds, _ = normalize_signature(sig)
        if kinds in self.beside:
            self.compile(kinds)
        return super().get_overload(sig)

    def compile(self, sig: Any) -> Any:
        """Load or compile the kernel for some types of arguments.

        This is what numba does, without the clocks that every function which is being compiled
        adds to every call of LLVM by the functions that it calls.
        """
        kinds, result = normalize_signature(sig)
        if kinds in self.beside:
            wait_for(self.beside.pop(kinds))
        lazily = lazy_libraries(self.targetctx.codegen())
        with global_compiler_lock, self._compiling_counter, lazily:
            known = self.known(kinds)
            if known is not None:
                return known
            self._cache_misses[sig] += 1
            data = {"dispatcher": self, "args": kinds, "return_type": result}
            with event.trigger_event("numba:compile", data=data):
                compiled: Any = self._compiler.compile(kinds, result)
                self.add_overload(compiled)
            self._cache.save_overload(sig, compiled)
            return compiled.entry_point

    def known(self, kinds: tuple[Any, ...]) -> Any:
        """Return what is compiled, if need be from the cache, or None."""
        if kinds in self.overloads:
            return super().get_overload(kinds)
        found: Any = self._cache.load_overload(kinds, self.targetctx)
        if found is None:
            return None
        self._cache_hits[kinds] += 1
        self.targetctx.insert_user_function(found.entry_point, found.fndesc, [found.library])
        self.add_overload(found)
        return found.entry_point

    def add_overload(self, cres: Any) -> None:
        """Register compiled code; numba calls this for code from its cache as well."""
        super().add_overload(cres)
        kinds, known = cres.signature.args, self._cache.is_linked
        if self.result_like and cres.signature.return_type != self._result(kinds):
            raise TypeError(
                f"{self.py_func.__qualname__} returns {cres.signature.return_type}, not the type "
                f"of {' and '.join(self.result_like)}"
            )
        callee = Callee(self.py_func.__module__, self.py_func.__qualname__, kinds)
        if kinds not in known:
            known[kinds] = not self.copied and "<" not in callee.name and _is_long(cres)
        if known[kinds] and _is_first(callee, self):
            _link(callee, cres)


def _is_long(cres: Any) -> bool:
    """Whether newly compiled code is too long to be copied."""
    # The text has a line per instruction, and others, which do not begin with two spaces.
    return str(cres.library._final_module).count("\n  ") >= _LONG


def callees_of(cres: Any) -> list[Callee]:
    """Kernels that newly compiled code calls by their symbols."""
    functions = cres.library._final_module.functions
    names = (function.name for function in functions if function.is_declaration)
    return [_linked[name][0] for name in names if name in _linked]


# Callees by symbol, each with the first kernel of that name.
_linked: dict[str, tuple[Callee, CalledKernel]] = {}


def _is_first(callee: Callee, kernel: CalledKernel) -> bool:
    """Whether no other kernel has the symbol, as happens if a function is replaced."""
    return _linked.setdefault(callee.symbol, (callee, kernel))[1] is kernel


def _link(callee: Callee, cres: Any) -> None:
    """Register compiled code under its symbol, and make numba call it by the symbol."""
    address = cres.library.get_pointer_to_function(cres.fndesc.llvm_func_name)
    llvmlite.binding.add_symbol(callee.symbol, address)
    by_symbol = copy.copy(cres.fndesc)
    by_symbol.mangled_name = callee.symbol
    context = cres.target_context
    context.remove_user_function(cres.entry_point)
    context.insert_user_function(cres.entry_point, by_symbol, [])
