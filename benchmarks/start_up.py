"""From the start of a process to the first draw of Old Faithful, compiled or not.

Each run is a process of its own with the kernel cache in a temporary folder: the first finds it
empty, those after it do not.  The cold compile is what the first spends in CPU time over the
others; all draw until every kernel of tuning and sampling has run.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.catalogue import ROOT
from benchmarks.row import Row

_WARM_RUNS = 3
# Prints the clock and the CPU seconds at the first draw, and the CPU seconds at the end.
_PROGRAM = """
import logging, time
import pymc as pm
import pymc_dpsplit as dps
from pymc_dpsplit.demo import DATA_SETS
logging.getLogger("pymc").setLevel(logging.ERROR)
rows, _ = DATA_SETS["faithful"].load()
first = []
def note(**_):
    if not first:
        first.extend((time.time(), time.process_time()))
with pm.Model():
    alpha = pm.Gamma("alpha", 2, 4)
    dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=rows)
    pm.sample(draws=20, tune=60, chains=1, cores=1, random_seed=1, progressbar=False,
              compute_convergence_checks=False, callback=note)
print(*first, time.process_time())
"""


def _process(cache: str) -> tuple[float, float, float]:
    """Wall and CPU seconds to the first draw, and CPU seconds in all."""
    began = time.time()
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"},
    )
    clock, cpu_first, cpu_all = map(float, done.stdout.split())
    return clock - began, cpu_first, cpu_all


def run() -> Iterator[Row]:
    """The warm start, then the cold compile."""
    with tempfile.TemporaryDirectory() as cache:
        _, _, cold = _process(cache)
        warm = np.median([_process(cache) for _ in range(_WARM_RUNS)], axis=0)
    yield Row(
        name="import and first draw, kernels cached",
        measured=float(warm[0]),
        unit="s",
        must=10.0,
        aim=5.0,
        larger_is_better=False,
        note=f"wall time; {warm[1]:.1f} s of CPU time",
    )
    yield Row(
        name="cold compile of all Old Faithful needs",
        measured=float(cold - warm[2]),
        unit="s",
        must=60.0,
        aim=25.0,
        larger_is_better=False,
        note=f"CPU time; {cold:.1f} s against {warm[2]:.1f} s",
    )
