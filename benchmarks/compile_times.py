"""CPU seconds that the kernels of a family take to compile, all and one by one.

python -m benchmarks.compile_times                    # totals of some families
python -m benchmarks.compile_times MvNormal           # and the kernels that take longest

Each family is compiled in a process of its own with an empty cache, by what `pm.sample` does before
it starts chains.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from benchmarks.catalogue import ROOT

_FAMILIES = ("MvNormal", "DiagNormal", "Normal", "Poisson", "Gamma", "Bernoulli")
_LONGEST = 25
# Seconds of a function are its own: those of what it calls are taken off.
_PROGRAM = """
import collections, sys, time
import numpy as np
import pymc as pm
from numba.core import event
import pymc_dpsplit as dps
from pymc_dpsplit.step.compilation import compile_kernels

class Clock(event.Listener):
    def __init__(self):
        self.seconds, self.stack = collections.Counter(), []
    def on_start(self, event):
        self.stack.append((time.process_time(), 0.0))
    def on_end(self, event):
        began, inside = self.stack.pop()
        spent = time.process_time() - began
        function = event.data["dispatcher"].py_func
        self.seconds[f"{function.__module__}.{function.__qualname__}"] += spent - inside
        if self.stack:
            self.stack[-1] = self.stack[-1][0], self.stack[-1][1] + spent

rng = np.random.default_rng(0)
rows = np.abs(rng.normal(size=(100, 2)) + np.repeat([[2.0], [8.0]], 50, axis=0))
whole = {"Poisson": np.floor(rows), "Bernoulli": (rows > 5.0).astype(float), "Normal": rows[:, 0]}
observed = whole.get(sys.argv[1], rows)
with pm.Model() as model:
    alpha = pm.Gamma("alpha", 2, 4)
    family = getattr(dps, sys.argv[1])
    dps.DPMixture("x", alpha, family.from_data(observed), observed=observed)
    step = dps.DPSplitMerge([rv for rv in model.free_RVs if rv is not alpha])
clock, began = Clock(), time.process_time()
with event.install_listener("numba:compile", clock):
    compile_kernels(step, model.initial_point())
print("total", time.process_time() - began)
for name, spent in clock.seconds.most_common():
    print(name, spent)
"""


def seconds_of(family: str) -> dict[str, float]:
    """CPU seconds by name of the function, the longest first, after those of all."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, family],
            check=True,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env={**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"},
        )
    pairs = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    return {name: float(spent) for name, spent in pairs}


def main() -> None:
    """Command line; see the top of the file."""
    parser = argparse.ArgumentParser(prog="benchmarks.compile_times")
    parser.add_argument("families", nargs="*", metavar="family")
    families = parser.parse_args().families
    for family in families or _FAMILIES:
        seconds = seconds_of(family)
        print(f"{seconds.pop('total'):7.2f} {family}, {len(seconds)} functions", flush=True)
        for name in list(seconds)[: _LONGEST if families else 0]:
            print(f"{seconds[name]:7.2f}   {name}")


if __name__ == "__main__":
    main()
