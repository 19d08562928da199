"""Effective draws per CPU second through `pm.sample`, and agreement with known E[K]."""

import logging
import time
from collections.abc import Iterator
from typing import NamedTuple

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from benchmarks import workloads
from benchmarks.predictive import log_density_of_draws
from benchmarks.row import Row

CHAINS = 4


class Published(NamedTuple):
    """Effective draws per CPU second of another sampler: K, log joint, worst predictive point."""

    name: str
    k: float
    log_joint: float
    worst_point: float


class Case(NamedTuple):
    """A workload with its budget, what is wanted of K, and what is known of it.

    Attributes
    ----------
    name : str
    tune, draws : int
        Per chain.
    must, aim : float
        Effective draws of K per CPU second.
    rivals : tuple of Published
    expected, error : float or None
        E[K] by the collapsed Gibbs sampler, and its Monte Carlo standard error.
    """

    name: str
    tune: int
    draws: int
    must: float | None
    aim: float
    rivals: tuple[Published, ...] = ()
    expected: float | None = None
    error: float | None = None


_GIBBS = "collapsed Gibbs"
CASES = (
    Case(
        "galaxies", 1000, 3000, 1200.0, 2500.0,
        (Published("BNPmix", 566, 669, 365), Published(_GIBBS, 1540, 1950, 1490)),
        8.15, 0.03,
    ),
    Case(
        "faithful", 1000, 2000, 450.0, 1000.0,
        (Published("BNPmix", 151, 48.2, 148), Published(_GIBBS, 505, 172, 510)),
        6.34, 0.03,
    ),
    Case(
        "W2_1e3", 1000, 1000, 120.0, 300.0,
        (Published("BNPmix", 19.1, 11.4, 5.91), Published(_GIBBS, 56.7, 33.7, 27.6)),
        11.04, 0.07,
    ),
    Case(
        "W2_1e4", 600, 600, 8.0, 20.0,
        (
            Published("BNPmix, not converged", 1.87, 0.376, 0.125),
            Published(_GIBBS, 1.72, 0.366, 0.402),
        ),
        15.10, 0.20,
    ),
    Case(
        "W3", 600, 600, 100.0, 300.0,
        (
            Published("BNPmix, not converged", 0.0878, 0.0677, 0.0678),
            Published(_GIBBS, 35.4, 43.8, 45.6),
        ),
        20.37, 0.02,
    ),
)  # fmt: skip


class Traces(NamedTuple):
    """Quantities (chain, draw) that do not depend on numbering, and CPU seconds."""

    k: np.ndarray
    log_joint: np.ndarray
    points: np.ndarray
    seconds_of_draws: float
    seconds_of_all: float

    @property
    def each(self) -> list[np.ndarray]:
        """All of them, the points one by one."""
        return [self.k, self.log_joint, *np.moveaxis(self.points, -1, 0)]

    @property
    def r_hat(self) -> float:
        """The largest."""
        return max(float(az.rhat(trace)) for trace in self.each)


def sample(case: Case) -> Traces:
    """Run the chains one after another."""
    workload = workloads.load(case.name)
    logging.getLogger("pymc").setLevel(logging.ERROR)
    at: list[float] = []
    with pm.Model():
        dps.DPMixture("x", 1.0, workload.component, observed=workload.observed)
        began = time.process_time()
        idata = pm.sample(
            draws=case.draws,
            tune=case.tune,
            chains=CHAINS,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda **_: at.append(time.process_time()),
        )
    ticks = np.array(at).reshape(CHAINS, -1)
    posterior = idata["posterior"].to_dataset()
    return Traces(
        posterior["x_n_clusters"].to_numpy().astype(float),
        idata["sample_stats"]["x_log_joint"].to_numpy(),
        log_density_of_draws(workload, posterior, "x"),
        float((ticks[:, -1] - ticks[:, -1 - case.draws]).sum()),
        float(ticks[-1, -1] - began),
    )


def rows_of(case: Case, traces: Traces) -> Iterator[Row]:
    """Rows of one workload."""

    def rate(trace: np.ndarray) -> float:
        return float(az.ess(trace)) / traces.seconds_of_draws

    def rivals(of: str) -> str:
        return "; ".join(f"{getattr(one, of):g} ({one.name})" for one in case.rivals)

    k_rate, per_second = rate(traces.k), "per s"
    yield Row(
        name=f"{case.name}: K",
        measured=k_rate,
        unit=per_second,
        must=case.must,
        aim=case.aim,
        rivals=rivals("k"),
        note=f"R-hat {traces.r_hat:.3f}; "
        f"{1e3 * traces.seconds_of_draws / traces.k.size:.2f} ms per draw",
    )
    yield Row(
        name=f"{case.name}: log joint",
        measured=rate(traces.log_joint),
        unit=per_second,
        rivals=rivals("log_joint"),
    )
    yield Row(
        name=f"{case.name}: predictive density, worst of three points",
        measured=min(rate(trace) for trace in traces.each[2:]),
        unit=per_second,
        rivals=rivals("worst_point"),
    )
    if case.expected is not None and case.error is not None:
        mean = traces.k.mean()
        own_error = traces.k.std() / np.sqrt(k_rate * traces.seconds_of_draws)
        yield Row(
            name=f"{case.name}: deviation of E[K]",
            measured=float(abs(mean - case.expected) / np.hypot(own_error, case.error)),
            unit="s.e.",
            must=4.0,
            larger_is_better=False,
            rivals=f"{case.expected:.2f} +- {case.error:.2f} (long runs of collapsed Gibbs)",
            note=f"{mean:.2f} +- {own_error:.2f}",
        )


def run() -> Iterator[Row]:
    """All workloads."""
    for case in CASES:
        yield from rows_of(case, sample(case))
