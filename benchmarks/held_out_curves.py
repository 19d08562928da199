"""Held-out density of partitions against CPU seconds, kernel by kernel (curves).

The kernels are those that Chang & Fisher (2013) compare, by their names here, and ours.  Every
chain starts from the same partition, is compiled before its time begins, and is scored outside it.
The log joint is kept too, but judges no kernel: partitions of highest log joint are far from
typical ones where clusters overlap, and what climbs it passes the level of typical partitions.
Curves are kept beside the results, for `benchmarks.figures`.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.results import FOLDER
from benchmarks.row import Row
from benchmarks.timing import cpu_seconds
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.step.schedule import make_schedule


class Line(NamedTuple):
    """A kernel with its options.

    The default searches greedily at first, and has the schedules of `pm.sample`, an iteration at a
    time.
    """

    name: str
    kernel: str
    options: dict[str, Any]


LINES = (
    Line("default", "exact", {}),
    Line("SUBC", "chang-fisher", {}),
    Line("SUBC+SUPC", "chang-fisher", {"super_clusters": True}),
    Line(
        "SUBC+SUPC APPROX",
        "chang-fisher",
        {"super_clusters": True, "sub_cluster_burn_in": False},
    ),
    Line("SUBC repaired", "chang-fisher", {"repaired": True}),
    Line("100 sticks", "truncated", {"truncation": 100}),
    Line("GIBBS", "collapsed", {}),
    Line("GIBBS+SUPC", "av-parallel", {"shares": [4, 3, 2, 1]}),
    Line("GIBBS+SAMS", "sams", {}),
)
_GREEDY_ITERATIONS = 30
# Iterations with one schedule, which changes for the default alone; in `pm.sample` they are draws
# of tuning.
_RESCHEDULE_EVERY = 25
# Mean log density of rows that were held out, given a partition of the others.
Score = Callable[[sampler.ChainState], float]
# Held-out nats per row below the level that count as having got there.
NEAR = 0.01
# A chain is scored at its start, and each time its CPU seconds have grown by this factor.
_FIRST, _FACTOR = 0.01, 1.25


class Curve(NamedTuple):
    """What one chain reached, and when.

    Attributes
    ----------
    name : str
        Of the line, see `LINES`.
    seconds, score, log_joint : list of float
        CPU seconds, and held-out score and log joint of the partition then.
    n_clusters, n_iterations : int
        At the end.
    """

    name: str
    seconds: list[float]
    score: list[float]
    log_joint: list[float]
    n_clusters: int
    n_iterations: int


def scheduled(
    line: Line,
    target: sampler.Target,
    state: sampler.ChainState,
    iteration: int,
    present: sampler.Schedule | None,
) -> sampler.Schedule:
    """Schedule of an iteration, as published; that of the default is renewed now and then."""
    if present is not None and iteration % _RESCHEDULE_EVERY:
        return present
    published = sampler.SAMPLERS.get(line.kernel)
    settings = None if published is None else published.settings(line.options)
    schedule = make_schedule(line.kernel, target, state, settings=settings, is_settled=False)
    return schedule._replace(n_iterations=1)


def advance(
    line: Line,
    target: sampler.Target,
    state: sampler.ChainState,
    rng: np.random.Generator,
    iteration: int,
    schedule: sampler.Schedule,
) -> sampler.ChainState:
    """One iteration of a kernel as published, or of early tuning of the default."""
    is_greedy = line.kernel == "exact" and iteration < _GREEDY_ITERATIONS
    form = sampler.GREEDY if is_greedy else line.kernel
    return sampler.advance(form, target, state, rng, schedule)[0]


class _Chain:
    """A chain of one line, and the CPU seconds that it has taken."""

    def __init__(self, line: Line, target: sampler.Target, labels: np.ndarray) -> None:
        self.line, self.target, self.rng = line, target, np.random.default_rng(1)
        self.state = sampler.resume(target, labels)
        self.seconds, self.n_iterations = 0.0, 0
        self.schedule: sampler.Schedule | None = None

    def _iterate(self) -> None:
        given = self.line, self.target, self.state
        self.schedule = scheduled(*given, self.n_iterations, self.schedule)
        self.state = advance(*given, self.rng, self.n_iterations, self.schedule)

    def run_until(self, seconds: float) -> None:
        """At least one more iteration."""
        while True:
            self.seconds += cpu_seconds(self._iterate)
            self.n_iterations += 1
            if self.seconds >= seconds:
                return


def curve_of(
    line: Line, target: sampler.Target, score: Score, labels: np.ndarray, budget: float
) -> Curve:
    """Run one kernel from a partition until its CPU seconds are used up."""
    chain, seconds, scores, heights = _Chain(line, target, labels), [], [], []
    while True:
        seconds.append(round(chain.seconds, 4))
        scores.append(round(score(chain.state), 5))
        heights.append(round(float(log_joint(target, chain.state.stats)), 1))
        if chain.seconds >= budget:
            break
        chain.run_until(min(budget, max(_FIRST, _FACTOR * chain.seconds)))
    return Curve(line.name, seconds, scores, heights, len(chain.state.stats), chain.n_iterations)


def curves_of(
    target: sampler.Target,
    score: Score,
    n_start: int,
    budget: float,
    lines: Sequence[Line] = LINES,
) -> list[Curve]:
    """Every kernel from the same partition into `n_start` clusters."""
    labels = sampler.start(target, np.random.default_rng(n_start), n_start).labels
    return [curve_of(line, target, score, labels, budget) for line in lines]


def compile_all(target: sampler.Target, lines: Sequence[Line] = LINES) -> None:
    """Make a few iterations of each kernel on a target of few rows."""
    for line in lines:
        state, rng = sampler.start(target, np.random.default_rng(1), 3), np.random.default_rng(2)
        for iteration in (0, _GREEDY_ITERATIONS):
            schedule = scheduled(line, target, state, iteration, None)
            state = advance(line, target, state, rng, iteration, schedule)
        log_joint(target, state.stats)


def seconds_to(curve: Curve, level: float) -> float:
    """CPU seconds after which the score stays at a level or above; NaN if it does not."""
    is_below = np.flatnonzero(np.array(curve.score) < level)
    after = 0 if not len(is_below) else int(is_below[-1]) + 1
    return curve.seconds[after] if after < len(curve.seconds) else float("nan")


def rows_of(setting: str, curves: Sequence[Curve], level: float) -> Iterator[Row]:
    """A row for each kernel: when its score got near a level for good."""
    for curve in curves:
        yield Row(
            name=f"{setting}: {curve.name}",
            measured=seconds_to(curve, level - NEAR),
            unit="s",
            larger_is_better=False,
            note=f"ends at {curve.score[-1] - level:+.4f}, log joint "
            f"{curve.log_joint[-1]:.0f}, K = {curve.n_clusters}; "
            f"{curve.n_iterations} iterations",
        )


def _path_of(subject: str) -> Path:
    return FOLDER / "curves" / f"{subject}.json"


def has_curves(subject: str) -> bool:
    """Whether a subject has been run."""
    return _path_of(subject).exists()


def keep_curves(subject: str, levels: dict[str, float], curves: dict[str, list[Curve]]) -> None:
    """Write curves and their levels, by setting, over those of the last run of the subject."""
    path = _path_of(subject)
    path.parent.mkdir(exist_ok=True, parents=True)
    found = {setting: [curve._asdict() for curve in of] for setting, of in curves.items()}
    text = json.dumps({"levels": levels, "curves": found})
    path.write_text(text + "\n", encoding="ascii")


def read_curves(subject: str) -> tuple[dict[str, float], dict[str, list[Curve]]]:
    """Levels and curves of the last run of a subject, by setting."""
    read = json.loads(_path_of(subject).read_text(encoding="ascii"))
    curves = {name: [Curve(**one) for one in of] for name, of in read["curves"].items()}
    return read["levels"], curves
