"""Effective draws of K per CPU second through `pm.sample`, and agreement with known E[K].

Galaxies (82 velocities) and Old Faithful (272 x 2, standardised), alpha fixed at 1, one thread,
four chains.  Time is CPU time of the draws after tuning.  The reference values of E[K] come from
long runs of an independent collapsed Gibbs sampler, with their Monte-Carlo errors.
"""

import time

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from pymc_dpsplit.demo import DATA_SETS

# Name, scale matrix, reference E[K] and its standard error, effective draws per second aimed at.
CASES = (
    ("galaxies", np.eye(1), 8.15, 0.03, 1200),
    ("faithful", 0.1 * np.eye(2), 6.34, 0.04, 450),
)
_DRAWS = 4000


def rows_of(name: str) -> np.ndarray:
    """Galaxies in 1000 km/s; Old Faithful with mean 0 and standard deviation 1."""
    rows, _ = DATA_SETS[name].load()
    return rows[:, None] if name == "galaxies" else (rows - rows.mean(0)) / rows.std(0)


def measure(name: str, psi0: np.ndarray) -> tuple[np.ndarray, float]:
    """Numbers of clusters (chains, draws), and the CPU seconds of these draws."""
    rows = rows_of(name)
    n_features = rows.shape[1]
    component = dps.MvNormal(rows.mean(0), 0.1, n_features + 2.0, psi0)
    moments: list[float] = []
    with pm.Model():
        dps.DPMixture("x", 1.0, component, observed=rows)
        idata = pm.sample(
            draws=_DRAWS,
            tune=1000,
            chains=4,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda **_: moments.append(time.process_time()),
        )
    ticks = np.array(moments).reshape(4, -1)
    seconds = float((ticks[:, -1] - ticks[:, -1 - _DRAWS]).sum())
    return idata["posterior"]["x_n_clusters"].to_numpy().astype(float), seconds


def main() -> None:
    """Print one line per data set."""
    print("mixing: effective draws of K per CPU second, alpha = 1")
    for name, psi0, expected, error, target in CASES:
        counts, seconds = measure(name, psi0)
        size = float(az.ess(counts))
        own_error = counts.std() / np.sqrt(size)
        print(
            f"  {name}: {size / seconds:.0f} per second (aim {target}); "
            f"E[K] = {counts.mean():.3f} +- {own_error:.3f}, reference {expected} +- {error}, "
            f"R-hat {float(az.rhat(counts)):.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
