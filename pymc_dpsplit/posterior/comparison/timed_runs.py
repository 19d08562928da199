"""Timed runs of samplers, with compilation and sampling timed separately."""

import importlib
import importlib.util
import os
from typing import Any, NamedTuple

import pymc as pm
import xarray as xr
from pymc.model import Model

NUTPIE = "nutpie"


class Settings(NamedTuple):
    """Settings of all runs; only NUTS uses `target_accept`."""

    draws: int
    tune: int
    chains: int
    cores: int
    target_accept: float


class Run(NamedTuple):
    """A trace, and seconds: before sampling, and of sampling by wall clock and CPU."""

    trace: xr.DataTree
    compile_s: float
    wall_s: float
    cpu_s: float


class _Stopwatch:
    """Callback of `pm.sample` that records the times of the first and last draw."""

    def __init__(self) -> None:
        self.begun = self.first = self.last = os.times()
        self.is_running = False

    def __call__(self, *_: Any, **__: Any) -> None:
        self.last = os.times()
        if not self.is_running:
            self.first, self.is_running = self.last, True


def can_run_nutpie() -> bool:
    """Return whether nutpie, an optional dependency, is installed."""
    return importlib.util.find_spec(NUTPIE) is not None


def run_pymc(model: Model, settings: Settings, seed: int) -> Run:
    """Sample a model by `pm.sample`, with the step of the mixture or with NUTS.

    Parameters
    ----------
    model : pymc.Model
    settings : Settings
    seed : int

    Returns
    -------
    Run
    """
    watch = _Stopwatch()
    is_nuts = not any(str(rv.name).endswith("_n_clusters") for rv in model.free_RVs)
    options: dict[str, Any] = {"target_accept": settings.target_accept} if is_nuts else {}
    if not is_nuts:
        _load_kernels(model)
    trace = pm.sample(
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=settings.cores,
        random_seed=seed,
        nuts_sampler="pymc",
        model=model,
        callback=watch,
        progressbar=False,
        quiet=True,
        compute_convergence_checks=False,
        **options,
    )
    ended = os.times()
    # The operating system counts child processes, which sample the chains, once they have ended.
    children = _seconds_of_children(ended) - _seconds_of_children(watch.begun)
    own = _seconds(watch.last) - _seconds(watch.first)
    return Run(
        trace,
        watch.first.elapsed - watch.begun.elapsed,
        watch.last.elapsed - watch.first.elapsed,
        own + children,
    )


def _load_kernels(model: Model) -> None:
    """Compile the kernels of the step before the timed run."""
    pm.sample(
        draws=1,
        tune=2,
        chains=1,
        cores=1,
        random_seed=0,
        model=model,
        progressbar=False,
        quiet=True,
        compute_convergence_checks=False,
    )


def run_nutpie(model: Model, settings: Settings, seed: int) -> Run:
    """Sample a model by nutpie, which runs chains in threads.

    Parameters
    ----------
    model : pymc.Model
    settings : Settings
    seed : int

    Returns
    -------
    Run
    """
    nutpie: Any = importlib.import_module(NUTPIE)
    begun = os.times()
    compiled = nutpie.compile_pymc_model(model)
    first = os.times()
    trace = nutpie.sample(
        compiled,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=settings.cores,
        seed=seed,
        target_accept=settings.target_accept,
        save_warmup=False,
        progress_bar=False,
    )
    last = os.times()
    return Run(
        trace,
        first.elapsed - begun.elapsed,
        last.elapsed - first.elapsed,
        _seconds(last) - _seconds(first),
    )


def _seconds(times: os.times_result) -> float:
    return times.user + times.system


def _seconds_of_children(times: os.times_result) -> float:
    return times.children_user + times.children_system
