"""Time of a visit of the collapsed kernel, against that of the control, in turns in one process."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import pymc_dpsplit as dps
from benchmarks import collapsed_control, workloads
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.timing import cpu_seconds
from benchmarks.workloads import Workload
from pymc_dpsplit import sampler

_TURNS = 9
# Visits in a turn, and sweeps before the first.
_VISITS, _BURN_IN = 40_000, 50


def overlapping(n_features: int, n_clusters: int, n_rows: int, spread: float) -> Workload:
    """Gaussians of unit covariance, centres N(0, spread^2 I), with the prior of the others."""
    rows, labels, centres = workloads.spheres(n_rows, n_features, n_clusters, spread, seed=4)
    psi0 = np.eye(n_features)
    return Workload(rows, psi0, rows.mean(0), centres[:3], labels, rows[:0], None)


def cases() -> dict[str, Workload]:
    """A workload for each number of features."""
    return {
        "galaxies, D = 1": workloads.load("galaxies"),
        "W2_1e3, D = 2": workloads.load("W2_1e3"),
        "six overlapping clusters, D = 4": overlapping(4, 6, 2000, 1.0),
        "W3, D = 8": workloads.load("W3"),
        "forty clusters, D = 16": overlapping(16, 40, 4000, 2.0),
    }


class _Both:
    """The control and the collapsed kernel on one workload, from one state."""

    def __init__(self, workload: Workload, component: Any = None) -> None:
        self.rng = np.random.default_rng(1)
        labels = workload.labels
        start = np.zeros(len(workload.rows), int) if labels is None else labels
        self.control = collapsed_control.control_of(workload)
        self._sweep_control(start, _BURN_IN)
        self.target = make_target(workload.rows, component or workload.component)
        self.state = sampler.resume(self.target, np.unique(self.labels, return_inverse=True)[1])
        self.n_sweeps = max(1, _VISITS // len(start))
        self.sweep_ours(1)

    def _sweep_control(self, labels: np.ndarray, n_sweeps: int) -> None:
        kept, _ = collapsed_control.sample(self.control, labels, n_sweeps, self.rng, thin=n_sweeps)
        self.labels = kept[-1]

    def sweep_control(self) -> None:
        self._sweep_control(self.labels, self.n_sweeps)

    def sweep_ours(self, n_sweeps: int | None = None) -> None:
        schedule = sampler.Schedule(n_sweeps or self.n_sweeps, 0.0, np.empty(0, np.int64))
        self.state, _ = sampler.advance("collapsed", self.target, self.state, self.rng, schedule)

    def times(self) -> np.ndarray:
        """Microseconds per visit (turn, control and ours)."""
        calls = self.sweep_control, self.sweep_ours
        seconds = [[cpu_seconds(call) for call in calls] for _ in range(_TURNS)]
        return 1e6 * np.array(seconds) / (self.n_sweeps * len(self.labels))


def row_of(name: str, both: _Both) -> Row:
    """Median of the ratios of the turns, and their range."""
    times = both.times()
    ratios = times[:, 1] / times[:, 0]
    control, ours = np.median(times, axis=0)
    return Row(
        name=f"{name}: ours over the control",
        measured=float(np.median(ratios)),
        unit="x",
        must=1.3,
        larger_is_better=False,
        note=f"{ours:.2f} and {control:.2f} us per visit, K = {len(both.state.stats)}; "
        f"{ratios.min():.2f} to {ratios.max():.2f} in {_TURNS} turns",
    )


def run() -> Iterator[Row]:
    """All cases; the first again as the family of full covariance."""
    for name, workload in cases().items():
        yield row_of(name, _Both(workload))
    galaxies = workloads.load("galaxies")
    component = dps.MvNormal(galaxies.mu0, galaxies.kappa0, galaxies.nu0, galaxies.psi0)
    yield row_of("galaxies by MvNormal, D = 1", _Both(galaxies, component))
