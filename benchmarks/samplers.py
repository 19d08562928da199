"""Every kernel through `pm.sample` on the same small data: how fast it mixes, and where it ends."""

import warnings
from collections.abc import Iterator

from benchmarks import workloads
from benchmarks.mixing import Case, Pair, Traces, rates, sample, sample_control
from benchmarks.row import Row
from pymc_dpsplit import sampler

_CASES = (Case("galaxies", 500, 1500, None, None),)
_SEED = 14
# CPU seconds of the control, all chains together.
_CONTROL = 4.0


def _names() -> list[str]:
    """Kernels by name, the default first."""
    return ["auto", *sampler.KERNELS]


def rows_of_kernel(case: Case, kernel: str, traces: Traces, control: Traces) -> Iterator[Row]:
    """Speed and deviation of one kernel."""
    published = sampler.SAMPLERS.get(kernel)
    is_exact = published is None or published.is_exact
    ours, theirs = rates(traces), rates(control)
    yield Row(
        name=f"{case.name}, {kernel}: K",
        measured=ours["k"] / theirs["k"],
        unit="x",
        note=f"{ours['k']:.3g} : {theirs['k']:.3g} per s; log joint {ours['log_joint']:.3g} : "
        f"{theirs['log_joint']:.3g}; R-hat {traces.r_hat:.3f}",
    )
    yield Row(
        name=f"{case.name}, {kernel}: E[K] less that of the control",
        measured=Pair(traces, control).gap,
        unit="s.e.",
        must=4.5 if is_exact else None,
        larger_is_better=False,
        note=f"{traces.k.mean():.3f} and {control.k.mean():.3f}"
        + ("" if is_exact else "; not exact, see docs/samplers.md"),
    )


def run() -> Iterator[Row]:
    """All kernels on the same data."""
    for case in _CASES:
        workload = workloads.load(case.name, _SEED)
        control = sample_control(workload, _CONTROL, _SEED)
        for kernel in _names():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that a kernel is not exact
                traces = sample(case, workload, _SEED, by_partitions=True, kernel=kernel)
            yield from rows_of_kernel(case, kernel, traces, control)
