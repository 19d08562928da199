"""Whether chains from over-dispersed starts have met after tuning, where clusters are many.

By the log joint density: chains in different modes differ by hundreds, and one that has met the
others is within its own spread.
"""

import logging
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from benchmarks import workloads
from benchmarks.burn_in_long import MNIST, mnist
from benchmarks.data_folder import why_not
from benchmarks.row import Row

_SEED = 11
_MOST_APART = 5.0
# Clusters of the first draw: few, as many as there are, and several times as many.
_STARTS = (1, 10, 50, 200)


class _Case(NamedTuple):
    name: str
    rows: np.ndarray
    component: Any
    tune: int
    draws: int


def _spheres(n_obs: int, n_features: int, n_clusters: int) -> tuple[np.ndarray, Any]:
    rows, _, _ = workloads.spheres(n_obs, n_features, n_clusters, 2.0, _SEED)
    prior = rows.mean(0), 0.1, n_features + 2.0, np.eye(n_features)
    return rows, dps.MvNormal(*prior)


def _cases() -> Iterator[_Case]:
    yield _Case("forty clusters, 8,000 x 16", *_spheres(8_000, 16, 40), 1000, 200)
    yield _Case("forty clusters, 20,000 x 16", *_spheres(20_000, 16, 40), 500, 200)
    yield _Case("100 clusters, 100,000 x 32", *_spheres(100_000, 32, 100), 200, 50)


def _row_of(case: _Case) -> Row:
    """Largest difference of two chains' means, in their standard deviations."""
    began = time.process_time()
    with pm.Model():
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), case.component, observed=case.rows)
        idata = pm.sample(
            draws=case.draws,
            tune=case.tune,
            chains=len(_STARTS),
            cores=1,
            initvals=[{"x_n_clusters": n} for n in _STARTS],
            random_seed=_SEED,
            progressbar=False,
            compute_convergence_checks=False,
        )
    spent = time.process_time() - began
    log_joint = idata["sample_stats"]["x_log_joint"].to_numpy()
    numbers = idata["posterior"]["x_n_clusters"].to_numpy()
    within = float(np.sqrt(log_joint.var(axis=1, ddof=1).mean()))
    means = ", ".join(f"{mean:.0f}" for mean in log_joint.mean(axis=1))
    found = ", ".join(f"{mean:.1f}" for mean in numbers.mean(axis=1))
    return Row(
        name=f"{case.name}: chains apart",
        measured=float(np.ptp(log_joint.mean(axis=1)) / within),
        unit="sd",
        must=_MOST_APART,
        larger_is_better=False,
        note=f"log joint {means}, sd {within:.0f}; K {found}; {case.tune} draws of tuning, "
        f"{spent:.0f} CPU s",
    )


def run() -> Iterator[Row]:
    """In order of size."""
    logging.getLogger("pymc").setLevel(logging.ERROR)
    for case in _cases():
        yield _row_of(case)
    name, read = "MNIST, 70,000 x 50", mnist()
    if read is None:
        yield Row(name=f"{name}: chains apart", measured=None, unit="sd", note=why_not(MNIST))
    else:
        yield _row_of(_Case(name, read[0], dps.MvNormal.from_data(read[0]), 200, 50))
