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
from itertools import chain, islice
from typing import Any, NamedTuple

import llvmlite.binding
from numba.core.registry import CPUDispatcher

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


class CalledKernel(CPUDispatcher):
    """The form of a kernel that other kernels call, without the wrapper for Python.

    The attribute `copied` says whether callers copy its code, however long it is.
    """

    copied = False
    _cache: Any

    def add_overload(self, cres: Any) -> None:
        """Register compiled code; numba calls this for code from its cache as well."""
        super().add_overload(cres)
        kinds, known = cres.signature.args, self._cache.is_linked
        callee = Callee(self.py_func.__module__, self.py_func.__qualname__, kinds)
        if kinds not in known:
            known[kinds] = not self.copied and "<" not in callee.name and _is_long(cres)
        if known[kinds] and _is_first(callee, self):
            _link(callee, cres)


def _is_long(cres: Any) -> bool:
    """Whether newly compiled code is too long to be copied."""
    functions = cres.library._final_module.functions
    blocks = chain.from_iterable(function.blocks for function in functions)
    instructions = chain.from_iterable(block.instructions for block in blocks)
    return len(list(islice(instructions, _LONG))) == _LONG


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
