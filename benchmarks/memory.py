"""Print the bytes that `pm.sample` takes beyond imports and data; run in a process of its own.

    python -m benchmarks.memory N D CHAINS

Linux only: reads the resident memory of the process, and resets its peak once the data are there.
"""

import sys
from pathlib import Path

import pymc as pm

import pymc_dpsplit as dps
from benchmarks.workloads import spheres

_STATUS = Path("/proc/self/status")


def resident(entry: str) -> int:
    """Bytes that an entry such as VmRSS or VmHWM (the peak) tells."""
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    (told,) = (line for line in lines if line.startswith(entry))
    return int(told.split()[1]) * 1024


def forget_peak() -> None:
    """Let VmHWM, the peak, begin anew."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main(n_obs: int, n_features: int, n_chains: int) -> None:
    """Sample a few draws and print the bytes."""
    imported = resident("VmRSS")
    rows = spheres(n_obs, n_features, 40, 2.0)[0]
    forget_peak()
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 4.0)
        dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=rows)
        pm.sample(
            draws=3,
            tune=6,
            chains=n_chains,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    print(resident("VmHWM") - imported - rows.nbytes)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
