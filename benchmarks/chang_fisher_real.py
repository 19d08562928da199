"""Held-out density against time on images and texts (Chang & Fisher 2013, figure 5)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

import pymc_dpsplit as dps
from benchmarks.data_folder import path_of, why_not
from benchmarks.held_out_curves import (
    LINES,
    Curve,
    compile_all,
    curves_of,
    keep_curves,
    rows_of,
)
from benchmarks.held_out_rows import Split, divide, score_of, split_counts, split_vectors
from benchmarks.row import Row

SUBJECT = "chang_fisher_real"
_STARTS = (1, 50)
# CPU seconds of each kernel from each start.
_BUDGET = 15.0
_LEFT_OUT = ("SUBC+SUPC APPROX", "GIBBS+SUPC")
_LINES = tuple(line for line in LINES if line.name not in _LEFT_OUT)


class _Data(NamedTuple):
    """A file, how it is read, and how many of its rows are held out."""

    title: str
    file: str
    read: Callable[[str, int], Split]
    n_new: int


def _vectors(path: str, n_new: int) -> Split:
    """Rows with a prior from a part of them, which takes a while from all."""
    with np.load(path) as data:
        known, new = divide(data["X"].astype(np.float64), n_new)
    return split_vectors(known, new, dps.MvNormal.from_data(known[:10_000]))


def _counts(path: str, n_new: int) -> Split:
    known, new = divide(sparse.csr_array(sparse.load_npz(path)), n_new)
    return split_counts(known, new, dps.Multinomial.from_data(known))


_DATA = (
    _Data("MNIST", "mnist_pca50.npz", _vectors, 2000),
    _Data("AP", "ap_bow.npz", _counts, 225),
    _Data("NIPS", "nips17_bow.npz", _counts, 250),
    _Data("20 newsgroups", "newsgroups20_bow.npz", _counts, 500),
)


def _curves_on(split: Split, title: str) -> dict[str, list[Curve]]:
    """Curves of all kernels from both starts."""
    compile_all(split.small, _LINES)
    target = split.target
    score = partial(score_of, split, target)
    return {
        f"{title}, from {n_start}": curves_of(target, score, n_start, _BUDGET, _LINES)
        for n_start in _STARTS
    }


def run() -> Iterator[Row]:
    """Data set by data set; the level is the best end of any kernel from any start."""
    levels: dict[str, float] = {}
    curves: dict[str, list[Curve]] = {}
    for data in _DATA:
        path = path_of(data.file)
        if path is None:
            yield Row(name=data.title, measured=None, unit="s", note=why_not(data.file))
            continue
        found = _curves_on(data.read(str(path), data.n_new), data.title)
        level = max(curve.score[-1] for of in found.values() for curve in of)
        levels.update(dict.fromkeys(found, level))
        curves.update(found)
        keep_curves(SUBJECT, levels, curves)
        for setting, of in found.items():
            yield from rows_of(setting, of, level)
