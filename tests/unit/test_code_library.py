"""Machine code is made of kernels that are called, and callers may copy code that has none."""

from pathlib import Path

import pytest

from tests.unit.test_jit import printed, small_copy

_KERNELS = """
from pymc_dpsplit.kernels.jit import jitted, jitted_copied

@jitted_copied
def squared(number):
    return number * number

@jitted
def shifted(number):
    return squared(number) + 1.0

@jitted
def doubled(number):
    return 2.0 * shifted(number)
"""
_SCRIPT = """
from llvmlite.binding import ffi
from numba.core.registry import cpu_target
from pymc_dpsplit.moves.short import doubled, shifted, squared

print(doubled(3.0))
kernels = squared.called, shifted.called, doubled.entry
compiled = [next(iter(kernel.overloads.values())) for kernel in kernels]
print(*(result.library._has_machine_code for result in compiled))
print(*(sum(kernel.stats.cache_hits.values()) for kernel in kernels))
# What numba compiles for others is as it was.
print(len(ffi.lib._lock._cblist), *vars(cpu_target.target_context.codegen()).keys() & {"set_env"})
print(squared(5.0))
"""


@pytest.mark.compiled
def test_code_that_is_copied_has_no_machine_code(tmp_path: Path) -> None:
    (small_copy(tmp_path) / "moves" / "short.py").write_text(_KERNELS)
    kinds_of_code, callbacks_of_numba, square = "False True True", "1", "25.0"
    rest = [callbacks_of_numba, square]
    assert printed(tmp_path, _SCRIPT) == ["20.0", kinds_of_code, "0 0 0", *rest]
    for kernel in ("shifted", "doubled"):
        for file in (tmp_path / "cache").rglob(f"short.{kernel}-*"):
            file.unlink()
    # The code of `squared` is copied from the cache.
    assert printed(tmp_path, _SCRIPT) == ["20.0", kinds_of_code, "1 0 0", *rest]
