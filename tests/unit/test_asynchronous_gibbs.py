"""The asynchronous baseline: its bookkeeping, and that with one processor it is exact."""

import itertools
import math

import numpy as np
import pytest

from benchmarks import asynchronous_gibbs
from benchmarks.asynchronous_gibbs import Model
from benchmarks.processors_long import Spent, Trace

MODEL = Model(np.array([-0.3, 0.0, 0.2, 1.9, 2.1]), 0.6, 1.0, 1.5, 1.0)


def run(n_processors, n_iterations, seed=1, most=8):
    rng = np.random.default_rng(seed)
    state = asynchronous_gibbs.begin(MODEL, np.zeros(5, int), n_processors, most, rng)
    numbers = []
    for _ in range(n_iterations):
        for p in range(n_processors):
            asynchronous_gibbs.sweep(MODEL, state, p, rng)
            asynchronous_gibbs.tell(state, p, rng)
        numbers.append(len(np.unique(state.labels)))
    return state, np.array(numbers)


def log_marginal(rows):
    """Log density of the rows of one cluster."""
    n = len(rows)
    covariance = MODEL.sigma**2 * np.eye(n) + MODEL.sigma0**2
    gaps = rows - MODEL.mu0
    quadratic = gaps @ np.linalg.solve(covariance, gaps)
    return -0.5 * (n * math.log(2 * math.pi) + np.linalg.slogdet(covariance)[1] + quadratic)


def expected_number():
    """Mean number of clusters under the posterior, over all partitions."""
    total = number = 0.0
    for labels in itertools.product(range(5), repeat=5):
        if any(k > max(labels[:i], default=-1) + 1 for i, k in enumerate(labels)):
            continue
        clusters = [MODEL.rows[np.array(labels) == k] for k in range(max(labels) + 1)]
        mass = math.exp(sum(log_marginal(rows) + math.lgamma(len(rows)) for rows in clusters))
        total += mass
        number += mass * len(clusters)
    return number / total


def test_one_processor_samples_the_posterior():
    _, numbers = run(1, 40_000)
    assert numbers.mean() == pytest.approx(expected_number(), abs=0.02)


@pytest.mark.parametrize("n_processors", [1, 2, 4])
def test_each_processor_knows_its_own_observations(n_processors):
    state, _ = run(n_processors, 200)
    assert sorted(np.concatenate(state.members)) == list(range(5))
    for p, own in enumerate(state.members):
        known = state.heard[p, p]
        assert (known[:, 0] == np.bincount(state.labels[own], minlength=8)).all()
        sums = np.bincount(state.labels[own], MODEL.rows[own], minlength=8)
        assert known[:, 1] == pytest.approx(sums, abs=1e-9)


def test_time_is_that_of_the_slowest_processor():
    trace = Trace([0.2, 0.4, 0.4], [Spent(3.0, 2.0, 0.5), Spent(3.0, 1.0, 0.5)], 7)
    assert list(trace.elapsed) == [0.0, 2.5, 4.0]
    assert trace.iterations_to_end == 1


def test_chain_is_there_when_it_does_not_leave_again():
    spent = [Spent(1.0, 1.0, 0.0)] * 4
    assert Trace([0.1, 0.5, 0.3, 0.498, 0.5], spent, 7).iterations_to_end == 3
    assert Trace([0.5] * 5, spent, 7).iterations_to_end == 0
