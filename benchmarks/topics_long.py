"""Topics of a larger corpus: as `topics.py`, one seed, and more CPU time for each system."""

from collections.abc import Iterator

import numpy as np

from benchmarks.row import Row
from benchmarks.topics import Effort, Text, rows_of

NIPS = Text("NIPS", "nips17_bow.npz", (30.0, 100.0), 100)
_EFFORT = Effort(seeds=(1,), n_early=20, n_sweeps=2, turns=5, longest=np.inf)


def run() -> Iterator[Row]:
    """NIPS."""
    yield from rows_of(NIPS, _EFFORT)
