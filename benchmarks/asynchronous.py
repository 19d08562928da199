"""How far the asynchronous baseline is from the posterior, by its number of processors."""

from collections.abc import Iterator

import arviz as az
import numpy as np

from benchmarks import asynchronous_gibbs
from benchmarks.asynchronous_gibbs import Model
from benchmarks.processors import MU0, SIGMA, SIGMA0, component, draw_rows
from benchmarks.row import Row
from benchmarks.subject import make_target
from pymc_dpsplit import sampler

_SIZES, _SEED = (100, 1000), 3
_CHAINS, _ITERATIONS, _BURN_IN = 4, 5000, 500
_PROCESSORS = (1, 2, 4, 8)
_MOST_CLUSTERS = 100


def numbers_of(model: Model, n_processors: int, seed: int) -> np.ndarray:
    """Number of clusters after each iteration of one chain."""
    rng = np.random.default_rng(seed)
    start = np.zeros(len(model.rows), np.int64)
    state = asynchronous_gibbs.begin(model, start, n_processors, _MOST_CLUSTERS, rng)
    numbers = np.empty(_ITERATIONS)
    for iteration in range(_ITERATIONS):
        for p in range(n_processors):
            asynchronous_gibbs.sweep(model, state, p, rng)
            asynchronous_gibbs.tell(state, p, rng)
        numbers[iteration] = np.count_nonzero(np.bincount(state.labels))
    return numbers[_BURN_IN:]


def exact_numbers(rows: np.ndarray, seed: int) -> np.ndarray:
    """The same of the kernel `collapsed`."""
    target, rng = make_target(rows, component()), np.random.default_rng(seed)
    state = sampler.resume(target, np.zeros(len(rows), np.int64))
    schedule = sampler.Schedule(1, 0.0, np.empty(0, np.int64))
    numbers = np.empty(_ITERATIONS)
    for iteration in range(_ITERATIONS):
        state, _ = sampler.advance("collapsed", target, state, rng, schedule)
        numbers[iteration] = len(state.stats)
    return numbers[_BURN_IN:]


def _error(numbers: np.ndarray) -> float:
    """Standard error of the mean of traces (chain, draw)."""
    return float(numbers.std() / np.sqrt(float(az.ess(numbers))))


def run() -> Iterator[Row]:
    """By number of observations and of processors."""
    for n_obs in _SIZES:
        rows, _ = draw_rows(np.random.default_rng(_SEED), n_obs)
        model = Model(rows[:, 0].copy(), SIGMA, MU0, SIGMA0, 1.0)
        exact = np.array([exact_numbers(rows, seed) for seed in range(_CHAINS)])
        for n_processors in _PROCESSORS:
            found = np.array([numbers_of(model, n_processors, s) for s in range(_CHAINS)])
            yield Row(
                name=f"N = {n_obs}, P = {n_processors}: E[K] less that of the posterior",
                measured=float(found.mean() - exact.mean()),
                note=f"standard error {np.hypot(_error(found), _error(exact)):.2g}; "
                f"{found.mean():.2f} and {exact.mean():.2f}"
                + ("" if n_processors == 1 else "; not exact"),
            )
