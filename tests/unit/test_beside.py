"""Kernels that other processes compile: what they return, and who compiled them."""

from pathlib import Path

import pytest

from tests.unit.test_jit import printed, small_copy

_KERNELS = """
from pymc_dpsplit.kernels.jit import jitted, jitted_beside

@jitted_beside("rows")
def doubled(rows):
    return rows + rows

@jitted_beside("rows", "number")
def shifted(rows, number):
    return rows - number, number

@jitted_beside("rows")
def liar(rows):
    return rows.sum()

@jitted
def total(rows):
    moved, number = shifted(doubled(rows), 1.0)
    return moved.sum() + number

@jitted
def deceived(rows):
    return liar(rows)
"""
_SCRIPT = """
import os
import numpy as np
from pymc_dpsplit.kernels import beside
from pymc_dpsplit.moves.long import deceived, doubled, shifted, total

beside.n_beside = lambda: {n_beside}
rows = np.ones(3)
with beside.compiling_beside():
    {before}
    print(total(rows))
print(*(sum(kernel.called.stats.cache_misses.values()) for kernel in (doubled, shifted)))
print(len(beside._processes.running))
"""


def run(folder: Path, n_beside: int, before: str = "pass") -> list[str]:
    """Compile; return the total, what the process compiled itself, and what still runs."""
    package = small_copy(folder)
    (package / "moves" / "long.py").write_text(_KERNELS)
    return printed(folder, _SCRIPT.format(n_beside=n_beside, before=before))


# --- with the compiler ------------------------------------------------------------------------


@pytest.mark.compiled
@pytest.mark.parametrize(("n_beside", "own"), [(2, "0 0"), (1, "0 1"), (0, "1 1")])
def test_other_processes_compile_what_they_may(tmp_path: Path, n_beside: int, own: str) -> None:
    total, compiled, n_running = run(tmp_path, n_beside)
    assert total == "4.0"
    assert n_running == "0"
    # With one process it depends on its speed who compiles the second kernel.
    assert compiled in {own, own.replace("1", "0")} if n_beside == 1 else compiled == own


@pytest.mark.compiled
def test_kernels_begun_before_their_caller_are_found(tmp_path: Path) -> None:
    before = "doubled.begin({'rows': rows, 'more': None}); beside._processes.limit = 0"
    assert run(tmp_path, 1, before) == ["4.0", "0 1", "0"]


@pytest.mark.compiled
def test_what_a_stopped_process_leaves_is_compiled(tmp_path: Path) -> None:
    before = (
        "doubled.begin({'rows': rows}); beside._processes.limit = 0; "
        "os.kill(beside._processes.running[0], 9)"
    )
    total, compiled, n_running = run(tmp_path, 1, before)
    assert (total, n_running) == ("4.0", "0")
    assert compiled in {"1 1", "0 1"}


@pytest.mark.compiled
@pytest.mark.control
@pytest.mark.parametrize("n_beside", [0, 1])
def test_another_type_than_promised_is_refused(tmp_path: Path, n_beside: int) -> None:
    lies = """
    try:
        deceived(rows)
    except Exception as error:
        print(str(error).splitlines()[-1])"""
    said, total, *_ = run(tmp_path, n_beside, lies)
    assert "returns float64, not the type of rows" in said
    assert total == "4.0"
