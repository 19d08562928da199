"""Topics: tokens per second, and perplexity of held-out documents against CPU time.

The variable `DPSPLIT_DATA` names the folder of the documents.  All systems are in one process, in
turns.  `python -m benchmarks.topics` prints a short version.
"""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.heldout import Split, law_of_tokens, perplexity, split_documents
from benchmarks.multinomial import DATA_VARIABLE
from benchmarks.row import Row, line_of
from benchmarks.topic_systems import Ours, System, Tomotopy, gensim_topics, installed

_MUST, _AIM = 1.5, 3.0


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


TEXTS = (
    Text("KOS", "kos_bow.npz", (5.0, 15.0, 60.0), 50),
    Text("NIPS", "nips17_bow.npz", (30.0, 100.0, 300.0), 100),
)
_STARTS = 50, 100
_WHOLE = Effort((1, 2, 3), 40, 4, 5, np.inf)
_SHORT = Effort((1, 2), 5, 2, 3, 15.0)


def _seconds_of(call: Callable[[], object]) -> float:
    """CPU seconds of a call, in all threads of this process."""
    began = time.process_time()
    call()
    return time.process_time() - began


def _systems(split: Split, n_topics: int, seed: int) -> dict[str, System]:
    systems: dict[str, System] = {"ours": Ours(split.rows, n_topics, seed)}
    tomotopy = installed("tomotopy")
    if tomotopy is not None:
        systems["tomotopy"] = Tomotopy(tomotopy, split.rows, n_topics, seed)
    return systems


def _median_and_range(values: Any) -> str:
    return f"{np.median(values):.4g} ({np.min(values):.4g} to {np.max(values):.4g})"


def _rates(split: Split, n_topics: int, seed: int, effort: Effort) -> dict[str, float]:
    """Million tokens that each system redraws in a CPU second: the median over turns."""
    systems = _systems(split, n_topics, seed)
    for system in systems.values():
        system.advance(effort.n_early)
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(effort.turns):
        for name, system in systems.items():
            taken[name].append(_seconds_of(partial(system.advance, effort.n_sweeps)))
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


def _curve(split: Split, text: Text, seed: int, effort: Effort) -> dict[str, list[float]]:
    """Perplexities of each system when it has used as much CPU time as is wanted."""
    wanted = [seconds for seconds in text.seconds if seconds <= effort.longest]
    systems = _systems(split, text.n_topics, seed)
    used = dict.fromkeys(systems, 0.0)
    found: dict[str, list[float]] = {name: [] for name in systems}
    for seconds in wanted:
        # The one that has used least goes on, so that all see the same machine.
        while min(used.values()) < seconds:
            name = min(used, key=lambda of: used[of])
            used[name] += _seconds_of(partial(systems[name].advance, 1))
        for name, system in systems.items():
            law = law_of_tokens(system.tokens(), split.rows.shape[1])
            found[name].append(perplexity(split.halves, *law))
    return found


def _perplexities(text: Text, split: Split, effort: Effort) -> Iterator[Row]:
    curves = [_curve(split, text, seed, effort) for seed in effort.seeds]
    is_there = "tomotopy" in curves[0]
    for at, seconds in enumerate(text.seconds):
        if seconds > effort.longest:
            continue
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


def _of_gensim(text: Text, split: Split, effort: Effort) -> Row:
    name = f"{text.title}: perplexity of one pass of gensim's HdpModel"
    gensim = installed("gensim.models")
    if gensim is None:
        return Row(name=name, measured=None, note="gensim is not installed")
    found, taken = [], []
    for seed in effort.seeds:
        began = time.process_time()
        law = gensim_topics(gensim, split.rows, seed)
        taken.append(time.process_time() - began)
        found.append(perplexity(split.halves, *law))
    note = f"CPU seconds {_median_and_range(taken)}; {_median_and_range(found)}"
    return Row(name=name, measured=float(np.median(found)), larger_is_better=False, note=note)


def _rows(texts: tuple[Text, ...], effort: Effort) -> Iterator[Row]:
    folder = Path(os.environ.get(DATA_VARIABLE, ""))
    folder = folder if folder.is_dir() else folder.parent
    for text in texts:
        path = folder / text.file
        if DATA_VARIABLE not in os.environ or not path.exists():
            note = f"the variable {DATA_VARIABLE} names no folder with {text.file}"
            yield Row(name=text.title, measured=None, note=note)
            continue
        split = split_documents(sparse.load_npz(path).tocsr())
        yield from _speed(text, split, effort)
        yield from _perplexities(text, split, effort)
        yield _of_gensim(text, split, effort)


def run() -> Iterator[Row]:
    """Speed, then perplexities, text by text."""
    yield from _rows(TEXTS, _WHOLE)


if __name__ == "__main__":
    for row in _rows(TEXTS[:1], _SHORT):
        print(line_of(row), flush=True)
