"""Burn-in: N = 1e5, ten 2-D Gaussians, from one and from fifty clusters.

The reference is the log joint of a chain that starts at the true labels and runs the exact
kernel.  Counted are iterations (tuning ones first, then exact ones) and CPU seconds until the log
joint is within four standard deviations of the reference's mean, and stays there for five
iterations.  Tuning climbs the log joint by design, so K a hundred exact iterations later is
printed too, beside that of the reference.
"""

import time

import numpy as np
from threadpoolctl import threadpool_limits

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.plan import make_plan

_N_OBS = 100_000
_TUNING = 30
_LONGEST = 400
_STAY = 5


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Ten Gaussians: centres N(0, 4.5^2 I), inverse-Wishart covariances of mean I."""
    rng = np.random.default_rng(2)
    weights = rng.dirichlet(np.full(10, 5.0))
    centres = 4.5 * rng.standard_normal((10, 2))
    component = dps.MvNormal(np.zeros(2), 1.0, 6.0, 3.0 * np.eye(2))
    covs = component.draw_base(rng, component.check(component.hyperparameters, 2), 10)["cov"]
    labels = rng.choice(10, _N_OBS, p=weights)
    return component.draw_rows(rng, {"mu": centres, "cov": covs}, labels), labels


def reference(target: sampler.Target, labels: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of the log joint of a chain from the true labels."""
    rng = np.random.default_rng(0)
    state = sampler.resume(target, labels)
    plan = make_plan("exact", target, state, 2)._replace(n_iterations=1)
    values = []
    for _ in range(150):
        state, _ = sampler.advance(sampler.KERNELS["exact"], target, state, rng, plan)
        values.append(log_joint(target.prior, state.stats, target.alpha))
    return float(np.mean(values[50:])), float(np.std(values[50:]))


def burn_in(
    target: sampler.Target, n_start: int, seed: int, level: float
) -> tuple[int, float, sampler.ChainState]:
    """Iterations and CPU seconds until the log joint stays above `level`; the state then."""
    rng = np.random.default_rng(seed)
    began = time.process_time()
    state = sampler.start(target, rng, n_start)
    stayed, reached = 0, (_LONGEST, float("nan"))
    for iteration in range(1, _LONGEST + 1):
        if iteration % 25 == 1:
            plan = make_plan("exact", target, state, 2)._replace(n_iterations=1)
        form = sampler.GREEDY if iteration <= _TUNING else sampler.KERNELS["exact"]
        state, _ = sampler.advance(form, target, state, rng, plan)
        if log_joint(target.prior, state.stats, target.alpha) < level:
            stayed = 0
            continue
        stayed += 1
        if stayed == 1:
            reached = iteration, time.process_time() - began
        if stayed == _STAY:
            return *reached, state
    return _LONGEST, float("nan"), state


def typical_k(target: sampler.Target, state: sampler.ChainState, n_skipped: int) -> float:
    """Mean number of clusters over fifty exact iterations, after some that are skipped."""
    rng = np.random.default_rng(9)
    plan = make_plan("exact", target, state, 2)._replace(n_iterations=1)
    counts = []
    for _ in range(n_skipped + 50):
        state, _ = sampler.advance(sampler.KERNELS["exact"], target, state, rng, plan)
        counts.append(len(state.stats))
    return float(np.mean(counts[n_skipped:]))


def main() -> None:
    """Print one line per start and seed."""
    rows, labels = make_data()
    shift = rows.mean(0)
    component = dps.MvNormal(shift, 0.1, 4.0, np.eye(2))
    prior = component.prior(component.check(component.hyperparameters, 2), shift)
    target = sampler.Target(prior, rows, 1.0)
    burn_in(target, 2, 0, -np.inf)  # compile
    mean, sd = reference(target, labels)
    k_there = typical_k(target, sampler.resume(target, labels), 100)
    print(
        f"burn-in: N={_N_OBS}, ten 2-D Gaussians; from the truth log joint {mean:.0f} +- {sd:.0f}, "
        f"mean K {k_there:.1f}"
    )
    for n_start in (1, 50):
        for seed in (1, 2, 3):
            iterations, elapsed, state = burn_in(target, n_start, seed, mean - 4.0 * sd)
            later = typical_k(target, state, 100)
            print(
                f"  from K={n_start}, seed {seed}: {iterations} iterations, {elapsed:.2f} CPU s; "
                f"K={len(state.stats)} then, {later:.1f} after 100 more",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
