"""Memory and time of `pm.sample` with a million observations: N = 1e6, D = 2, alpha sampled.

Nothing that is kept may grow with N: no labels in the trace, no check per observation.  With one
core the chains run one after another in this process; with more, each worker holds its own copy
of what it needs.  The target is the size of the data and 1 GiB per chain.  Compiling kernels that
are not cached takes some 500 MiB by itself: the second run tells.
"""

import argparse
import resource
import time
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pymc as pm
import xarray as xr

import pymc_dpsplit as dps

_N_OBS = 1_000_000
_MIB = 2**20
_TARGET = 1024


def main() -> None:
    """Print times, peak memory and the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=300, help="draws per chain that are kept")
    parser.add_argument("--tune", type=int, default=100, help="draws per chain before those")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--cores", type=int, default=1)
    given = parser.parse_args()
    rows = _ten_gaussians(np.random.default_rng(0))
    idle = _peak()
    watch = Watch()
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 4.0)
        dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=rows)
        began = time.perf_counter()
        idata = pm.sample(
            **vars(given),
            random_seed=1,
            progressbar=False,
            callback=watch,
        )
    ended = time.perf_counter()
    n_draws = given.chains * (given.draws + given.tune)
    print(f"large N: N={_N_OBS}, D=2, alpha by NUTS, {vars(given)}")
    print(f"time: {(watch.last - began) / n_draws:.3f} s per draw, tuning and compilation included")
    print(f"after the last draw: {ended - watch.last:.1f} s of conversion and checks")
    print(f"result: {_size(idata):.1f} MiB")
    _print_memory("this process", _peak(), rows, idle)
    if given.cores > 1:
        _print_memory("the largest worker", watch.largest_worker, rows, idle)


class Watch:
    """What is seen at each draw: the time, and the memory of the workers."""

    def __init__(self) -> None:
        self.last = 0.0
        self.largest_worker = 0.0

    def __call__(self, **_: object) -> None:
        self.last = time.perf_counter()
        peaks = [_peak_of(worker.pid) for worker in active_children()]
        self.largest_worker = max([self.largest_worker, *peaks])


def _ten_gaussians(rng: np.random.Generator) -> np.ndarray:
    """Rows (N, 2)."""
    centres = 5.0 * rng.standard_normal((10, 2))
    return centres[rng.integers(10, size=_N_OBS)] + rng.standard_normal((_N_OBS, 2))


def _peak() -> float:
    """Largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _peak_of(pid: int | None) -> float:
    """The same of another process; it may have ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return float(lines.get("VmHWM", "0").split()[0]) / 1024


def _size(idata: xr.DataTree) -> float:
    return sum(node.to_dataset().nbytes for node in idata.subtree) / _MIB


def _print_memory(process: str, peak: float, rows: np.ndarray, idle: float) -> None:
    data = rows.nbytes / _MIB
    print(
        f"memory of {process}: peak {peak:.0f} MiB, {peak - data:.0f} MiB beside the data of "
        f"{data:.0f} MiB (target {_TARGET} MiB); before the model was made {idle:.0f} MiB"
    )


if __name__ == "__main__":
    main()
