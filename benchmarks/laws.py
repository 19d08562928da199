"""Laws of the partition: what a sweep costs under each, and galaxies against the control.

Sweeps of all laws are in one process, in turns, from one state, by CPU time.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pymc as pm
from scipy import stats

import pymc_dpsplit as dps
from benchmarks.mfm_control import draw_numbers
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target, prior_of_components, with_moved_strength
from benchmarks.timing import cpu_seconds
from benchmarks.workloads import load, spheres
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, finite_mixture

_N_OBS, _N_CLUSTERS, _TURNS = 100_000, 10, 9
_MOST = 1.5
# Rates of the Poisson distribution of the number of components less one.
_RATE, _GAMMA = 9.0, 1.0


def run() -> Iterator[Row]:
    """Ratios of sweeps, then distances between laws of numbers."""
    yield from _sweeps()
    yield from _galaxies()


def _sweeps() -> Iterator[Row]:
    rows, labels, _ = spheres(_N_OBS, 2, _N_CLUSTERS, 4.0)
    target = make_target(rows, dps.MvNormal.from_data(rows))

    def sweep_of(law: PartitionLaw) -> Callable[[], object]:
        return Chain(target._replace(law=law), labels).sweep

    with_components = Chain(target._replace(law=finite_mixture(_GAMMA, 12)), labels)
    prior = prior_of_components(_GAMMA, lambda: 1 + pm.Poisson.dist(_RATE))
    calls = {
        "Dirichlet process": sweep_of(dirichlet_process(1.0)),
        "Pitman-Yor, discount 0.1": sweep_of(PartitionLaw(0.1, 1.0)),
        "Pitman-Yor, discount 0.2": sweep_of(PartitionLaw(0.2, 1.0)),
        "12 components": sweep_of(finite_mixture(_GAMMA, 12)),
        "MFM, with its move of M": lambda: with_moved_strength(with_components, prior),
    }
    taken = {name: np.empty(_TURNS) for name in calls}
    for call in calls.values():
        call()
    for turn in range(_TURNS):
        for name, call in calls.items():
            taken[name][turn] = cpu_seconds(call)
    (_, own), *others = taken.items()
    for name, seconds in others:
        ratios = seconds / own
        yield Row(
            name=f"sweep: {name}, over a Dirichlet process",
            measured=float(np.median(ratios)),
            unit="x",
            must=_MOST,
            larger_is_better=False,
            note=f"{1e3 * np.median(seconds):.1f} and {1e3 * np.median(own):.1f} ms; "
            f"turns from {ratios.min():.2f} to {ratios.max():.2f}",
        )


def _galaxies() -> Iterator[Row]:
    """Numbers of components and of clusters, the package against the control."""
    rows = load("galaxies").rows[:, 0]
    hyperparameters = (20.0, 0.02, 2.0, 1.0)
    numbers = np.arange(31)
    uniform = stats.randint(1, 31).pmf(numbers)
    found = sampled_numbers(rows, hyperparameters, lambda: pm.DiscreteUniform.dist(1, 30))
    control = draw_numbers(rows, hyperparameters, _GAMMA, uniform, 200_000, 1)
    for name, ours, theirs in zip(("clusters", "components"), found, control, strict=True):
        own, other = (
            np.bincount(np.ravel(of), minlength=83) / np.size(of) for of in (ours, theirs)
        )
        shown = ", ".join(f"{k}: {own[k]:.2f} ({other[k]:.2f})" for k in range(3, 12))
        yield Row(
            name=f"galaxies: number of {name}, total variation from the control",
            measured=float(0.5 * np.abs(own - other).sum()),
            must=0.03,
            larger_is_better=False,
            note=f"P of each number here (control): {shown}",
        )


def sampled_numbers(rows: np.ndarray, hyperparameters: Any, prior: Any) -> tuple[Any, Any]:
    """Draw numbers of clusters and of components through `pm.sample`."""
    with pm.Model():
        family = dps.Normal(*hyperparameters)
        dps.MFMixture("x", _GAMMA, family, n_components=prior(), observed=rows)
        idata = pm.sample(
            4000, tune=500, chains=4, cores=1, random_seed=1, progressbar=False,
            compute_convergence_checks=False,
        )  # fmt: skip
    posterior = idata["posterior"]
    return posterior["x_n_clusters"].to_numpy(), posterior["x_n_components"].to_numpy()
