"""Topics: tokens per second, perplexity of held-out documents against CPU time, and memory.

The variable `DPSPLIT_DATA` names the folder of the documents.  All systems are in one process, in
turns.  `python -m benchmarks.topics` prints a short version.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.catalogue import ROOT
from benchmarks.data_folder import path_of, why_not
from benchmarks.heldout import Split, law_of_tokens, perplexity, split_documents
from benchmarks.row import Row, line_of
from benchmarks.timing import Others, best_wall_seconds
from benchmarks.topic_systems import Ours, System, Tomotopy, gensim_topics, installed

_MUST, _AIM = 1.5, 3.0
_MUST_OF_TWO_THREADS = 1.8
# Where others take more of the machine, wall time of two threads says nothing of them.
_MOST_TAKEN = 0.1


class Text(NamedTuple):
    """A file of documents.

    Attributes
    ----------
    title, file : str
    seconds : tuple of float
        CPU seconds after which systems are judged.
    n_topics : int
        From which they start then.
    """

    title: str
    file: str
    seconds: tuple[float, ...]
    n_topics: int


class Effort(NamedTuple):
    """How long to measure.

    Attributes
    ----------
    seeds : tuple of int
    n_early, n_sweeps, turns : int
        Sweeps before sweeps are timed, sweeps in a turn, and turns.
    longest : float
        Most CPU seconds of a system.
    """

    seeds: tuple[int, ...]
    n_early: int
    n_sweeps: int
    turns: int
    longest: float


KOS = Text("KOS", "kos_bow.npz", (5.0, 15.0, 60.0), 50)
_LARGE = "newsgroups20_bow.npz"
_STARTS = 50, 100
_WHOLE = Effort((1, 2, 3), 40, 4, 5, np.inf)
_SHORT = Effort((1, 2), 5, 2, 3, 15.0)


def seconds_of(call: Callable[[], object]) -> float:
    """CPU seconds of a call, in all threads of this process."""
    began = time.process_time()
    call()
    return time.process_time() - began


def systems_of(split: Split, n_topics: int, seed: int) -> dict[str, System]:
    systems: dict[str, System] = {"ours": Ours(split.rows, n_topics, seed)}
    tomotopy = installed("tomotopy")
    if tomotopy is not None:
        systems["tomotopy"] = Tomotopy(tomotopy, split.rows, n_topics, seed)
    return systems


def _median_and_range(values: Any) -> str:
    return f"{np.median(values):.4g} ({np.min(values):.4g} to {np.max(values):.4g})"


def _rates(split: Split, n_topics: int, seed: int, effort: Effort) -> dict[str, float]:
    """Million tokens that each system redraws in a CPU second: the median over turns."""
    systems = systems_of(split, n_topics, seed)
    for system in systems.values():
        system.advance(effort.n_early)
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(effort.turns):
        for name, system in systems.items():
            taken[name].append(seconds_of(partial(system.advance, effort.n_sweeps)))
    work = 1e-6 * split.n_tokens * effort.n_sweeps
    return {name: work / float(np.median(seconds)) for name, seconds in taken.items()}


def _speed(text: Text, split: Split, effort: Effort) -> Iterator[Row]:
    for n_topics in _STARTS:
        rates = [_rates(split, n_topics, seed, effort) for seed in effort.seeds]
        ours = np.array([of["ours"] for of in rates])
        is_there = "tomotopy" in rates[0]
        theirs = np.array([of.get("tomotopy", np.nan) for of in rates])
        yield Row(
            name=f"{text.title}, from {n_topics} topics: tokens per second over tomotopy's",
            measured=float(np.median(ours / theirs)) if is_there else None,
            unit="x",
            must=_MUST,
            aim=_AIM,
            rivals=f"tomotopy {_median_and_range(theirs)}" if is_there else "",
            note=f"{_median_and_range(ours)} million tokens per CPU second"
            + (
                f"; ratios {_median_and_range(ours / theirs)}" if is_there else _missing("tomotopy")
            ),
        )


def _missing(name: str) -> str:
    return f"; {name} is not installed"


def _judged(text: Text, effort: Effort) -> list[float]:
    return [seconds for seconds in text.seconds if seconds <= effort.longest]


def curve_of(split: Split, text: Text, seed: int, effort: Effort) -> dict[str, list[float]]:
    """Perplexities of each system when it has used as much CPU time as is wanted."""
    wanted = _judged(text, effort)
    systems = systems_of(split, text.n_topics, seed)
    used = dict.fromkeys(systems, 0.0)
    found: dict[str, list[float]] = {name: [] for name in systems}
    for seconds in wanted:
        # The one that has used least goes on, so that all see the same machine.
        while min(used.values()) < seconds:
            name = min(used, key=lambda of: used[of])
            used[name] += seconds_of(partial(systems[name].advance, 1))
        for name, system in systems.items():
            law = law_of_tokens(system.tokens(), split.rows.shape[1])
            found[name].append(perplexity(split.halves, *law))
    return found


def _perplexities(
    text: Text, curves: list[dict[str, list[float]]], effort: Effort
) -> Iterator[Row]:
    is_there = "tomotopy" in curves[0]
    for at, seconds in enumerate(_judged(text, effort)):
        ours = np.array([curve["ours"][at] for curve in curves])
        name = (
            f"{text.title}, from {text.n_topics} topics: perplexity after {seconds:g} CPU seconds"
        )
        if is_there:
            theirs = np.array([curve["tomotopy"][at] for curve in curves])
            yield Row(
                name=f"{name} over tomotopy's",
                measured=float(np.median(ours / theirs)),
                unit="x",
                must=1.0,
                larger_is_better=False,
                rivals=f"tomotopy {_median_and_range(theirs)}",
                note=_median_and_range(ours),
            )
        else:
            note = _median_and_range(ours) + _missing("tomotopy")
            yield Row(name=f"{name} over tomotopy's", measured=None, unit="x", note=note)


def _against_gensim(
    text: Text, split: Split, curves: list[dict[str, list[float]]], effort: Effort
) -> Iterator[Row]:
    """After one pass of gensim, and after as many as take no more time than ours."""
    longest = _judged(text, effort)[-1]
    ours = float(np.median([curve["ours"][-1] for curve in curves]))
    name = f"{text.title}: perplexity after {longest:g} CPU seconds over gensim's"
    gensim = installed("gensim.models")
    if gensim is None:
        yield Row(name=name, measured=None, unit="x", note="gensim is not installed")
        return
    n_passes = 1
    for what in ("one pass", "passes that take as long"):
        began = time.process_time()
        law = gensim_topics(gensim, split.rows, effort.seeds[0], n_passes)
        taken = time.process_time() - began
        theirs = perplexity(split.halves, *law)
        yield Row(
            name=f"{name}, {what}",
            measured=ours / theirs,
            unit="x",
            must=1.0,
            larger_is_better=False,
            rivals=f"gensim {theirs:.4g}, {n_passes} passes in {taken:.0f} CPU seconds",
            note=f"{ours:.4g}",
        )
        n_passes = max(1, int(longest / taken))


def _two_threads(text: Text, split: Split, effort: Effort) -> Iterator[Row]:
    """Two threads against one: by wall time, and by the CPU time of each thread."""
    n_sweeps = effort.n_sweeps
    with ThreadPoolExecutor(2) as pool:
        one, two = (Ours(split.rows, text.n_topics, 1, threads) for threads in (None, pool))
        for system in (one, two):
            system.advance(effort.n_early)
        calls: dict[str, Callable[[], object]] = {
            "one": partial(one.advance, n_sweeps), "two": partial(two.advance, n_sweeps)
        }  # fmt: skip
        others = Others()
        best = best_wall_seconds(calls, effort.turns, 0.0)
        taken = others.share()
        longest = []
        for _ in range(effort.turns):
            alone = seconds_of(calls["one"])
            began, own = time.process_time(), time.thread_time()
            calls["two"]()
            of_main = time.thread_time() - own
            of_threads = time.process_time() - began - of_main
            longest.append(alone / (of_main + of_threads / 2.0))
    if not np.array_equal(one.tokens().topics, two.tokens().topics):
        raise RuntimeError("two threads drew other topics than one.")
    name = f"{text.title}, from {text.n_topics} topics: two threads against one"
    yield Row(
        name=f"{name}, wall time",
        measured=best["one"] / best["two"] if taken < _MOST_TAKEN else None,
        unit="x",
        must=_MUST_OF_TWO_THREADS,
        note=f"{1e3 * best['one'] / n_sweeps:.1f} and {1e3 * best['two'] / n_sweeps:.1f} ms, while "
        f"other processes took {100.0 * taken:.0f} % of the cores",
    )
    yield Row(
        name=f"{name}, CPU time of the main thread and half of that of the two",
        measured=float(np.median(longest)),
        unit="x",
        must=_MUST_OF_TWO_THREADS,
        note=f"turns from {min(longest):.2f} to {max(longest):.2f}",
    )


def _not_there(title: str, file: str) -> Row:
    return Row(name=title, measured=None, note=why_not(file))


def _split_of(text: Text) -> Split | None:
    """Documents of a text, None if its file is not there."""
    path = path_of(text.file)
    return None if path is None else split_documents(sparse.load_npz(path).tocsr())


def rows_of(text: Text, effort: Effort) -> Iterator[Row]:
    """Speed, perplexities beside the others, and threads."""
    split = _split_of(text)
    if split is None:
        yield _not_there(text.title, text.file)
        return
    yield from _speed(text, split, effort)
    yield from _two_threads(text, split, effort)
    curves = [curve_of(split, text, seed, effort) for seed in effort.seeds]
    yield from _perplexities(text, curves, effort)
    yield from _against_gensim(text, split, curves, effort)


def speeds_of(text: Text, effort: Effort) -> Iterator[Row]:
    """Speed alone."""
    split = _split_of(text)
    if split is None:
        yield _not_there(text.title, text.file)
    else:
        yield from _speed(text, split, effort)


def _memory() -> Row:
    """Peak of a process that samples a large corpus, beyond its imports and its data."""
    name = "20 newsgroups: memory of pm.sample beyond imports and data"
    path = path_of(_LARGE)
    if path is None:
        return _not_there(name, _LARGE)
    command = [sys.executable, "-m", "benchmarks.topic_memory", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    beyond, data, n_tokens, n_topics = map(float, done.stdout.split())
    return Row(
        name=name,
        measured=beyond / 1e6,
        unit="MB",
        larger_is_better=False,
        note=f"{1e-6 * n_tokens:.2f} million tokens, {data / 1e6:.0f} MB of counts, from 50 "
        f"topics, {n_topics:.0f} at the end; peak resident memory of the process",
    )


def run() -> Iterator[Row]:
    """KOS, and the memory that a larger corpus takes."""
    yield from rows_of(KOS, _WHOLE)
    yield _memory()


if __name__ == "__main__":
    for row in rows_of(KOS, _SHORT):
        print(line_of(row), flush=True)
