"""Components of any density against conjugate ones: time of a whole iteration, and of a sweep."""

from collections.abc import Iterator

import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.timing import median_seconds

_N_OBS, _N_CLUSTERS, _SPREAD = 100_000, 5, 6.0


def _data() -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, 1) of five clusters with Student's t for tails, and their labels."""
    rng = np.random.default_rng(1)
    labels = rng.integers(_N_CLUSTERS, size=_N_OBS)
    centres = _SPREAD * (np.arange(_N_CLUSTERS) - 2.0)
    return (centres[labels] + rng.standard_t(10.0, _N_OBS))[:, None], labels


def _seconds(component: object) -> tuple[float, float, int]:
    """Seconds of an iteration and of its sweep, and the number of clusters, once settled."""
    rows, labels = _data()
    chain = Chain(make_target(rows, component), labels)
    chain.iterate(20)
    chain.replan()
    return median_seconds(chain.iterate), median_seconds(chain.sweep), chain.n_clusters


def run() -> Iterator[Row]:
    """One row for each distribution, the conjugate normal being the measure."""
    location = {"mu": pm.Normal.dist(0.0, 10.0)}
    spread = {"sigma": pm.HalfNormal.dist(2.0)}
    whole, sweep, n_clusters = _seconds(dps.Normal(0.0, 0.01, 2.0, 2.0))
    for name, component in {
        "StudentT": dps.Component(pm.StudentT, nu=10.0, **location, **spread),
        "Normal": dps.Component(pm.Normal, **location, **spread),
        "Laplace": dps.Component(pm.Laplace, b=1.0, **location),
    }.items():
        ours = _seconds(component)
        yield Row(
            name=f"iteration with Component(pm.{name}) over the conjugate normal's",
            measured=ours[0] / whole,
            unit="x",
            must=10.0,
            larger_is_better=False,
            note=f"{1e9 * ours[0] / _N_OBS:.0f} and {1e9 * whole / _N_OBS:.0f} ns per row with "
            f"{ours[2]} and {n_clusters} clusters; their sweeps {1e9 * ours[1] / _N_OBS:.0f} and "
            f"{1e9 * sweep / _N_OBS:.0f} ns",
        )
