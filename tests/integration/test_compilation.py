"""Kernels are compiled before chains start, and a user is told."""

import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytest
from numba.core import event

import pymc_dpsplit as dps
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from pymc_dpsplit.step import compilation
from tests.support.quick import slow_unless

# A process of its own, for in that of other tests everything may be there.
_SCRIPT = """
import gc, sys
import numpy as np
import pymc as pm
import pymc_dpsplit as dps
from pymc_dpsplit.step.compilation import compile_kernels
from pymc_dpsplit.kernels.jit import Kernel

def n_compiled():
    kernels = [found for found in gc.get_objects() if type(found) is Kernel]
    return sum(len(kernel.entry.signatures) for kernel in kernels)

rows = np.random.default_rng(1).normal(size=(40, 2))
holes = np.where(np.random.default_rng(2).random(rows.shape) < 0.1, np.nan, rows)
DECLARED = {
    "exact": (dps.DiagNormal(0, 0.1, 2, 1), rows),
    "collapsed": (dps.Normal(0, 0.1, 2, 1), rows[:, 0]),
    "auto": (dps.DiagNormal(0, 0.1, 2, 1), rows),
    "missing": (dps.DiagNormal(0, 0.1, 2, 1), holes),
}
which, is_ready = sys.argv[1], sys.argv[2] == "ready"
component, observed = DECLARED[which]
with pm.Model() as model:
    alpha = pm.Gamma("alpha", 2, 4)
    dps.DPMixture("x", alpha, component, observed=observed)
    kernel = which if which in ("auto", "collapsed") else "exact"
    step = dps.DPSplitMerge([v for v in model.free_RVs if v is not alpha], kernel=kernel)
point = model.initial_point()
if is_ready:
    compile_kernels(step, point)
before = n_compiled()
step.setup_chain(np.random.default_rng(3), 30, 30)
for _ in range(60):
    point, _ = step.step(point)
print(n_compiled() - before)
"""


def n_compiled_by_a_chain(which: str, state: str) -> int:
    """Number of kernels that a chain compiles or loads."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, which, state], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "which", slow_unless("auto".__eq__, ["exact", "collapsed", "auto", "missing"])
)
def test_chain_finds_every_kernel(which):
    assert n_compiled_by_a_chain(which, "ready") == 0


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.control
def test_chain_that_was_not_prepared_compiles():
    assert n_compiled_by_a_chain("exact", "not ready") > 3


def test_the_trial_leaves_the_step_as_it_is():
    with pm.Model() as model:
        dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
        step = dps.DPSplitMerge(model.free_RVs, kernel="collapsed", rng=np.random.default_rng(1))
    before, state = dict(vars(step)), step.rng.bit_generator.state
    compilation.compile_kernels(step, model.initial_point())
    after = vars(step)
    assert step.rng.bit_generator.state == state
    assert [name for name in before if after[name] is not before[name]] == []


def told(caplog, function):
    """What is logged when a function is compiled."""
    caplog.set_level(logging.INFO, logger="pymc")
    with compilation._telling("MvNormal of x", frozenset(), shows_progress=False):
        data = {"dispatcher": SimpleNamespace(py_func=function)}
        event.start_event("numba:compile", data)
        event.end_event("numba:compile", data)
    return caplog.messages


def test_user_is_told_of_our_kernels(caplog):
    message = "Compiling the kernels for MvNormal of x, once per machine"
    assert told(caplog, slice_sweep.__wrapped__) == [message]


def test_user_is_not_told_of_other_functions(caplog):
    assert told(caplog, subprocess.run) == []


def test_functions_without_a_module_are_not_ours(caplog):
    def written():
        """Return nothing."""

    written.__module__ = None
    assert told(caplog, written) == []


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("which", "n_stages"), [("exact", 4), ("collapsed", 3), ("auto", 3)])
def test_every_stage_is_compiled(which, n_stages, tmp_path):
    """The count that users see ends where it says."""
    program = _SCRIPT.replace("    compile_kernels(step, point)", _COUNTED)
    done = subprocess.run(
        [sys.executable, "-c", program, which, "ready"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert done.stdout.split()[:2] == [str(n_stages), "0"]


_COUNTED = """
    from numba.core import event
    from rich.progress import Progress
    from pymc_dpsplit.step.compilation import _Count, stages_of
    stages = stages_of(step)
    listener = _Count("", stages, Progress(disable=True))
    with event.install_listener("numba:compile", listener):
        compile_kernels(step, point)
    print(len(stages), len(listener._left))
"""
