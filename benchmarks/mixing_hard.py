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

_GVHD_SECONDS, _GVHD_SEEDS = 300.0, 3
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
    seconds = _GVHD_SECONDS / CHAINS
    runs = []
    for seed in range(_SEED, _SEED + _GVHD_SEEDS):
        ours = sample(_GVHD, workload, seed, by_partitions=True, seconds=seconds)
        # The control's burn-in is a third as long as its draws.
        runs.append((ours, sample_control(workload, 0.75 * _GVHD_SECONDS, seed)))
    each = ", ".join(f"{ours.r_hat:.3f} : {control.r_hat:.3f}" for ours, control in runs)
    yield Row(
        name=name,
        measured=float(np.median([ours.r_hat for ours, _ in runs])),
        must=1.05,
        aim=1.01,
        larger_is_better=False,
        rivals=f"{np.median([control.r_hat for _, control in runs]):.3f} (control)",
        note=f"with each seed, ours : control: {each}; {_sizes([ours for ours, _ in runs])}",
    )


def _sizes(runs: list[Traces]) -> str:
    """Effective sizes of K and the log joint, of the chains of each run together."""
    sizes = [
        ", ".join(f"{az.ess(trace):.0f}" for trace in traces)
        for traces in ([run.k for run in runs], [run.log_joint for run in runs])
    ]
    return f"effective draws of K {sizes[0]}, of the log joint {sizes[1]}"


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
