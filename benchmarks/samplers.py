"""Every kernel through `pm.sample` on the same data: how fast it mixes, and where it ends."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from benchmarks import workloads
from benchmarks.mixing import Case, Pair, Traces, rates, sample, sample_control
from benchmarks.row import Row
from pymc_dpsplit import sampler

# All kernels on the first, and those that are exact on the others.
_CASES = (
    Case("galaxies", 500, 1500, None, None),
    Case("faithful", 500, 1000, None, None),
    Case("W2_1e3", 500, 500, None, None),
)
_SEED = 14
# CPU seconds of the control, all chains together.
_CONTROL = 4.0


class _Variant(NamedTuple):
    """A kernel with options, and whether it is exact with them."""

    kernel: str
    options: dict[str, Any]
    is_exact: bool

    @property
    def name(self) -> str:
        """Kernel and options."""
        of = ", ".join(f"{option}={value}" for option, value in self.options.items())
        return f"{self.kernel} with {of}" if of else self.kernel


def variants() -> list[_Variant]:
    """Kernels by name, the default first, then what options make of them."""
    published = sampler.SAMPLERS
    plain = [
        _Variant(name, {}, name not in published or published[name].is_exact)
        for name in ("auto", *sampler.KERNELS)
    ]
    return [
        *plain,
        _Variant("av-parallel", {"shares": [4, 3, 2, 1]}, True),
        _Variant("chang-fisher", {"repaired": True}, True),
    ]


def rows_of_kernel(case: Case, variant: _Variant, traces: Traces, control: Traces) -> Iterator[Row]:
    """Speed and deviation of one kernel."""
    ours, theirs = rates(traces), rates(control)
    others = "; ".join(
        f"{title} {ours[of]:.3g} : {theirs[of]:.3g}"
        for of, title in (("log_joint", "log joint"), ("worst_point", "density"))
    )
    yield Row(
        name=f"{case.name}, {variant.name}: K",
        measured=ours["k"] / theirs["k"],
        unit="x",
        note=f"{ours['k']:.3g} : {theirs['k']:.3g} per s; {others}; R-hat {traces.r_hat:.3f}",
    )
    yield Row(
        name=f"{case.name}, {variant.name}: E[K] less that of the control",
        measured=Pair(traces, control).gap,
        unit="s.e.",
        must=4.5 if variant.is_exact else None,
        larger_is_better=False,
        note=f"{traces.k.mean():.3f} and {control.k.mean():.3f}"
        + ("" if variant.is_exact else "; not exact, see docs/samplers.md"),
    )


def rows_of_case(case: Case, compared: Iterable[_Variant], seconds: float) -> Iterator[Row]:
    """Compare kernels on the same data with one run of the control, of so many CPU seconds."""
    workload = workloads.load(case.name, _SEED)
    control = sample_control(workload, seconds, _SEED)
    for variant in compared:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a kernel is not exact
            traces = sample(case, workload, _SEED, True, variant.kernel, **variant.options)
        yield from rows_of_kernel(case, variant, traces, control)


def run() -> Iterator[Row]:
    """Kernel by kernel on each of the data."""
    for case in _CASES:
        compared = [of for of in variants() if of.is_exact or case is _CASES[0]]
        yield from rows_of_case(case, compared, _CONTROL)
