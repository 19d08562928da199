"""Exact kernels on larger data: how fast each mixes, and whether its chains have met."""

import warnings
from collections.abc import Iterator
from dataclasses import replace

from benchmarks import workloads
from benchmarks.mixing import Case, sample, sample_control
from benchmarks.row import Row
from benchmarks.samplers import rows_of_kernel, variants

_CASES = (Case("W2_1e4", 150, 150, None, None), Case("W3", 150, 150, None, None))
_SEED = 14
# CPU seconds of the control, all chains together.
_CONTROL = 20.0


def run() -> Iterator[Row]:
    """Kernel by kernel on each of the data."""
    for case in _CASES:
        workload = workloads.load(case.name, _SEED)
        control = sample_control(workload, _CONTROL, _SEED)
        for variant in (of for of in variants() if of.is_exact):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                traces = sample(case, workload, _SEED, True, variant.kernel, **variant.options)
            for row in rows_of_kernel(case, variant, traces, control):
                # So few draws do not decide whether a kernel is exact.
                yield replace(row, must=None)
