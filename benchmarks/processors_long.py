"""F1 against time on a million scalars, by numbers of processors (Williamson 2013, figure 1).

Processors run one after another on one thread, and each is timed alone: an iteration takes as long
as its slowest processor, and what all wait for is the global step.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.asynchronous_gibbs import Model, begin, sweep, tell
from benchmarks.held_out_curves import Curve, keep_curves
from benchmarks.processors import MU0, SIGMA, SIGMA0, component, draw_rows, f1_of_pairs, start_of
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.timing import cpu_seconds
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.collapsed.scan import collapsed_scan, log_densities_alone
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.samplers.av_parallel import draw_processors, local_labels

SUBJECT = "processors_long"
_N_OBS, _SEED = 1_000_000, 1
_SETTING = "a million scalars, 50 components"
# CPU seconds of each line, and numbers of clusters that the asynchronous sampler has.
_BUDGET, _MOST_CLUSTERS = 100.0, 160
_PROCESSORS = (1, 2, 4, 8)
# Relative distance from the last F1 that counts as being there.
_NEAR = 0.01


class Spent(NamedTuple):
    """CPU seconds of an iteration: of all processors, of the slowest, and of the global step."""

    local: float
    slowest: float
    shared: float


class Trace(NamedTuple):
    """What a line did, iteration by iteration; the start has no time.

    Attributes
    ----------
    f1 : list of float
    spent : list of Spent
    n_clusters : int
        At the end.
    """

    f1: list[float]
    spent: list[Spent]
    n_clusters: int

    @property
    def elapsed(self) -> np.ndarray:
        """Seconds that as many threads as processors would have taken, from 0 on."""
        each = [one.slowest + one.shared for one in self.spent]
        return np.concatenate([[0.0], np.cumsum(each)])

    @property
    def iterations_to_end(self) -> int:
        """Iterations after which F1 stays within one percent of its last value."""
        is_far = np.abs(np.array(self.f1) / self.f1[-1] - 1.0) > _NEAR
        return int(np.flatnonzero(is_far)[-1]) + 1 if is_far.any() else 0


# One iteration of a chain, the clusters after it, and what it took.
Step = Callable[[], tuple[np.ndarray, Spent]]


def by_processors(
    target: sampler.Target, labels: np.ndarray, n_processors: int, rng: np.random.Generator
) -> Step:
    """`av-parallel`, of which every processor is timed."""
    labels = labels.astype(np.int32)
    stats = sampler.resume(target, labels).stats
    shares = np.full(n_processors, 1.0 / n_processors)
    log_alone = log_densities_alone(target.prior, target.data, np.arange(len(labels)))
    processors = draw_processors(labels, stats, shares, rng)
    local = target._replace(law=dirichlet_process(target.law.strength / n_processors))

    def step() -> tuple[np.ndarray, Spent]:
        found = np.empty_like(labels)
        lives_on: list[int] = []

        def sweep_of(p: int) -> None:
            own, clusters, rows = local_labels(labels, processors, p)
            if len(rows):
                given = rng, rows, log_alone[rows]
                own_stats = collapsed_scan(local, own, stats[clusters], *given)
                found[rows] = len(lives_on) + own[rows]
                lives_on.extend([p] * len(own_stats))

        def share_out() -> None:
            nonlocal stats, processors
            labels[:] = found
            stats = gather_stats(target.prior, target.data, labels, len(lives_on))
            processors = draw_processors(labels, stats, shares, rng)

        seconds = [cpu_seconds(partial(sweep_of, p)) for p in range(n_processors)]
        return labels, Spent(sum(seconds), max(seconds), cpu_seconds(share_out))

    return step


def asynchronous(
    model: Model, labels: np.ndarray, n_processors: int, rng: np.random.Generator
) -> Step:
    """The baseline that is not exact; telling the others is its global step."""
    state = begin(model, labels, n_processors, _MOST_CLUSTERS, rng)

    def step() -> tuple[np.ndarray, Spent]:
        sweeping, telling = [], []
        for p in range(n_processors):
            sweeping.append(cpu_seconds(partial(sweep, model, state, p, rng)))
            telling.append(cpu_seconds(partial(tell, state, p, rng)))
        return state.labels, Spent(sum(sweeping), max(sweeping), max(telling))

    return step


def by_default(target: sampler.Target, labels: np.ndarray, rng: np.random.Generator) -> Step:
    """The kernel `exact` on one thread."""
    state = sampler.resume(target, labels)
    schedule = sampler.Schedule(1, 1.0, np.empty(0, np.int64))

    def iterate() -> None:
        nonlocal state
        state, _ = sampler.advance("exact", target, state, rng, schedule)

    def step() -> tuple[np.ndarray, Spent]:
        seconds = cpu_seconds(iterate)
        return state.labels, Spent(seconds, seconds, 0.0)

    return step


def trace_of(step: Step, start: np.ndarray, truth: np.ndarray, budget: float) -> Trace:
    """Iterate until the CPU seconds of all processors together are used up."""
    f1, labels = [f1_of_pairs(start, truth)], start
    spent: list[Spent] = []
    while sum(one.local + one.shared for one in spent) < budget:
        labels, took = step()
        spent.append(took)
        f1.append(f1_of_pairs(labels, truth))
    return Trace(f1, spent, len(np.unique(labels)))


def lines_of(rows: np.ndarray, start: np.ndarray) -> Iterator[tuple[str, Step]]:
    """Every line by name, ready to begin."""
    target = make_target(rows, component())
    model = Model(rows[:, 0].copy(), SIGMA, MU0, SIGMA0, 1.0)
    for n in _PROCESSORS:
        name = f"{n} processor{'s' if n > 1 else ''}"
        yield name, by_processors(target, start, n, np.random.default_rng(_SEED))
    yield "default, one thread", by_default(target, start, np.random.default_rng(_SEED))
    for n in _PROCESSORS[1:]:
        name = f"{n} asynchronous processors, not exact"
        yield name, asynchronous(model, start, n, np.random.default_rng(_SEED))


def _curve_of(name: str, trace: Trace) -> Curve:
    seconds = [round(float(second), 3) for second in trace.elapsed]
    f1 = [round(one, 5) for one in trace.f1]
    return Curve(name, seconds, f1, [], trace.n_clusters, len(trace.spent))


def _rows_of(name: str, trace: Trace) -> Iterator[Row]:
    local, slowest, shared = (float(sum(each)) for each in zip(*trace.spent, strict=True))
    n, seconds, near = len(trace.spent), trace.elapsed, trace.iterations_to_end
    yield Row(
        name=f"{name}: F1 at the end",
        measured=trace.f1[-1],
        note=f"from {trace.f1[0]:.3f}; K = {trace.n_clusters}; {n} iterations, "
        f"{1e3 * (slowest + shared) / n:.0f} ms each with a thread for each processor, "
        f"{1e3 * (local + shared) / n:.0f} ms of CPU time",
    )
    yield Row(
        name=f"{name}: time until F1 stays within 1 % of that",
        measured=float(seconds[near]),
        unit="s",
        larger_is_better=False,
        note=f"{near} iterations; the run ends at {seconds[-1]:.0f} s",
    )
    yield Row(
        name=f"{name}: share of the global step",
        measured=100.0 * shared / (slowest + shared),
        unit="%",
        larger_is_better=False,
        note=f"local steps {1e3 * slowest / n:.0f} ms, global step {1e3 * shared / n:.1f} ms",
    )


def run() -> Iterator[Row]:
    """Line by line on one set of data."""
    rng = np.random.default_rng(_SEED)
    small, _ = draw_rows(rng, 2000)
    for _, step in lines_of(small, start_of(small, _SEED)):
        step()  # compiled now
    rows, truth = draw_rows(rng, _N_OBS)
    start, curves = start_of(rows, _SEED), []
    for name, step in lines_of(rows, start):
        trace = trace_of(step, start, truth, _BUDGET)
        curves.append(_curve_of(name, trace))
        keep_curves(SUBJECT, {_SETTING: 0.0}, {_SETTING: curves})
        yield from _rows_of(name, trace)
