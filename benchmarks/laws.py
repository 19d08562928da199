"""Laws of the partition: what a sweep costs under each.

All in one process, in turns, from one state, by CPU time.
"""

from collections.abc import Callable, Iterator

import pymc as pm

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target, prior_of_components, with_moved_strength
from benchmarks.timing import ratios_to_first
from benchmarks.workloads import spheres
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, finite_mixture

_N_OBS, _N_CLUSTERS, _TURNS = 100_000, 10, 9
_MOST = 1.5
# Rates of the Poisson distribution of the number of components less one.
_RATE, _GAMMA = 9.0, 1.0


def run() -> Iterator[Row]:
    """Ratios of sweeps."""
    rows, labels, _ = spheres(_N_OBS, 2, _N_CLUSTERS, 4.0)
    target = make_target(rows, dps.MvNormal.from_data(rows))

    def sweep_of(law: PartitionLaw) -> Callable[[], object]:
        return Chain(target._replace(law=law), labels).sweep

    with_components = Chain(target._replace(law=finite_mixture(_GAMMA, 12)), labels)
    prior, _kept = prior_of_components(_GAMMA, lambda: 1 + pm.Poisson.dist(_RATE), 12)
    calls = {
        "Dirichlet process": sweep_of(dirichlet_process(1.0)),
        "Pitman-Yor, discount 0.1": sweep_of(PartitionLaw(0.1, 1.0)),
        "Pitman-Yor, discount 0.2": sweep_of(PartitionLaw(0.2, 1.0)),
        "12 components": sweep_of(finite_mixture(_GAMMA, 12)),
        "MFM, with its move of M": lambda: with_moved_strength(with_components, prior),
    }
    for of in ratios_to_first(calls, _TURNS):
        yield Row(
            name=f"sweep: {of.name}, over a Dirichlet process",
            measured=of.median,
            unit="x",
            must=_MOST,
            larger_is_better=False,
            note=of.note,
        )
