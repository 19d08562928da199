"""Ctrl-C that arrives while compiled code runs, in a process of its own that it must not end."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiled

N_RUNS, N_DRAWS = 4, 100_000

SAMPLING = f"""
import logging, os, signal, threading
import numpy as np, pymc as pm
import pymc_dpsplit as dps

logging.getLogger("pymc").setLevel(logging.ERROR)
rows = np.concatenate([np.linspace(-4, -2, 20), np.linspace(2, 4, 20)])
with pm.Model():
    dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=rows)
    for run in range({N_RUNS}):
        timers = []

        def interrupt(draw, **_):
            if not draw.tuning and not timers:
                after = 0.1 + 0.037 * run
                timers.append(threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)))
                timers[0].start()

        found = pm.sample(
            draws={N_DRAWS}, tune=20, chains=1, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False, callback=interrupt,
        )
        print("returned", found.posterior.sizes["draw"], flush=True)
"""

# Results in a NamedTuple, as most kernels have them; the call takes about a second.
KERNEL = """
import os, signal, threading
from typing import NamedTuple
import numpy as np
from pymc_dpsplit.kernels.jit import jitted

class Found(NamedTuple):
    total: np.ndarray
    other: np.ndarray

@jitted
def added(n):
    total = 0.0
    for i in range(n):
        total += np.sqrt(i) * np.sin(i)
    return Found(np.full(3, total), np.zeros(3))

added(3)
for _ in range(3):
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        {call}(30_000_000)
        print("went on")
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""

# The signal arrives in the call by which LLVM takes code over, or when it hands machine code out.
COMPILING = """
import gc, os, signal
import numpy as np
from llvmlite.binding import ffi
from pymc_dpsplit.kernels.code_library import LazyLibrary
from pymc_dpsplit.kernels.jit import jitted

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

n_calls, link = [0], ffi.lib.LLVMPY_LinkModules

def linking(*arguments):
    linked = link(*arguments)
    n_calls[0] += 1
    if n_calls[0] == 5:
        interrupt()
    return linked

def handed_out(self, value):
    self.__dict__["is_compiled"] = value
    n_calls[0] += value
    if value and n_calls[0] == 1:
        interrupt()

if "{where}" == "linking":
    ffi.lib._fntab["LLVMPY_LinkModules"] = linking
else:  # numba sets this in a function that LLVM calls
    LazyLibrary._compiled = property(lambda self: self.__dict__["is_compiled"], handed_out)

@jitted
def inner(x):
    return np.sort(x).sum() + np.linalg.det(np.outer(x, x))

@jitted
def outer(x):
    return inner(x) + np.sort(x)[0]

try:
    outer(np.ones(3))
    print("went on", flush=True)
except BaseException as raised:
    print(type(raised).__name__, flush=True)
gc.collect()
print(outer(np.arange(3.0)), signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
UNPROTECTED = """
from contextlib import nullcontext
from pymc_dpsplit.kernels import code_library
code_library.finished_first = nullcontext
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # Kernels are cached beside a file.
    script = folder / "interrupted.py"
    script.write_text(code)
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=300, check=False
    )


def test_draws_are_kept_when_a_kernel_is_interrupted(tmp_path: Path) -> None:
    ended = run(SAMPLING, tmp_path)
    assert ended.returncode == 0, ended.stderr
    n_draws = [int(number) for number in re.findall(r"returned (\d+)", ended.stdout)]
    assert len(n_draws) == N_RUNS
    assert all(0 < number < N_DRAWS for number in n_draws)


def test_an_interrupt_is_raised_after_the_call(tmp_path: Path) -> None:
    ended = run(KERNEL.replace("{call}", "added"), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["interrupted"] * 3 + ["True"]


@pytest.mark.control
def test_an_interrupt_within_the_call_ends_the_process(tmp_path: Path) -> None:
    ended = run(KERNEL.replace("{call}", "added.entry"), tmp_path)
    assert ended.returncode == -signal.SIGSEGV


@pytest.mark.parametrize("where", ["linking", "machine code"])
def test_an_interrupt_while_kernels_are_compiled_is_raised(where: str, tmp_path: Path) -> None:
    ended = run(COMPILING.replace("{where}", where), tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["KeyboardInterrupt", "3.0", "True"]


@pytest.mark.control
def test_an_interrupt_while_llvm_takes_code_over_ends_the_process(tmp_path: Path) -> None:
    ended = run(UNPROTECTED + COMPILING.replace("{where}", "linking"), tmp_path)
    assert ended.returncode == -signal.SIGSEGV


@pytest.mark.control
def test_an_interrupt_in_a_function_that_llvm_calls_is_lost(tmp_path: Path) -> None:
    ended = run(UNPROTECTED + COMPILING.replace("{where}", "machine code"), tmp_path)
    assert "KeyboardInterrupt" not in ended.stdout
