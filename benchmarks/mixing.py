"""Effective draws per CPU second through `pm.sample`, over those of the control in the same run.

Both are scored from partitions, by one estimator.  A case is run with several seeds that were not
used in development: of the mixture and its rows where the data are synthetic, of the chains always.
"""

import logging
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import arviz as az
import numpy as np
import pymc as pm

import pymc_dpsplit as dps
from benchmarks import collapsed_control, workloads
from benchmarks.partition_scores import scores_of
from benchmarks.predictive import log_density_of_draws
from benchmarks.row import Row
from benchmarks.workloads import Workload

CHAINS = 4

_FIRST_SEED = 11
# Clusters in which the chains of the control begin, at random.
_STARTS = (1, 4, 15, 50)
# Draws of a chain that are scored, at most.
_SCORED = 4000
# Sweeps of the control from which the autocorrelation time of its number of clusters is estimated,
# and scored sweeps in such a time: draws that are nearly independent would hide how many more there
# are between them.
_PILOT, _SCORED_PER_TIME = 1000, 4.0
# Of the control.  Beyond, its effective draws mean little, as those of chains that have not met are
# never fewer than a few: it runs anew for so many times as long, and a note says if that is not
# enough either.
_MOST_R_HAT, _LONGER = 1.05, 10.0


class Case(NamedTuple):
    """A workload with its budget, and what is wanted of ours over the control.

    Attributes
    ----------
    name : str
    tune, draws : int
        Per chain.
    must, aim : float
        Of the ratio of effective draws of K per CPU second.
    n_seeds : int
        More where a run takes seconds: single ratios scatter by a fifth and more.
    """

    name: str
    tune: int
    draws: int
    must: float | None
    aim: float | None
    n_seeds: int = 3


CASES = (
    Case("galaxies", 1000, 3000, 0.9, 1.5, n_seeds=9),
    Case("faithful", 1000, 2000, 0.9, 2.0, n_seeds=9),
    Case("W2_1e3", 1000, 1000, 2.0, 4.0, n_seeds=9),
    Case("W2_1e4", 600, 600, 11.0, 20.0),
    Case("W3", 600, 600, 2.0, 5.0),
    Case("W3_1e3", 1000, 1000, None, 2.0, n_seeds=5),
    Case("W3_2e3", 1000, 1000, None, 2.0, n_seeds=5),
)


class Traces(NamedTuple):
    """Quantities (chain, draw) that do not depend on numbering, and CPU seconds."""

    k: np.ndarray
    log_joint: np.ndarray
    points: np.ndarray
    seconds_of_draws: float
    seconds_of_all: float

    @property
    def each(self) -> list[np.ndarray]:
        """All of them, the points one by one."""
        return [self.k, self.log_joint, *np.moveaxis(self.points, -1, 0)]

    @property
    def r_hat(self) -> float:
        """The largest."""
        return max(float(az.rhat(trace)) for trace in self.each)


def sample(
    case: Case,
    workload: Workload,
    seed: int = 1,
    by_partitions: bool = False,
    kernel: str = "auto",
    prior: tuple[float, float] | None = None,
    seconds: float = np.inf,
    **options: Any,
) -> Traces:
    """Run the chains one after another, alpha fixed at 1 or with a Gamma prior.

    With `by_partitions` the predictive density has weights and parameters integrated out, else it
    is that of the stored random measure.  A chain ends after so many CPU seconds, as by Ctrl-C.
    Further arguments are options of the kernel.
    """
    logging.getLogger("pymc").setLevel(logging.ERROR)
    at: list[list[float]] = [[] for _ in range(CHAINS)]
    partitions: list[list[np.ndarray]] = [[] for _ in range(CHAINS)]
    watching = 0.0
    with pm.Model():
        alpha = 1.0 if prior is None else pm.Gamma("alpha", *prior)
        dps.DPMixture("x", alpha, workload.component, observed=workload.observed)
        step = dps.DPSplitMerge(kernel=kernel, **options)

        def watch(**given: Any) -> None:
            nonlocal watching
            now, chain = time.process_time(), given["draw"].chain
            at[chain].append(now - watching)
            if by_partitions and step.labels is not None and not given["draw"].tuning:
                partitions[chain].append(step.labels.astype(np.int16))
            watching += time.process_time() - now
            if at[chain][-1] - at[chain][0] > seconds:
                raise KeyboardInterrupt

        began = time.process_time()
        idata = pm.sample(
            draws=case.draws,
            tune=case.tune,
            chains=CHAINS,
            cores=1,
            step=step,
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
            callback=watch,
        )
    n_draws = min(map(len, at)) - case.tune
    of_draws = sum(ticks[-1] - ticks[case.tune - 1] for ticks in at)
    spent = float(of_draws), float(at[-1][-1] - began)
    if by_partitions:
        kept = np.array([chain[:n_draws] for chain in partitions])
        return _scored(workload, kept, *spent)
    posterior = idata["posterior"].to_dataset()
    return Traces(
        posterior["x_n_clusters"].to_numpy().astype(float),
        idata["sample_stats"]["x_log_joint"].to_numpy(),
        log_density_of_draws(workload, posterior, "x"),
        *spent,
    )


