"""Mixing at 100,000 rows: do four over-dispersed chains agree within twenty CPU minutes?"""

from collections.abc import Iterator

from benchmarks import workloads
from benchmarks.mixing import Case, rows_of, sample
from benchmarks.row import Row

_CASE = Case("W2_1e5", 1000, 4000, None, 5.0)
_MINUTES = 20.0


def run() -> Iterator[Row]:
    """Agreement, the time it took, and the rates."""
    traces = sample(_CASE, workloads.load(_CASE.name))
    yield Row(
        name="W2_1e5: R-hat",
        measured=traces.r_hat,
        must=1.02,
        larger_is_better=False,
        rivals="none converges",
        note=f"{traces.k.shape[1]} draws of each chain; E[K] = {traces.k.mean():.2f}",
    )
    yield Row(
        name="W2_1e5: CPU time",
        measured=traces.seconds_of_all / 60.0,
        unit="min",
        must=_MINUTES,
        larger_is_better=False,
    )
    yield from rows_of(_CASE, traces)
