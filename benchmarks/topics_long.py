"""Topics of a larger corpus: as `topics.py`, one seed, and more CPU time for each system."""

from collections.abc import Iterator

import numpy as np

from benchmarks.row import Row
from benchmarks.topics import Effort, Text, rows_of, speeds_of

NIPS = Text("NIPS", "nips17_bow.npz", (30.0, 100.0), 100)
_EFFORT = Effort(seeds=(1,), n_early=20, n_sweeps=2, turns=5, longest=np.inf)
NEWSGROUPS = Text("20 newsgroups", "newsgroups20_bow.npz", (), 50)


def run() -> Iterator[Row]:
    """NIPS, and the speed of newsgroups."""
    yield from rows_of(NIPS, _EFFORT)
    yield from speeds_of(NEWSGROUPS, _EFFORT)
