"""The marginalized sampler of a lecture (Paisley 2015) beside collapsed and slice sampling."""

from collections.abc import Iterator
from typing import NamedTuple

import arviz as az
import numpy as np

from benchmarks import workloads
from benchmarks.held_out_curves import Curve, keep_curves
from benchmarks.partition_scores import Scores, scores_of
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.timing import cpu_seconds
from benchmarks.workloads import Workload
from pymc_dpsplit import sampler

SUBJECT = "marginalized"
KERNELS = {"neal2": "marginalized", "collapsed": "collapsed", "slice": "slice"}
_NAMES = ("galaxies", "faithful", "W2_1e3")
_CHAINS, _BUDGET, _SCORED = 4, 3.0, 6000
# Part of a chain that is left out, and standard deviations within which it has arrived.
_BURN_IN, _NEAR = 0.25, 2.0
# Iterations in which a chain may arrive, and lags of the autocorrelation that is kept.
_EARLY, _N_LAGS = 400, 60


class Chains(NamedTuple):
    """What the chains of one kernel visited, from one cluster.

    Attributes
    ----------
    scores : list of Scores
        Of each chain, after its burn-in.
    first_heights : list of ndarray
        Log joint in the first iterations of each chain.
    numbers : ndarray, shape (chain, iteration)
        Number of clusters in every iteration, after the burn-in.
    of_iteration : float
        CPU seconds.
    every : int
        Iterations from one that is scored to the next.
    """

    scores: list[Scores]
    first_heights: list[np.ndarray]
    numbers: np.ndarray
    of_iteration: float
    every: int

    def trace(self, of: str) -> np.ndarray:
        """One quantity (chain, draw)."""
        return np.array([getattr(each, of) for each in self.scores])

    def effective(self, trace: np.ndarray) -> float:
        """Effective draws per CPU second, of a trace that is scored or of the numbers."""
        every = 1 if trace is self.numbers else self.every
        return float(az.ess(trace)) / (trace.size * every * self.of_iteration)


def _run_chain(
    target: sampler.Target, kernel: str, seed: int, budget: float
) -> tuple[list[np.ndarray], float]:
    """Partition after each iteration, and CPU seconds; all in one cluster at first."""
    schedule = sampler.Schedule(1, 0.0, np.empty(0, np.int64))
    state = sampler.resume(target, np.zeros(target.data.shape[0], np.int64))
    rng, kept, spent = np.random.default_rng(seed), [], 0.0

    def iterate() -> None:
        nonlocal state
        state, _ = sampler.advance(kernel, target, state, rng, schedule)

    while spent <= budget:
        spent += cpu_seconds(iterate)
        kept.append(state.labels.astype(np.int16))
    return kept, spent


def run_chains(workload: Workload, kernel: str) -> Chains:
    """As many iterations as the CPU seconds of each chain allow."""
    target = make_target(workload.rows, workload.component)
    _run_chain(target, kernel, 0, 0.0)  # compiled now
    chains = [_run_chain(target, kernel, chain, _BUDGET) for chain in range(_CHAINS)]
    partitions = [kept for kept, _ in chains]
    seconds = [spent for _, spent in chains]
    n = min(map(len, partitions))
    of_iteration = sum(seconds) / sum(map(len, partitions))
    first = int(_BURN_IN * n)
    every = -(-(n - first) // _SCORED)
    scores = [scores_of(workload, np.array(kept[first:n:every]), 1.0) for kept in partitions]
    early = [scores_of(workload, np.array(kept[:_EARLY]), 1.0).log_joint for kept in partitions]
    numbers = np.array([[labels.max() + 1 for labels in kept[first:n]] for kept in partitions])
    return Chains(scores, early, numbers.astype(float), of_iteration, every)


def iterations_to_arrive(chains: Chains) -> float:
    """First iteration with a log joint as high as is typical later; the mean over chains."""
    heights = chains.trace("log_joint")
    wanted = heights.mean() - _NEAR * heights.std()
    arrived = [np.flatnonzero(early >= wanted) for early in chains.first_heights]
    return float(np.mean([at[0] + 1 if len(at) else np.nan for at in arrived]))


def autocorrelation(trace: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lags, and the mean over chains of the autocorrelation of a trace (chain, draw) there."""
    gaps = trace - trace.mean()
    n, total = trace.shape[1], max(float((gaps**2).mean()), 1e-300)
    lags = np.unique(np.geomspace(1, max(n // 4, 1), _N_LAGS).astype(int))
    found = [(gaps[:, lag:] * gaps[:, : n - lag]).mean() / total for lag in lags]
    return lags, np.array(found)


def _rows_of(name: str, title: str, chains: Chains) -> Iterator[Row]:
    k, height = chains.numbers, chains.trace("log_joint")
    points = np.moveaxis(chains.trace("points"), -1, 0)
    yield Row(
        name=f"{name}, {title}: CPU time of an iteration",
        measured=1e3 * chains.of_iteration,
        unit="ms",
        larger_is_better=False,
    )
    yield Row(
        name=f"{name}, {title}: effective draws of K",
        measured=chains.effective(k),
        unit="per s",
        note=f"log joint {chains.effective(height):.3g}, density "
        f"{min(chains.effective(point) for point in points):.3g}; one in "
        f"{k.size / float(az.ess(k)):.1f} iterations; "
        f"R-hat {max(float(az.rhat(each)) for each in (k, height, *points)):.3f}; "
        f"E[K] = {k.mean():.2f}",
    )
    iterations = iterations_to_arrive(chains)
    yield Row(
        name=f"{name}, {title}: from one cluster to typical log joint densities",
        measured=1e3 * iterations * chains.of_iteration,
        unit="ms",
        larger_is_better=False,
        note=f"{iterations:.1f} iterations",
    )


def _curve_of(title: str, chains: Chains) -> Curve:
    lags, found = autocorrelation(chains.numbers)
    seconds = (lags * chains.of_iteration).round(7).tolist()
    return Curve(title, seconds, found.round(4).tolist(), [], 0, 0)


def run() -> Iterator[Row]:
    """Kernel by kernel on each of the data."""
    curves: dict[str, list[Curve]] = {}
    for name in _NAMES:
        workload, curves[name] = workloads.load(name, 21), []
        for kernel, title in KERNELS.items():
            chains = run_chains(workload, kernel)
            curves[name].append(_curve_of(title, chains))
            yield from _rows_of(name, title, chains)
        keep_curves(SUBJECT, dict.fromkeys(curves, 0.0), curves)
