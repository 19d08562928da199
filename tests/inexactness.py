"""How far samplers of the literature are from the posterior, enumerated over all partitions.

`python -m tests.inexactness` prints the tables of docs/samplers.md: for each sampler that is not
exact, and for one that is, the total variation between the law of its partitions and the posterior,
and the mean number of clusters, from chains that begin with exact draws; then the same for values
of their options.  `python -m tests.inexactness NAME ..` prints the rows of these samplers, and
`python -m tests.inexactness smc` those of particles, which are no kernel.
"""

import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.generators import address_of
from pymc_dpsplit.moves.collapsed.scan import log_densities_alone
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from pymc_dpsplit.samplers.particles import resampled, run_particles
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.partitions import (
    enumerate_partitions,
    exact_posterior,
    n_clusters_law,
    n_clusters_of,
    partition_index,
)

FAMILY = ("Normal", 1)
CASES = [("overlapping", 1.0), ("overlapping", 5.0), ("separated", 1.0), ("outlier", 1.0)]
# An exact sampler, whose total variation is that of the Monte Carlo error.
_REFERENCE = "neal8"
# Options by which the distance of a sampler varies, beside the default.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "chang-fisher": [
        {"super_clusters": True},
        {"sub_cluster_burn_in": False},
        {"super_clusters": True, "sub_cluster_burn_in": False},
        {"repaired": True},
    ],
    "truncated": [{"truncation": level} for level in (3, 5, 10, 40)],
    "ics": [{"m": m} for m in (1, 3, 30, 100)],
    "av-parallel": [
        *({"processors": n, "published": published} for published in (True, False) for n in (2, 8)),
        {"shares": [6, 3, 1]},
    ],
}
_NONE: Mapping[str, Any] = MappingProxyType({})
_N_CHAINS, _N_BURN_IN, _N_DRAWS, _N_ITERATIONS = 64, 40, 1000, 5
_SEED = 20261123


class Distance(NamedTuple):
    """Distance between the law of a sampler and the posterior.

    Attributes
    ----------
    total_variation : float
        Between the laws of the partition.
    n_clusters, exact_n_clusters : float
        Mean numbers of clusters.
    """

    total_variation: float
    n_clusters: float
    exact_n_clusters: float


def distance(
    name: str,
    dataset: str,
    alpha: float,
    options: Mapping[str, Any] = _NONE,
    n_draws: int = _N_DRAWS,
    n_burn_in: int = _N_BURN_IN,
) -> Distance:
    """Measure the distance of a sampler from the posterior, five iterations per draw."""
    rng = np.random.default_rng(_SEED)
    data = dataset_of(FAMILY[0], dataset, FAMILY[1])
    exact = exact_posterior(twin_of(*FAMILY), data, alpha)
    target = target_of(component_of(*FAMILY), data, alpha)
    attempts = float(SAMPLERS[name].attempts)
    settings = SAMPLERS[name].settings(options)
    schedule = sampler.Schedule(_N_ITERATIONS, attempts, np.empty(0, np.int64), settings=settings)
    drawn = np.empty((_N_CHAINS, n_draws, len(data)), np.int8)
    for c, start in enumerate(rng.choice(len(exact), _N_CHAINS, p=exact)):
        state = sampler.resume(target, enumerate_partitions(len(data))[start])
        for draw in range(-n_burn_in, n_draws):
            state, _ = sampler.advance(name, target, state, rng, schedule)
            if draw >= 0:
                drawn[c, draw] = state.labels
    found = np.bincount(partition_index(drawn).ravel(), minlength=len(exact))
    found = found / found.sum()
    return Distance(
        0.5 * float(np.abs(found - exact).sum()),
        float(found @ n_clusters_of(len(data))),
        float(n_clusters_law(exact, len(data)) @ np.arange(len(data) + 1)),
    )


def _shown(name: str, options: Mapping[str, Any]) -> str:
    """A kernel and its options as in a call."""
    return ", ".join([f'`"{name}"`', *(f"`{key}={value}`" for key, value in options.items())])


