"""Mixing on data that are hard: overlapping clusters, flow cytometry, many clusters far apart."""

from collections.abc import Iterator

import arviz as az
import numpy as np

from benchmarks import workloads
from benchmarks.mixing import (
    CHAINS,
    Case,
    Traces,
    rows_against_control,
    sample,
    sample_control,
)
from benchmarks.row import Row

_STUDENT_T = Case("student_t", 1000, 1000, 4.0, 8.0)
_OVERLAPPING = Case("overlapping", 1000, 2000, 5.0, 10.0)
_FORTY = Case("forty", 1000, 1000, None, None)
_SEED = 11

_GVHD_SECONDS = 300.0
# Draws of tuning, a small part of the time; and more draws than there is time for.
_GVHD = Case("gvhd", 300, 20_000, None, None)


def _gvhd() -> Iterator[Row]:
    name = "gvhd: largest R-hat after 300 CPU seconds"
    try:
        workload = workloads.load("gvhd")
    except FileNotFoundError as missing:
        note = str(missing)
        yield Row(name=name, measured=None, must=1.05, aim=1.01, larger_is_better=False, note=note)
        return
    ours = sample(_GVHD, workload, _SEED, by_partitions=True, seconds=_GVHD_SECONDS / CHAINS)
    # The control's burn-in is a third as long as its draws.
    control = sample_control(workload, 0.75 * _GVHD_SECONDS, _SEED)
    yield Row(
        name=name,
        measured=ours.r_hat,
        must=1.05,
        aim=1.01,
        larger_is_better=False,
        rivals=f"{control.r_hat:.3f} (control)",
        note=f"{ours.k.shape[1]} draws of each chain, {ours.seconds_of_all:.0f} s; {_sizes(ours)}",
    )


def _sizes(traces: Traces) -> str:
    """Effective sizes of K and the log joint."""
    k, log_joint = (float(az.ess(trace)) for trace in (traces.k, traces.log_joint))
    return f"effective draws of K {k:.0f}, log joint {log_joint:.0f}"


def _forty() -> Iterator[Row]:
    workload = workloads.load("forty", _SEED)
    traces = sample(_FORTY, workload, _SEED, prior=(2.0, 4.0))
    yield Row(
        name="forty clusters: R-hat of K",
        measured=float(az.rhat(traces.k)) if np.ptp(traces.k) else 1.0,
        must=1.01,
        larger_is_better=False,
        note=f"largest of all quantities {traces.r_hat:.3f}; E[K] = {traces.k.mean():.2f}",
    )
    yield Row(
        name="forty clusters: effective draws of K", measured=float(az.ess(traces.k)), must=400.0
    )
    yield Row(
        name="forty clusters: CPU time",
        measured=traces.seconds_of_all,
        unit="s",
        aim=60.0,
        larger_is_better=False,
        note="four chains one after another, tuning included",
    )


def run() -> Iterator[Row]:
    """The two that are compared, then flow cytometry, then forty clusters."""
    for case in (_STUDENT_T, _OVERLAPPING):
        yield from rows_against_control(case)
    yield from _gvhd()
    yield from _forty()
