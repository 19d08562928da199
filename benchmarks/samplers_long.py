"""Exact kernels on larger data: how fast each mixes, and whether its chains have met."""

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.mixing import Case
from benchmarks.row import Row
from benchmarks.samplers import rows_of_case, variants

_CASES = (Case("W2_1e4", 150, 150, None, None), Case("W3", 150, 150, None, None))
# CPU seconds of the control, all chains together.
_CONTROL = 20.0


def run() -> Iterator[Row]:
    """Kernel by kernel on each of the data."""
    for case in _CASES:
        compared = [of for of in variants() if of.is_exact]
        for row in rows_of_case(case, compared, _CONTROL):
            # So few draws do not decide whether a kernel is exact.
            yield replace(row, must=None)
