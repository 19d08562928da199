"""Code of a kernel that is being compiled, with machine code only if someone calls it.

numba makes machine code of every function.  Most functions are copied into their callers before
any of them is called, see `kernels.linking`; of these the optimised code is enough.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite.binding import ffi
from numba.core.codegen import JITCodeLibrary

from pymc_dpsplit.kernels.interrupts import finished_first

# Modules that numba adds for callers in C, which kernels do not have.
_FOR_C = "cfunc_wrapper"


class LazyLibrary(JITCodeLibrary):
    """Code of one function, for which machine code is made when its address is asked for."""

    _has_machine_code = False
    _codegen: Any

    def add_ir_module(self, ir_module: Any) -> None:
        """Add code, except code that only C calls."""
        if ir_module.name != _FOR_C:
            with finished_first():
                super().add_ir_module(ir_module)

    def finalize(self) -> None:
        """Copy the code of the functions that are called, and optimise all."""
        with finished_first():
            super().finalize()

    def _optimize_functions(self, ll_module: Any) -> None:
        """Optimise each function alone, by passes that are made once for all.

        numba makes them for each, also for those that are only declared.
        """
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _finalize_final_module(self) -> None:
        """Declare the optimised code complete; numba makes machine code here."""
        if self._disable_inspection:
            # Machine code from the cache.
            self._make_machine_code()
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function, or 0 if the library does not define it."""
        self._ensure_finalized()
        if not self._has_machine_code:
            if not self._defines(name):
                return 0
            self._make_machine_code()
        address: int = super().get_pointer_to_function(name)
        return address

    def _defines(self, name: str) -> bool:
        try:
            return not self.get_function(name).is_declaration
        except NameError:
            return False

    def _make_machine_code(self) -> None:
        self._has_machine_code = True
        self._dynamic_globals.clear()
        with finished_first():
            super()._finalize_final_module()
        for variable in self._final_module.global_variables:
            environment = _environments.pop(variable.name, None)
            if environment is not None:
                self._codegen.set_env(variable.name, environment)

    def serialize_using_object_code(self) -> Any:
        """Return what the cache stores: machine code if there is any, else optimised code."""
        if self._has_machine_code:
            return super().serialize_using_object_code()
        return self.serialize_using_bitcode()


# Environments of functions without machine code, by the names of their variables.  numba gives
# each function one, for what it may ask of Python, by a variable in its machine code.
_environments: dict[str, Any] = {}


@contextmanager
def lazy_libraries(codegen: Any) -> Iterator[None]:
    """Let numba put code in lazy libraries, and count no calls of LLVM.

    Parameters
    ----------
    codegen : numba.core.codegen.JITCPUCodegen
        The caller holds numba's lock of the compiler.
    """
    if codegen._library_class is LazyLibrary:
        yield
        return
    set_now = codegen.set_env

    def set_env(name: str, environment: Any) -> None:
        if codegen._engine.is_symbol_defined(name):
            set_now(name, environment)
        else:
            _environments[name] = environment

    lock = ffi.lib._lock
    callbacks, lock._cblist = lock._cblist, []
    codegen._library_class, codegen.set_env = LazyLibrary, set_env
    try:
        yield
    finally:
        lock._cblist = callbacks
        del codegen._library_class, codegen.set_env
