"""Clusters on processors (Williamson, Dubey & Xing 2013), their figure 1 at a fiftieth of its size.

Sweeps of processors run one after another on one thread.  What P threads could gain is bounded by
the processor with most observations, which the last rows have.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.timing import cpu_seconds
from pymc_dpsplit import sampler

_N_OBS, _N_COMPONENTS, _N_START = 20_000, 50, 80
MU0, SIGMA0, SIGMA = 5.0, 3.0, 0.1
_SEEDS, _SECONDS = (1, 2), 2.0


class Run(NamedTuple):
    """A chain after its CPU seconds are used up.

    Attributes
    ----------
    f1 : float
        Of pairs in one cluster, against the truth.
    n_clusters, n_iterations : int
    milliseconds : float
        CPU time of an iteration.
    largest : float
        Mean share of the observations that the largest processor has; 1 without processors.
    """

    f1: float
    n_clusters: int
    n_iterations: int
    milliseconds: float
    largest: float


def f1_of_pairs(labels: np.ndarray, truth: np.ndarray) -> float:
    """Harmonic mean of precision and recall of the pairs in one cluster."""
    shape = int(labels.max()) + 1, int(truth.max()) + 1
    pairs_of = labels.astype(np.int64) * shape[1] + truth
    table = np.bincount(pairs_of, minlength=shape[0] * shape[1]).reshape(shape)

    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1.0) / 2.0).sum())

    return 2.0 * pairs(table) / (pairs(table.sum(0)) + pairs(table.sum(1)))


def draw_rows(rng: np.random.Generator, n_obs: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (N, 1) of the paper's mixture, and the components they are from."""
    truth = rng.integers(_N_COMPONENTS, size=n_obs)
    rows = rng.uniform(0.0, 10.0, _N_COMPONENTS)[truth] + SIGMA * rng.standard_normal(n_obs)
    return rows[:, None], truth


def component() -> dps.NormalKnownSigma:
    """The family of the clusters, whose standard deviation is known."""
    return dps.NormalKnownSigma(mu0=MU0, sigma0=SIGMA0, sigma=SIGMA)


def start_of(rows: np.ndarray, seed: int) -> np.ndarray:
    """Clusters (N,) of k-means, which knows 20,000 of the rows."""
    means = KMeans(_N_START, n_init=1, random_state=seed).fit(rows[:_N_OBS])
    labels: np.ndarray = np.unique(means.predict(rows), return_inverse=True)[1]
    return labels


def run_of(kernel: str, n_processors: int, seed: int) -> Run:
    """Sample for some CPU seconds, from the clusters of k-means."""
    rng = np.random.default_rng(seed)
    rows, truth = draw_rows(rng, _N_OBS)
    target = make_target(rows, component())
    state = sampler.resume(target, start_of(rows, seed))
    schedule = sampler.Schedule(1, 1.0, np.empty(0, np.int64))
    if n_processors:
        settings = sampler.SAMPLERS[kernel].settings({"processors": n_processors})
        schedule = schedule._replace(settings=settings)

    def advance() -> None:
        nonlocal state
        state, _ = sampler.advance(kernel, target, state, rng, schedule)

    advance()
    seconds: list[float] = []
    largest: list[float] = []
    while sum(seconds) < _SECONDS:
        seconds.append(cpu_seconds(advance))
        if n_processors:
            sizes = np.bincount(state.of_clusters[:, 0].astype(int), state.stats[:, 0])
            largest.append(sizes.max() / _N_OBS)
    return Run(
        f1_of_pairs(state.labels, truth),
        len(state.stats),
        len(seconds),
        1e3 * float(np.mean(seconds)),
        float(np.mean(largest)) if largest else 1.0,
    )


def run() -> Iterator[Row]:
    """A row for each number of processors and the default kernel, then the bounds."""
    bounds = {}
    for n_processors in (1, 2, 4, 8, 0):
        kernel = "av-parallel" if n_processors else "exact"
        runs = [run_of(kernel, n_processors, seed) for seed in _SEEDS]
        f1, n_clusters, n_iterations, milliseconds, largest = np.mean(runs, axis=0)
        what = f"{n_processors} processors" if n_processors else "the kernel exact"
        yield Row(
            name=f"{what}: F1 after {_SECONDS:g} CPU seconds",
            measured=float(f1),
            note=f"{min(of.f1 for of in runs):.3f} to {max(of.f1 for of in runs):.3f}; "
            f"{milliseconds:.1f} ms per iteration, {n_iterations:.0f} of them; "
            f"K = {n_clusters:.1f}",
        )
        if n_processors > 1:
            bounds[n_processors] = float(largest)
    for n_processors, largest in bounds.items():
        yield Row(
            name=f"{n_processors} processors: most that as many threads could gain",
            measured=1.0 / largest,
            unit="x",
            note=f"the largest processor has {100.0 * largest:.0f} % of the observations",
        )