def _scored(workload: Workload, partitions: np.ndarray, of_draws: float, of_all: float) -> Traces:
    """Traces from partitions (chain, draw, N), of which so many are scored as are wanted."""
    every = -(-partitions.shape[1] // _SCORED)
    scores = [scores_of(workload, chain[::every], 1.0) for chain in partitions]
    k, log_joint, points = (np.array(each) for each in zip(*scores, strict=True))
    return Traces(k, log_joint, points, of_draws, of_all)


def _thinning(control: Any, labels: np.ndarray, rng: np.random.Generator) -> int:
    """Sweeps from one that is scored to the next."""
    labels, _ = collapsed_control.sample(control, labels, _PILOT, rng)
    pilot, _ = collapsed_control.sample(control, labels[-1], _PILOT, rng)
    k = np.array([len(np.unique(each)) for each in pilot], float)
    sweeps_per_time = _PILOT / float(az.ess(k[None])) if np.ptp(k) else np.inf
    return int(np.clip(sweeps_per_time / _SCORED_PER_TIME, 1, _PILOT))


def sample_control(workload: Workload, seconds: float, seed: int) -> Traces:
    """Chains of the control that take at most as many CPU seconds in their draws, after a burn-in.

    They begin in random partitions.  Where a chain mixes fast they are shorter: every sweep that is
    scored takes longer than the sweep.
    """
    control = collapsed_control.control_of(workload)
    rng = np.random.default_rng(seed)
    n_rows = len(workload.rows)
    starts = [rng.integers(min(n, n_rows), size=n_rows) for n in _STARTS]
    starts = [np.unique(start, return_inverse=True)[1] for start in starts]
    labels, _ = collapsed_control.sample(control, starts[2], 5, rng)  # compiled now
    began = time.process_time()
    collapsed_control.sample(control, labels[-1], 5, rng)
    of_sweep = (time.process_time() - began) / 5.0
    affordable = int(seconds / CHAINS / of_sweep)
    thin = min(max(1, affordable // _SCORED), _thinning(control, labels[-1], rng))
    n_sweeps = max(50, min(affordable // thin, _SCORED)) * thin
    kept, spent = [], 0.0
    for start in starts:
        warm, _ = collapsed_control.sample(control, start, n_sweeps // 3 + 1, rng)
        began = time.process_time()
        drawn, _ = collapsed_control.sample(control, warm[-1], n_sweeps, rng, thin=thin)
        spent += time.process_time() - began
        kept.append(drawn)
    return _scored(workload, np.array(kept), spent, spent)


def rates(traces: Traces) -> dict[str, float]:
    """Effective draws per CPU second of K, the log joint and the worst point."""

    def rate(trace: np.ndarray) -> float:
        return float(az.ess(trace)) / traces.seconds_of_draws

    return {
        "k": rate(traces.k),
        "log_joint": rate(traces.log_joint),
        "worst_point": min(rate(trace) for trace in traces.each[2:]),
    }


_TITLES = {
    "k": "K",
    "log_joint": "log joint",
    "worst_point": "predictive density, worst of three points",
}


def rows_of(case: Case, traces: Traces) -> Iterator[Row]:
    """Rates of one run, without a control."""
    for of, rate in rates(traces).items():
        yield Row(
            name=f"{case.name}: {_TITLES[of]}",
            measured=rate,
            unit="per s",
            must=case.must if of == "k" else None,
            aim=case.aim if of == "k" else None,
            note=f"R-hat {traces.r_hat:.3f}",
        )


class Pair(NamedTuple):
    """Ours and the control, in one process, with one seed."""

    ours: Traces
    control: Traces

    @property
    def gap(self) -> float:
        """How far the means of K are from each other, in standard errors."""
        each = [
            (trace.mean(), trace.var(ddof=1) / float(az.ess(trace)))
            for trace in (self.ours.k, self.control.k)
        ]
        (ours, own), (control, other) = each
        return float(abs(ours - control) / np.sqrt(own + other)) if own + other else 0.0


def rows_against_control(case: Case) -> Iterator[Row]:
    """Medians over seeds of ours over the control, with their ranges."""
    pairs = [_compare(case, seed) for seed in range(_FIRST_SEED, _FIRST_SEED + case.n_seeds)]
    ours, control = ([rates(pair[side]) for pair in pairs] for side in (0, 1))
    worst = max(pair.control.r_hat for pair in pairs)
    warning = f"; control not converged, R-hat {worst:.2f}" if worst > _MOST_R_HAT else ""
    for of, title in _TITLES.items():
        ratios = [a[of] / b[of] for a, b in zip(ours, control, strict=True)]
        each = "; ".join(f"{a[of]:.3g} : {b[of]:.3g}" for a, b in zip(ours, control, strict=True))
        yield Row(
            name=f"{case.name}: {title}, ours over the control",
            measured=float(np.median(ratios)),
            unit="x",
            must=case.must,
            aim=case.aim,
            note=f"{min(ratios):.2g} to {max(ratios):.2g}; per s {each}{warning}",
        )
    hats = ", ".join(f"{pair.ours.r_hat:.3f} : {pair.control.r_hat:.3f}" for pair in pairs)
    yield Row(
        name=f"{case.name}: largest R-hat of ours",
        measured=max(pair.ours.r_hat for pair in pairs),
        must=1.01,
        larger_is_better=False,
        note=f"with each seed, ours : control: {hats}",
    )
    yield Row(
        name=f"{case.name}: difference of E[K], ours less the control",
        measured=max(pair.gap for pair in pairs),
        unit="s.e.",
        must=4.5,
        larger_is_better=False,
        note="the largest of all seeds",
    )


def _compare(case: Case, seed: int) -> Pair:
    """One case with one seed."""
    workload = workloads.load(case.name, seed)
    ours = sample(case, workload, seed, by_partitions=True)
    control = sample_control(workload, ours.seconds_of_draws, seed)
    if control.r_hat > _MOST_R_HAT:
        control = sample_control(workload, _LONGER * ours.seconds_of_draws, seed)
    return Pair(ours, control)


def run() -> Iterator[Row]:
    """All workloads."""
    for case in CASES:
        yield from rows_against_control(case)