def rows(names: list[str]) -> Iterator[str]:
    """Rows of the table of these samplers without options, in Markdown."""
    yield "| data | alpha | kernel | total variation | E(K) | exact |"
    yield "|---|---|---|---|---|---|"
    for name in names:
        if SAMPLERS[name].is_exact and name != _REFERENCE:
            continue
        for dataset, alpha in CASES:
            found = distance(name, dataset, alpha)
            yield (
                f'| {dataset} | {alpha:g} | `"{name}"` | {found.total_variation:.3f} '
                f"| {found.n_clusters:.2f} | {found.exact_n_clusters:.2f} |"
            )


def rows_of_options(names: list[str]) -> Iterator[str]:
    """Rows of the table of values of options: total variation and mean number of clusters."""
    heads = [f"{dataset}, {alpha:g}" for dataset, alpha in CASES]
    yield f"| kernel | {' | '.join(heads)} |"
    yield "|---" * (1 + len(heads)) + "|"
    for name in names:
        for options in OPTIONS.get(name, []):
            found = [distance(name, *case, options) for case in CASES]
            cells = [f"{of.total_variation:.3f}, {of.n_clusters:.2f}" for of in found]
            yield f"| {_shown(name, options)} | {' | '.join(cells)} |"


def particles_of(target: sampler.Target, n_particles: int, rng: np.random.Generator) -> np.ndarray:
    """Partitions of particles at the end of a run, all of one weight."""
    n_obs = len(target.data)
    log_alone = log_densities_alone(target.prior, target.data, np.arange(n_obs))
    labels, log_weights, _, _ = run_particles(
        target, rng.permutation(n_obs), log_alone, n_particles, address_of(rng)
    )
    return labels[resampled(log_weights, rng.random())]


def rows_of_particles() -> Iterator[str]:
    """Rows of the tables of particles: pooled over runs, then by run on more observations."""
    rng, heads = np.random.default_rng(_SEED), [f"{dataset}, {alpha:g}" for dataset, alpha in CASES]
    yield f"| particles | {' | '.join(heads)} |"
    yield "|---" * (1 + len(heads)) + "|"
    for n_particles in (1, 3, 10, 100):
        cells = []
        for dataset, alpha in CASES:
            data = dataset_of(FAMILY[0], dataset, FAMILY[1])
            exact = exact_posterior(twin_of(*FAMILY), data, alpha)
            target = target_of(component_of(*FAMILY), data, alpha)
            n_runs = _N_CHAINS * _N_DRAWS // n_particles
            drawn = np.stack([particles_of(target, n_particles, rng) for _ in range(n_runs)])
            found = np.bincount(partition_index(drawn).ravel(), minlength=len(exact)) / drawn.size
            found *= len(data)
            n_clusters = float(found @ n_clusters_of(len(data)))
            cells.append(f"{0.5 * np.abs(found - exact).sum():.3f}, {n_clusters:.2f}")
        yield f"| {n_particles} | {' | '.join(cells)} |"
    yield ""
    yield "| observations | particles | E(K) | its scatter between runs | exact |"
    yield "|---|---|---|---|---|"
    for n_obs in (50, 500):
        data = rng.normal(size=(n_obs, 1)) + 3.0 * rng.integers(3, size=(n_obs, 1))
        target = target_of(component_of(*FAMILY), data, 1.0)
        schedule = sampler.Schedule(2, 0.0, np.empty(0, np.int64))
        state, numbers = sampler.start(target, rng, 3), []
        for draw in range(-500, 20_000_000 // n_obs // 20):
            state, _ = sampler.advance("collapsed", target, state, rng, schedule)
            if draw >= 0:
                numbers.append(len(state.stats))
        for n_particles in (100, 1000):
            means = [
                (particles_of(target, n_particles, rng).max(axis=1) + 1).mean() for _ in range(20)
            ]
            yield (
                f"| {n_obs} | {n_particles} | {np.mean(means):.2f} | {np.std(means, ddof=1):.2f} "
                f"| {np.mean(numbers):.2f} |"
            )


if __name__ == "__main__":
    chosen = sys.argv[1:] or list(SAMPLERS)
    lines = chain(rows(chosen), [""], rows_of_options(chosen))
    for line in rows_of_particles() if chosen == ["smc"] else lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
