"""How far samplers of the literature are from the posterior, enumerated over all partitions.

`python -m tests.inexactness` prints the table of docs/samplers.md: for each sampler that is not
exact, and for one that is, the total variation between the law of its partitions and the posterior,
and the mean number of clusters, from chains that begin with exact draws.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.samplers.catalogue import SAMPLERS
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
    name: str, dataset: str, alpha: float, n_draws: int = _N_DRAWS, n_burn_in: int = _N_BURN_IN
) -> Distance:
    """Measure the distance of a sampler from the posterior, five iterations per draw."""
    rng = np.random.default_rng(_SEED)
    data = dataset_of(FAMILY[0], dataset, FAMILY[1])
    exact = exact_posterior(twin_of(*FAMILY), data, alpha)
    target = target_of(component_of(*FAMILY), data, alpha)
    attempts = float(SAMPLERS[name].attempts)
    schedule = sampler.Schedule(_N_ITERATIONS, attempts, np.empty(0, np.int64))
    drawn = np.empty((_N_CHAINS, n_draws, len(data)), np.int8)
    for chain, start in enumerate(rng.choice(len(exact), _N_CHAINS, p=exact)):
        state = sampler.resume(target, enumerate_partitions(len(data))[start])
        for draw in range(-n_burn_in, n_draws):
            state, _ = sampler.advance(name, target, state, rng, schedule)
            if draw >= 0:
                drawn[chain, draw] = state.labels
    found = np.bincount(partition_index(drawn).ravel(), minlength=len(exact))
    found = found / found.sum()
    return Distance(
        0.5 * float(np.abs(found - exact).sum()),
        float(found @ n_clusters_of(len(data))),
        float(n_clusters_law(exact, len(data)) @ np.arange(len(data) + 1)),
    )


def rows() -> Iterator[str]:
    """Rows of the table of all samplers and cases, in Markdown."""
    yield "| data | alpha | kernel | total variation | E(K) | exact |"
    yield "|---|---|---|---|---|---|"
    for name in (*(name for name, row in SAMPLERS.items() if not row.is_exact), _REFERENCE):
        for dataset, alpha in CASES:
            found = distance(name, dataset, alpha)
            yield (
                f'| {dataset} | {alpha:g} | `"{name}"` | {found.total_variation:.3f} '
                f"| {found.n_clusters:.2f} | {found.exact_n_clusters:.2f} |"
            )


if __name__ == "__main__":
    for line in rows():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
