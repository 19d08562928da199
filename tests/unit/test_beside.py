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
def mean(rows):
    return rows.sum() / rows.size

@jitted
def deceived(rows):
    return liar(rows)
"""
_SCRIPT = """
import os
import numpy as np
from pymc_dpsplit.kernels import beside
from pymc_dpsplit.kernels.jit import compile_beside
from pymc_dpsplit.moves.long import deceived, doubled, liar, mean, shifted, total

beside.n_beside = lambda: {n_beside}
rows = np.ones(3)
arguments = {{"rows": rows, "number": 1.0, "more": None}}
with beside.compiling_beside():
    compile_beside([{kernels}], [mean], arguments)
    {then}
    print(total(rows))
    mean(rows)
forms = doubled.called, shifted.called, mean.entry
print(*(sum(form.stats.cache_misses.values()) for form in forms))
print(len(beside._processes.running))
"""


def run(folder: Path, n_beside: int, kernels: str, then: str = "pass") -> list[str]:
    """Compile; return the total, what the process compiled itself, and what still runs."""
    package = small_copy(folder)
    (package / "moves" / "long.py").write_text(_KERNELS)
    return printed(folder, _SCRIPT.format(n_beside=n_beside, kernels=kernels, then=then))


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("n_beside", "kernels", "own"),
    [
        (1, "doubled, shifted", "0 0 0"),
        pytest.param(1, "doubled", "0 1 0", marks=pytest.mark.slow),
        pytest.param(0, "doubled, shifted", "1 1 1", marks=pytest.mark.slow),
    ],
)
def test_another_process_compiles_what_it_is_given(
    tmp_path: Path, n_beside: int, kernels: str, own: str
) -> None:
    assert run(tmp_path, n_beside, kernels) == ["4.0", own, "0"]


@pytest.mark.slow
@pytest.mark.compiled
def test_what_is_known_is_not_compiled_again(tmp_path: Path) -> None:
    then = "beside.wait_for(beside._processes.running[0])"
    assert run(tmp_path, 1, "doubled, shifted", then) == ["4.0", "0 0 0", "0"]
    none_is_started = "assert not beside._processes.running"
    script = _SCRIPT.format(n_beside=1, kernels="doubled, shifted", then=none_is_started)
    assert printed(tmp_path, script) == ["4.0", "0 0 0", "0"]


@pytest.mark.slow
@pytest.mark.compiled
def test_what_a_stopped_process_leaves_is_compiled(tmp_path: Path) -> None:
    then = "os.kill(beside._processes.running[0], 9)"
    total, _, n_running = run(tmp_path, 1, "doubled", then)
    assert (total, n_running) == ("4.0", "0")


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.control
@pytest.mark.parametrize("n_beside", [0, 1])
def test_another_type_than_promised_is_refused(tmp_path: Path, n_beside: int) -> None:
    lies = """
    try:
        deceived(rows)
    except Exception as error:
        print(str(error).splitlines()[-1])"""
    said, total, *_ = run(tmp_path, n_beside, "liar", lies)
    assert "returns float64, not the type of rows" in said
    assert total == "4.0"
