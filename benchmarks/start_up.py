"""From the start of a process to the first draw of Old Faithful, compiled or not, and to a result.

A result is a whole `pm.sample` with its defaults, on one core, that has converged: R-hat below 1.01
and more than 400 effective draws of K, the log joint, alpha and the entropy.

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
# Prints the CPU seconds at the end, the largest R-hat and the fewest effective draws.
_WHOLE_RUN = """
import logging, sys, time
import arviz as az
import pymc as pm
import pymc_dpsplit as dps
from pymc_dpsplit.demo import DATA_SETS
logging.getLogger("pymc").setLevel(logging.ERROR)
rows, _ = DATA_SETS[sys.argv[1]].load()
with pm.Model():
    alpha = pm.Gamma("alpha", 2, 4)
    family = dps.Normal if rows.ndim == 1 else dps.MvNormal
    dps.DPMixture("x", alpha, family.from_data(rows), observed=rows)
    trace = pm.sample(cores=1, chains=4, random_seed=int(sys.argv[2]), progressbar=False)
spent, stats, draws = time.process_time(), trace["sample_stats"], trace["posterior"]
each = draws["x_n_clusters"], draws["alpha"], stats["x_log_joint"], stats["x_entropy"]
values = [of.to_numpy().astype(float) for of in each]
print(spent, max(float(az.rhat(of)) for of in values), min(float(az.ess(of)) for of in values))
"""
_SEEDS = range(11, 16)
_MOST_R_HAT, _LEAST_EFFECTIVE = 1.01, 400.0


def _printed(cache: str, program: str, *arguments: str) -> list[float]:
    """Numbers that a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"},
    )
    return [float(number) for number in done.stdout.split()]


def _process(cache: str) -> tuple[float, float, float]:
    """Wall and CPU seconds to the first draw, and CPU seconds in all."""
    began = time.time()
    clock, cpu_first, cpu_all = _printed(cache, _PROGRAM)
    return clock - began, cpu_first, cpu_all


def _to_a_result(cache: str, data: str) -> Row:
    """CPU seconds of whole runs; one that has not converged counts as endless."""
    _printed(cache, _WHOLE_RUN, data, "1")  # compiles what is missing
    runs = np.array([_printed(cache, _WHOLE_RUN, data, str(seed)) for seed in _SEEDS])
    spent, r_hat, effective = runs.T
    has_converged = (r_hat < _MOST_R_HAT) & (effective > _LEAST_EFFECTIVE)
    return Row(
        name=f"{data}: from the start of a process to R-hat < 1.01 and 400 effective draws",
        measured=float(np.median(np.where(has_converged, spent, np.inf))),
        unit="s",
        must=7.0,
        aim=5.0,
        larger_is_better=False,
        note=f"CPU time with kernels cached, median of {len(runs)} seeds, of which "
        f"{has_converged.sum()} converged; {spent.min():.1f} to {spent.max():.1f} s; largest "
        f"R-hat {r_hat.max():.3f}, fewest effective draws {effective.min():,.0f}",
    )


def run() -> Iterator[Row]:
    """The warm start, the cold compile, and whole runs."""
    with tempfile.TemporaryDirectory() as cache:
        _, _, cold = _process(cache)
        warm = np.median([_process(cache) for _ in range(_WARM_RUNS)], axis=0)
        results = [_to_a_result(cache, data) for data in ("galaxies", "faithful")]
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
    yield from results
