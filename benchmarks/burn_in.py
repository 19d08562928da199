"""Burn-in: from one and from fifty clusters to the fit of a chain that starts at the truth.

Judged by the held-out score.  The log joint would not do: of overlapping clusters the partitions of
highest density are far from typical ones, tuning climbs towards them, and it passes the level of
typical partitions long before the fit is right.
"""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import workloads
from benchmarks.predictive import held_out_score
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.workloads import Workload
from pymc_dpsplit import sampler

TUNING = 30
SCORE_GAP = 0.001
_LONGEST = 600
_STAY = 5
_SEEDS = (1, 2, 3)


def advance(chain: Chain, iteration: int) -> float:
    """Iteration 0, 1, ... of a chain that tunes first, as the step does; its CPU seconds."""
    began = time.process_time()
    if iteration % 25 == 0:
        chain.replan()
    chain.iterate(greedy=iteration < TUNING)
    return time.process_time() - began


def reference(workload: Workload, target: sampler.Target) -> tuple[float, float]:
    """Mean held-out score of a chain from the true labels, and its mean K."""
    chain = Chain(target, workload.labels)
    chain.iterate(100)
    seen = []
    for _ in range(50):
        chain.iterate(2)
        seen.append((held_out_score(workload, chain.state.labels), chain.n_clusters))
    score, k = np.mean(seen, axis=0)
    return float(score), float(k)


def burn_in(
    workload: Workload, target: sampler.Target, n_start: int, seed: int, level: float
) -> tuple[float, Chain]:
    """CPU seconds until the score of exact iterations stays above `level`, NaN if it does not."""
    began = time.process_time()
    chain = Chain(target, n_start=n_start, seed=seed)
    spent = time.process_time() - began
    stayed, reached = 0, float("nan")
    for iteration in range(_LONGEST):
        spent += advance(chain, iteration)
        if iteration < TUNING:
            continue
        stayed = stayed + 1 if held_out_score(workload, chain.state.labels) >= level else 0
        if stayed == 1:
            reached = spent
        if stayed == _STAY:
            return reached, chain
    return float("nan"), chain


def run() -> Iterator[Row]:
    """One row for each start."""
    workload = workloads.load("W2_1e5")
    target = make_target(workload.rows, workload.component)
    burn_in(workload, target, 2, 0, -np.inf)  # compiles
    score, k_there = reference(workload, target)
    for n_start, must in ((1, 5.0), (50, 15.0)):
        seconds, k = [], []
        for seed in _SEEDS:
            elapsed, chain = burn_in(workload, target, n_start, seed, score - SCORE_GAP)
            seconds.append(elapsed)
            k.append(chain.n_clusters)
        yield Row(
            name=f"from {n_start} cluster{'s' * (n_start > 1)}",
            measured=float(np.max(seconds)),
            unit="s",
            must=must,
            larger_is_better=False,
            note=f"{', '.join(f'{one:.2f}' for one in seconds)} s; "
            f"K = {', '.join(map(str, k))} then, from the truth {k_there:.1f} on average",
        )
