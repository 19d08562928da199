"""MAP-DPM and Gibbs sampling on mixtures drawn from their own prior (Raykov 2014, table 1)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

import pymc_dpsplit as dps
from benchmarks.held_out_rows import log_masses
from benchmarks.map_dpm import sweeps_from
from benchmarks.raftery_lewis import need_of
from benchmarks.row import Row
from benchmarks.subject import make_target
from benchmarks.timing import cpu_seconds
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition import log_joint
from pymc_dpsplit.moves.partition_law import dirichlet_process

_N_SAMPLES, _N_OBS, _ALPHA = 100, 600, 3.0
# Of the normal-gamma prior of each dimension.
_KAPPA0, _A0, _B0 = 0.08, 2.0, 22.0
_COMPONENT = dps.DiagNormal(np.zeros(2), _KAPPA0, _A0, np.full(2, _B0))
# Iterations between two diagnoses, and most of them.
_BATCH, _MOST = 939, 10_000
# Draws of a chain that are scored.
_SCORED = 30


class Sample(NamedTuple):
    """Rows (N, 2) of a mixture with their clusters, and further ones of the same mixture."""

    rows: np.ndarray
    truth: np.ndarray
    new_rows: np.ndarray
    new_truth: np.ndarray


class Fit(NamedTuple):
    """Measures of one method on one sample, as the table has them."""

    nmi: float
    nmi_max: float
    ami: float
    iterations: float
    seconds: float
    extra_clusters: float
    new_nmi: float
    new_nll: float


_TITLES = {
    "nmi": "NMI",
    "nmi_max": "NMI, over the larger entropy",
    "ami": "adjusted mutual information",
    "iterations": "iterations",
    "seconds": "CPU time",
    "extra_clusters": "clusters found less those there are",
    "new_nmi": "NMI of new rows",
    "new_nll": "negative log density of new rows",
}
_PUBLISHED = {
    "MAP-DPM": ("0.71 (0.23)", "0.64 (0.27)", "0.62 (0.27)", "13.3 (13.9)", "28 (32) s",
                "-6.94 (6.93)", "0.71 (0.23)", "7.20 (1.11)"),
    "Gibbs": ("0.67 (0.23)", "0.64 (0.24)", "0.62 (0.25)", "2,020 (900)", "7,300 (4,000) s",
              "-0.91 (7.12)", "0.72 (0.20)", "7.17 (1.10)"),
}  # fmt: skip


def draw_sample(rng: np.random.Generator, n_obs: int = _N_OBS) -> Sample:
    """Labels of twice as many rows by the Chinese restaurant process, of which half are new."""
    labels = np.empty(2 * n_obs, np.int64)
    sizes: list[float] = []
    for i in range(2 * n_obs):
        masses = np.array([*sizes, _ALPHA])
        labels[i] = rng.choice(len(masses), p=masses / masses.sum())
        if labels[i] == len(sizes):
            sizes.append(0.0)
        sizes[labels[i]] += 1.0
    variances = _B0 / rng.standard_gamma(_A0, (len(sizes), 2))
    means = rng.standard_normal(variances.shape) * np.sqrt(variances / _KAPPA0)
    rows = means[labels] + rng.standard_normal((2 * n_obs, 2)) * np.sqrt(variances[labels])
    return Sample(rows[:n_obs], labels[:n_obs], rows[n_obs:], labels[n_obs:])


def _target(rows: np.ndarray) -> sampler.Target:
    return make_target(rows, _COMPONENT)._replace(law=dirichlet_process(_ALPHA))


def _measures(sample: Sample, target: sampler.Target, labels: np.ndarray) -> dict[str, float]:
    """Agreement of one partition with the truth, and what it says of the new rows."""
    state = sampler.resume(target, labels)
    masses = log_masses(target, state, sample.new_rows)
    truth, new_truth = sample.truth, sample.new_truth
    return {
        "nmi": float(normalized_mutual_info_score(truth, labels)),
        "nmi_max": float(normalized_mutual_info_score(truth, labels, average_method="max")),
        "ami": float(adjusted_mutual_info_score(truth, labels, average_method="max")),
        "extra_clusters": float(len(state.stats) - len(np.unique(truth))),
        "new_nmi": float(normalized_mutual_info_score(new_truth, masses.argmax(1))),
        "new_nll": -float(logsumexp(masses, axis=1).mean()),
    }


def _one_cluster(sample: Sample) -> np.ndarray:
    return np.zeros(len(sample.rows), np.int64)


def _random_labels(sample: Sample) -> np.ndarray:
    """As many clusters as the sample has, whatever the rows."""
    n_clusters = len(np.unique(sample.truth))
    drawn = np.random.default_rng(1).integers(n_clusters, size=len(sample.rows))
    labels: np.ndarray = np.unique(drawn, return_inverse=True)[1]
    return labels


def map_dpm(sample: Sample, start: Callable[[Sample], np.ndarray] = _one_cluster) -> Fit:
    """The published algorithm."""
    given = start(sample), sample.rows, _COMPONENT, _ALPHA
    mode = sweeps_from(*given)
    seconds = cpu_seconds(lambda: sweeps_from(*given))
    found = _measures(sample, _target(sample.rows), mode.labels)
    return Fit(**found, iterations=float(mode.n_sweeps), seconds=seconds)


def gibbs(sample: Sample) -> Fit:
    """Collapsed Gibbs sampling from one cluster, for as long as the diagnostic asks."""
    target, rng = _target(sample.rows), np.random.default_rng(1)
    state = sampler.resume(target, np.zeros(len(sample.rows), np.int64))
    schedule = sampler.Schedule(1, 0.0, np.empty(0, np.int64))
    kept: list[np.ndarray] = []
    heights: list[float] = []

    def iterate() -> None:
        nonlocal state
        for _ in range(_BATCH):
            state, _ = sampler.advance("collapsed", target, state, rng, schedule)
            kept.append(state.labels)
            heights.append(float(log_joint(target, state.stats)))

    seconds, need = cpu_seconds(iterate), need_of(np.array(heights))
    while len(kept) < min(_MOST, sum(need)):
        seconds += cpu_seconds(iterate)
        need = need_of(np.array(heights))
    first = min(need.burn_in, len(kept) // 2)
    chosen = np.linspace(first, len(kept) - 1, _SCORED).astype(int)
    each = [_measures(sample, target, kept[draw]) for draw in chosen]
    given = {name: float(np.mean([one[name] for one in each])) for name in each[0]}
    return Fit(**given, iterations=float(len(kept)), seconds=seconds)


_METHODS: dict[str, Callable[[Sample], Fit]] = {
    "MAP-DPM, from one cluster": map_dpm,
    "MAP-DPM, from random labels": partial(map_dpm, start=_random_labels),
    "Gibbs, from one cluster": gibbs,
}


def _rows_of(method: str, fits: list[Fit]) -> Iterator[Row]:
    """A row for each measure: mean over the samples, and two standard deviations."""
    figures = _PUBLISHED[method.partition(",")[0]]
    for (name, title), published in zip(_TITLES.items(), figures, strict=True):
        values = np.array([getattr(fit, name) for fit in fits])
        yield Row(
            name=f"{method}: {title}",
            measured=float(values.mean()),
            unit="s" if name == "seconds" else "",
            rivals=f"published {published}",
            note=f"two standard deviations {2.0 * values.std(ddof=1):.2g}",
        )


def run() -> Iterator[Row]:
    """Method by method on the same samples."""
    samples = [draw_sample(np.random.default_rng(seed)) for seed in range(_N_SAMPLES)]
    for method, fit in _METHODS.items():
        fit(samples[0])  # compiled now
        yield from _rows_of(method, [fit(sample) for sample in samples])
