"""One label sweep against one `GaussianMixture` iteration of scikit-learn.

Also what pruning gains or costs, against our own sweep with all atoms.
Same data of float64, one thread, one process, CPU time, medians.  Our sweep includes all its
preparation: weights, parameters, sticks, labels and sufficient statistics.  An iteration of
scikit-learn is (fit of 4 iterations - fit of 1) / 3 from given starting values, so that its
initialisation and last E-step cancel; it is timed on fewer rows and scaled.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import pymc_dpsplit as dps
from benchmarks.ceiling import measure_ceiling
from benchmarks.row import Row
from benchmarks.subject import Chain, evaluate_all, make_target
from benchmarks.timing import REPEATS, cpu_seconds, median_seconds
from benchmarks.workloads import spheres

_SKLEARN_ROWS = 50_000
_FEATURES_OF_LIMIT = 32


class Case(NamedTuple):
    """Size of the data; how far apart the centres are; how many times faster we are to be."""

    n_obs: int
    n_features: int
    n_clusters: int
    spread: float
    must: float | None = None
    aim: float | None = None


FULL = (
    Case(400_000, 8, 30, 4.0, 15.0, 30.0),
    Case(100_000, 32, 30, 2.0, 8.0, 12.0),
    Case(100_000, 50, 40, 2.0, 8.0, 12.0),
    Case(1_000_000, 1, 50, 4.0, 20.0, 40.0),
    Case(1_000_000, 2, 50, 4.0, 20.0, 40.0),
    Case(1_000_000, 2, 10, 4.0),
)
DIAGONAL = (
    Case(400_000, 8, 30, 4.0, 3.0, 6.0),
    Case(100_000, 32, 30, 2.0, 3.0, 6.0),
    Case(100_000, 50, 40, 2.0, 3.0, 6.0),
)

_FAR, _NEAR = 2.0, 0.5


def sklearn_iteration(rows: np.ndarray, centres: np.ndarray, covariance: str) -> float:
    """Median seconds of one iteration of expectation maximisation."""
    n_clusters, n_features = centres.shape
    each = np.ones(n_features) if covariance == "diag" else np.eye(n_features)
    start = {
        "n_components": n_clusters,
        "covariance_type": covariance,
        "means_init": centres,
        "weights_init": np.full(n_clusters, 1.0 / n_clusters),
        "precisions_init": np.stack([each] * n_clusters),
        "tol": 0.0,
    }

    def fit(n_iterations: int) -> float:
        model = GaussianMixture(max_iter=n_iterations, **start)
        return cpu_seconds(lambda: model.fit(rows))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit(1)
        return float(np.median([(fit(4) - fit(1)) / 3.0 for _ in range(REPEATS)]))


def _seconds(case: Case, covariance: str) -> tuple[float, float]:
    """Seconds of our sweep with all atoms, and of an iteration of scikit-learn on as many rows."""
    rows, labels, centres = spheres(*case[:4])
    if covariance == "diag":
        target = make_target(rows, dps.DiagNormal.from_data(rows))
    else:
        target = evaluate_all(make_target(rows, dps.MvNormal.from_data(rows)))
    ours = median_seconds(Chain(target, labels).sweep)
    few = rows[:_SKLEARN_ROWS]
    theirs = sklearn_iteration(few, centres, covariance) * len(rows) / len(few)
    return ours, theirs


def _row(case: Case, covariance: str, ours: float, theirs: float) -> Row:
    kind = "diagonal" if covariance == "diag" else "full"
    per_point = 1e9 / case.n_obs
    return Row(
        name=f"{kind}, D = {case.n_features}, K = {case.n_clusters}",
        measured=theirs / ours,
        unit="x",
        must=case.must,
        aim=case.aim,
        note=f"N = {case.n_obs:.0e}: {ours * per_point:.0f} ns per point, "
        f"scikit-learn {theirs * per_point:.0f}",
    )


def _gain_of_pruning(n_features: int, n_clusters: int, spread: float) -> tuple[float, float]:
    """Seconds of our sweep, and of our sweep with all atoms."""
    rows, labels, _ = spheres(100_000, n_features, n_clusters, spread)
    target = make_target(rows, dps.MvNormal.from_data(rows))
    ours, full = Chain(target, labels), Chain(evaluate_all(target), labels)
    return median_seconds(ours.sweep), median_seconds(full.sweep)


def _pruning_rows(n_features: int, n_clusters: int) -> Iterator[Row]:
    size = f"D = {n_features}, K = {n_clusters}"
    ours, full = _gain_of_pruning(n_features, n_clusters, _FAR)
    yield Row(
        name=f"far apart, pruned against our own full kernel, {size}",
        measured=full / ours,
        unit="x",
        must=2.5,
        aim=4.0,
        note=f"{1e4 * ours:.0f} ns per point, with all atoms {1e4 * full:.0f}",
    )
    ours, full = _gain_of_pruning(n_features, n_clusters, _NEAR)
    yield Row(
        name=f"overlapping: cost of pruning, {size}",
        measured=ours / full,
        unit="x",
        must=1.10,
        aim=1.03,
        larger_is_better=False,
        note=f"{1e4 * ours:.0f} ns per point, with all atoms {1e4 * full:.0f}",
    )


def run() -> Iterator[Row]:
    """One row for each case, the share of the limit where linear algebra dominates, pruning."""
    ceiling = measure_ceiling()
    for case in FULL:
        ours, theirs = _seconds(case, "full")
        yield _row(case, "full", ours, theirs)
        if case.n_features >= _FEATURES_OF_LIMIT:
            yield Row(
                name=f"share of the limit, D = {case.n_features}, K = {case.n_clusters}",
                measured=100.0 * ceiling.sweep_seconds(*case[:3]) / ours,
                unit="%",
                must=70.0,
                aim=90.0,
                note=f"matrix product {1e-9 * ceiling.flops:.1f} GFLOPS, "
                f"exponential {1e9 / ceiling.exponentials:.2f} ns",
            )
    for n_features, n_clusters in ((32, 30), (50, 40)):
        yield from _pruning_rows(n_features, n_clusters)
    for case in DIAGONAL:
        yield _row(case, "diag", *_seconds(case, "diag"))
