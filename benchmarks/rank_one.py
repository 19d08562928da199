"""Collapsed Gibbs for full covariances by rank-one updates, against whole factorisations.

The algorithm of Das (2014): every observation leaves its cluster, the predictive densities of all
clusters and of a new one are computed, and it joins one.  A cluster keeps the factor of its matrix,
which an observation changes by a matrix of rank one: O(D^2), and O(D^3) if it is factorised anew.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.timing import cpu_seconds
from benchmarks.workloads import spheres
from pymc_dpsplit import sampler
from pymc_dpsplit.components.base import (
    add_row,
    fill_predictive,
    log_predictive,
    predictive_add,
    predictive_remove,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at

_N_CLUSTERS = 5
# Features, and observations that are visited in a turn.
_VISITS = {2: 4000, 8: 4000, 32: 1000, 128: 100, 500: 10}
_TURNS = 5


@jitted
def _change(
    prior: Any,
    data: np.ndarray,
    i: int,
    sign: float,
    stats: np.ndarray,
    cache: np.ndarray,
    is_whole: bool,
) -> None:
    """Let an observation join (1) or leave (-1) a cluster."""
    one = np.zeros(stats_size(prior))
    add_row(prior, data, i, one)
    for j in range(one.shape[0]):
        stats[j] += sign * one[j]
    if is_whole:
        fill_predictive(prior, stats, cache)
    elif sign > 0.0:
        predictive_add(prior, data, i, cache)
    else:
        predictive_remove(prior, data, i, cache)


@jitted
def visits(
    target: sampler.Target,
    labels: np.ndarray,
    stats: np.ndarray,
    caches: np.ndarray,
    n_visits: int,
    is_whole: bool,
    rng: np.random.Generator,
) -> None:
    """Visit the first observations; one that would found a cluster stays where it was.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    caches : ndarray of float64, shape (K + 1, C)
        The last is that of a cluster without observations.
    n_visits : int
    is_whole : bool
        Whether matrices are factorised anew.
    rng : numpy.random.Generator
    """
    prior, data = target.prior, target.data
    n_clusters = stats.shape[0]
    mass = np.empty(n_clusters + 1)
    for i in range(n_visits):
        own = labels[i]
        _change(prior, data, i, -1.0, stats[own], caches[own], is_whole)
        for k in range(n_clusters):
            mass[k] = math.log(stats[k, 0]) + log_predictive(prior, data, i, caches[k])
        mass[n_clusters] = log_predictive(prior, data, i, caches[n_clusters])
        k = categorical_at(rng.random(), np.exp(mass - mass.max()))
        labels[i] = own if k == n_clusters else k
        _change(prior, data, i, 1.0, stats[labels[i]], caches[labels[i]], is_whole)


@jitted
def caches_of(prior: Any, stats: np.ndarray) -> np.ndarray:
    """Caches of clusters, and of one without observations, shape (K + 1, C)."""
    n_clusters = stats.shape[0]
    caches = np.empty((n_clusters + 1, predictive_size(prior)))
    for k in range(n_clusters):
        fill_predictive(prior, stats[k], caches[k])
    fill_predictive(prior, np.zeros(stats_size(prior)), caches[n_clusters])
    return caches


def _microseconds(n_features: int, n_visits: int) -> np.ndarray:
    """Time per visit (turn, rank one and whole)."""
    n_rows = max(n_visits, 4 * n_features, 100)
    rows, labels, _ = spheres(n_rows, n_features, _N_CLUSTERS, 4.0)
    component = dps.MvNormal(np.zeros(n_features), 0.1, n_features + 2, np.eye(n_features))
    target = make_target(rows, component)
    state = sampler.resume(target, np.unique(labels, return_inverse=True)[1])
    rng = np.random.default_rng(1)
    caches = caches_of(target.prior, state.stats)

    def run(is_whole: bool, n: int = n_visits) -> None:
        own = state.labels.copy(), state.stats.copy(), caches.copy()
        visits(target, *own, n, is_whole, rng)

    for is_whole in (False, True):
        run(is_whole, 1)
    calls = partial(run, False), partial(run, True)
    seconds = [[cpu_seconds(call) for call in calls] for _ in range(_TURNS)]
    return 1e6 * np.array(seconds) / n_visits


def run() -> Iterator[Row]:
    """A row for each number of features, then how both grow."""
    medians = {}
    for n_features, n_visits in _VISITS.items():
        times = _microseconds(n_features, n_visits)
        ratios = times[:, 1] / times[:, 0]
        medians[n_features] = one, whole = np.median(times, axis=0)
        yield Row(
            name=f"D = {n_features}: whole factorisation over rank one",
            measured=float(np.median(ratios)),
            unit="x",
            note=f"{whole:.3g} and {one:.3g} us per visit; "
            f"{ratios.min():.2f} to {ratios.max():.2f} in {_TURNS} turns",
        )
    few, many = sorted(medians)[-2:]
    for j, kind in enumerate(("rank one", "whole factorisation")):
        power = math.log(medians[many][j] / medians[few][j]) / math.log(many / few)
        yield Row(
            name=f"power of D by which a visit grows, D = {few} to {many}: {kind}",
            measured=power,
            larger_is_better=False,
            note=f"Das (2014): {3 if j else 2}",
        )
