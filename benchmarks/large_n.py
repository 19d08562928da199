"""Many observations: iterations by CPU time, memory, and what PyMC adds to our kernels."""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pymc as pm

import pymc_dpsplit as dps
from benchmarks.catalogue import ROOT
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.timing import cpu_seconds, median_seconds
from benchmarks.workloads import spheres
from pymc_dpsplit import sampler

_DRAWS = 100


def _million() -> Row:
    rows, labels, _ = spheres(1_000_000, 2, 10, 4.0)
    chain = Chain(make_target(rows, dps.MvNormal.from_data(rows)), labels)
    chain.iterate()
    return Row(
        name="N = 1e6, D = 2, K = 10: 100 iterations",
        measured=cpu_seconds(lambda: chain.iterate(100)),
        unit="s",
        must=25.0,
        aim=12.0,
        larger_is_better=False,
        rivals="published for the sub-cluster sampler: 77 s on one core, 13 s on eight",
        note=f"one thread, from the true labels; K = {chain.n_clusters} at the end",
    )


def _hundred_clusters() -> Row:
    rows, labels, _ = spheres(100_000, 50, 100, 4.0)
    chain = Chain(make_target(rows, dps.MvNormal.from_data(rows)), labels)
    return Row(
        name="N = 1e5, D = 50, K = 100: one iteration",
        measured=median_seconds(chain.iterate),
        unit="s",
        must=1.2,
        aim=0.5,
        larger_is_better=False,
        note=f"one thread; K = {chain.n_clusters} at the end",
    )


def _timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        done = function(*args, **kwargs)
        spent.append(time.perf_counter() - began)
        return done

    return timed


def _outside_kernels() -> Row:
    """Wall time of draws less that in the two functions of the chain that do the work."""
    rows, labels, _ = spheres(100_000, 2, 10, 4.0)
    at: list[tuple[float, float]] = []
    spent: list[float] = []
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with (
        pm.Model(),
        mock.patch.object(sampler, "advance", _timed(sampler.advance, spent)),
        mock.patch.object(sampler, "measure", _timed(sampler.measure, spent)),
    ):
        alpha = pm.Gamma("alpha", 2.0, 4.0)
        dps.DPMixture("x", alpha, dps.MvNormal.from_data(rows), observed=rows)
        pm.sample(
            draws=_DRAWS,
            tune=60,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
            callback=lambda **_: at.append((time.perf_counter(), sum(spent))),
            dpsplit={"start_labels": labels},
        )
    (first, inside_first), (last, inside_last) = at[-1 - _DRAWS], at[-1]
    share = 1.0 - (inside_last - inside_first) / (last - first)
    return Row(
        name="N = 1e5, D = 2: share of time outside the kernels",
        measured=100.0 * share,
        unit="%",
        must=5.0,
        aim=2.0,
        larger_is_better=False,
        note=f"{1e3 * (last - first) / _DRAWS:.1f} ms per draw, alpha sampled by NUTS",
    )


def _memory() -> Row:
    name = "N = 1e6, D = 50, 2 chains: memory beyond the data"
    if not Path("/proc/self/clear_refs").exists():
        return Row(name=name, measured=None, unit="MB", note="the system does not tell")

    def child(n_obs: int) -> int:
        command = [sys.executable, "-m", "benchmarks.memory", str(n_obs), "50", "2"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
        return int(done.stdout)

    child(10_000)  # compiles, in several strips
    return Row(
        name=name,
        measured=child(1_000_000) / 1e6,
        unit="MB",
        must=200.0,
        aim=64.0,
        larger_is_better=False,
        note="the data are 400 MB",
    )


def run() -> Iterator[Row]:
    """Time, then what is added to it."""
    yield _million()
    yield _hundred_clusters()
    yield _outside_kernels()
    yield _memory()
