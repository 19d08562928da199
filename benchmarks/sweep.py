"""Milliseconds per label sweep against one `GaussianMixture` iteration of scikit-learn.

Same N, D, K and data, one thread, one process, CPU time of the thread, medians.  Our sweep includes
all its preparation: weights, parameters, sticks, labels and sufficient statistics.  An iteration
of scikit-learn is (fit of 4 iterations - fit of 1) / 3 from given starting values, so that its
initialisation and last E-step cancel.
"""

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import pymc_dpsplit as dps
from pymc_dpsplit.moves.assignment import slice_sweep
from pymc_dpsplit.moves.partition import gather_stats

# N, D, K, and how many times faster than scikit-learn it must be.
CASES = ((400_000, 8, 30, 8.0), (100_000, 50, 40, 5.0))
_SKLEARN_ROWS = 50_000
_REPEATS = 5


def seconds(call: Callable[[], object]) -> float:
    """CPU seconds of this thread that `call` takes."""
    began = time.thread_time()
    call()
    return time.thread_time() - began


def make_data(n_obs: int, n_features: int, n_clusters: int) -> tuple[np.ndarray, ...]:
    """Spherical Gaussians with centres N(0, 4 I): rows, labels, centres."""
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.standard_normal((n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n_obs).astype(np.int32)
    return centres[labels] + rng.standard_normal((n_obs, n_features)), labels, centres


def our_sweep(rows: np.ndarray, labels: np.ndarray) -> float:
    """Median seconds of a sweep that starts from the true labels."""
    shift = rows.mean(0)
    data = rows
    component = dps.MvNormal.from_data(rows)
    prior = component.prior(component.check(component.hyperparameters, rows.shape[1]), shift)
    stats = gather_stats(prior, data, labels, int(labels.max()) + 1)
    rng = np.random.default_rng(1)
    times = []
    for _ in range(_REPEATS + 1):
        began = time.thread_time()
        stats = slice_sweep(prior, data, labels, stats, 1.0, rng)
        times.append(time.thread_time() - began)
    return float(np.median(times[1:]))


def sklearn_iteration(rows: np.ndarray, centres: np.ndarray) -> float:
    """Median seconds of one iteration of expectation maximisation."""
    n_clusters, n_features = centres.shape
    start = {
        "n_components": n_clusters,
        "means_init": centres,
        "weights_init": np.full(n_clusters, 1.0 / n_clusters),
        "precisions_init": np.stack([np.eye(n_features)] * n_clusters),
        "tol": 0.0,
    }

    def fit(n_iterations: int) -> float:
        return seconds(lambda: GaussianMixture(max_iter=n_iterations, **start).fit(rows))

    fit(1)
    return float(np.median([(fit(4) - fit(1)) / 3.0 for _ in range(_REPEATS)]))


def main() -> None:
    """Print one line per case."""
    warnings.simplefilter("ignore")
    print("sweep: ms per sweep against ms per GaussianMixture iteration, one thread, float64")
    for n_obs, n_features, n_clusters, target in CASES:
        rows, labels, centres = make_data(n_obs, n_features, n_clusters)
        ours = our_sweep(rows, labels)
        theirs = sklearn_iteration(rows[:_SKLEARN_ROWS], centres) * n_obs / _SKLEARN_ROWS
        print(
            f"  N={n_obs} D={n_features} K={n_clusters}: ours {1e3 * ours:.1f} ms, "
            f"scikit-learn {1e3 * theirs:.1f} ms (from {_SKLEARN_ROWS} rows), "
            f"ratio {theirs / ours:.1f} (target {target:g})",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
