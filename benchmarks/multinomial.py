"""Counts of words: a sweep against the matrix product it cannot do without, and real texts."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pymc as pm
from scipy import sparse

import pymc_dpsplit as dps
from benchmarks.catalogue import ROOT
from benchmarks.data_folder import path_of, why_not
from benchmarks.memory import resident
from benchmarks.row import Row
from benchmarks.subject import Chain, make_sparse_target
from benchmarks.timing import cpu_seconds, median_seconds

_N_OBS, _N_COLUMNS, _N_ENTRIES, _N_CLUSTERS = 100_000, 10_000, 100, 50
_ITERATIONS = 20
_DRAWS = 20


class Text(NamedTuple):
    """A file of documents; most megabytes a process that fits it may hold."""

    title: str
    file: str
    most: float | None = None


TEXTS = (
    Text("AP, 2,246 x 10,473", "ap_bow.npz"),
    Text("20 newsgroups, 18,774 x 55,911", "newsgroups20_bow.npz", 4295.0),
)


def documents(seed: int = 0) -> tuple[sparse.csr_array, np.ndarray]:
    """Rows of 100 different words of 10,000, with one to three counts each; and their clusters."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(_N_COLUMNS, 0.1), _N_CLUSTERS)
    labels = rng.integers(_N_CLUSTERS, size=_N_OBS)
    # The words that come first in a race have the law of draws without replacement.
    words = np.empty((_N_OBS, _N_ENTRIES), np.int32)
    for k in range(_N_CLUSTERS):
        own = np.flatnonzero(labels == k)
        for block in np.array_split(own, 20):
            times = rng.standard_exponential((len(block), _N_COLUMNS), np.float32) / p[k]
            words[block] = np.argpartition(times, _N_ENTRIES, axis=1)[:, :_N_ENTRIES]
    counts = rng.integers(1, 4, words.size).astype(np.float64)
    indptr = np.arange(0, words.size + 1, _N_ENTRIES)
    made = sparse.csr_array((counts, words.ravel(), indptr), shape=(_N_OBS, _N_COLUMNS))
    made.sort_indices()
    return made, labels


def _against_product() -> Row:
    rows, labels = documents()
    chain = Chain(make_sparse_target(rows, dps.Multinomial(0.1)), labels)
    table = np.random.default_rng(1).random((_N_COLUMNS, _N_CLUSTERS))
    product = median_seconds(lambda: rows @ table)
    ours = median_seconds(chain.sweep)
    per_row = 1e9 / _N_OBS
    return Row(
        name="100,000 rows of 100 non-zeros in 10,000, K = 50: sweep against the product alone",
        measured=product / ours,
        unit="x",
        must=1.4,
        aim=2.0,
        note=f"{ours * per_row:.0f} ns per row, SciPy's sparse product {product * per_row:.0f}",
    )


def fit(path: Path) -> None:
    """Fit a file of documents from one cluster and print CPU seconds, K and megabytes."""
    rows = sparse.load_npz(path)
    chain = Chain(make_sparse_target(rows, dps.Multinomial.from_data(rows)), n_start=1)
    chain.iterate(greedy=True)
    for iteration in range(_ITERATIONS):
        if iteration % 10 == 0:
            chain.replan()
        chain.iterate(greedy=iteration < _ITERATIONS // 2)
    iteration_time, sweep_time = cpu_seconds(chain.iterate), median_seconds(chain.sweep)
    print(sweep_time, iteration_time, chain.n_clusters, _peak_megabytes())


def sample(path: Path) -> None:
    """Fit it by `pm.sample`, as a user does, and print CPU seconds a draw, K and megabytes."""
    rows = sparse.load_npz(path)
    with pm.Model():
        alpha = pm.Gamma("alpha", 2.0, 0.2)
        dps.DPMixture("x", alpha, dps.Multinomial.from_data(rows), observed=rows)

        def draw(n: int) -> int:
            idata = pm.sample(
                draws=n, tune=n, chains=1, cores=1, random_seed=1, progressbar=False, quiet=True,
                var_names=["alpha", "x_n_clusters", "x_weights", "x_new_weight"],
                dpsplit={"keep_labels": True}, compute_convergence_checks=False,
            )  # fmt: skip
            return int(idata["posterior"]["x_n_clusters"][0, -1])

        draw(1)
        began = time.process_time()
        n_clusters = draw(_DRAWS)
    print((time.process_time() - began) / (2 * _DRAWS), n_clusters, _peak_megabytes())


def _peak_megabytes() -> float:
    return 1e-6 * resident("VmHWM")


def _printed_by(path: Path, what: str) -> list[float]:
    """Numbers that a process of its own prints, whose memory is that of this work alone."""
    command = [sys.executable, "-m", "benchmarks.multinomial", what, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return [float(word) for word in done.stdout.split()]


def _text(text: Text) -> Iterator[Row]:
    path, name = path_of(text.file), f"{text.title}: one sweep"
    if path is None:
        yield Row(name=name, measured=None, unit="ms", note=why_not(text.file))
        return
    sweep, iteration, n_clusters, peak = _printed_by(path, "fit")
    yield Row(
        name=name,
        measured=1e3 * sweep,
        unit="ms",
        larger_is_better=False,
        note=f"one thread, after {_ITERATIONS} iterations from one cluster, K = {n_clusters:.0f}; "
        f"a whole iteration {1e3 * iteration:.0f} ms",
    )
    yield Row(
        name=f"{text.title}: peak memory",
        measured=peak,
        unit="MB",
        must=text.most,
        larger_is_better=False,
        note="resident, imports and data included",
    )
    seconds, n_clusters, peak = _printed_by(path, "sample")
    yield Row(
        name=f"{text.title}: one draw of pm.sample",
        measured=1e3 * seconds,
        unit="ms",
        larger_is_better=False,
        note=f"CPU time of one chain, mean of {_DRAWS} draws and as many of tuning; at the end "
        f"K = {n_clusters:.0f}",
    )
    yield Row(
        name=f"{text.title}: peak memory of pm.sample",
        measured=peak,
        unit="MB",
        must=text.most,
        larger_is_better=False,
        note="the same, with the trace of labels",
    )


def run() -> Iterator[Row]:
    """The ratio, then the texts."""
    yield _against_product()
    for text in TEXTS:
        yield from _text(text)


if __name__ == "__main__":
    {"fit": fit, "sample": sample}[sys.argv[1]](Path(sys.argv[2]))
