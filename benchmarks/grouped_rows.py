"""Rows in groups: what a sweep by slices and a collapsed scan cost beside the sweep of a mixture.

All in one process, in turns, from one state, by CPU time.
"""

from collections.abc import Callable, Iterator

import numpy as np

import pymc_dpsplit as dps
from benchmarks.row import Row
from benchmarks.subject import Chain, make_target
from benchmarks.timing import ratios_to_first
from benchmarks.workloads import spheres
from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.state import GroupedTarget, resume_groups
from pymc_dpsplit.hierarchical.tables import redraw_weights

_N_OBS, _N_GROUPS, _N_FEATURES, _N_CLUSTERS, _TURNS = 100_000, 100, 8, 30, 7
_MOST = 1.3
_ALPHA = 5.0


def run() -> Iterator[Row]:
    """Ratios of sweeps."""
    rows, labels, _ = spheres(_N_OBS, _N_FEATURES, _N_CLUSTERS, 4.0)
    target = make_target(rows, dps.MvNormal.from_data(rows))
    # Groups prefer some clusters to others.
    groups = (labels + np.random.default_rng(1).integers(0, 20, _N_OBS)) % _N_GROUPS
    sizes = np.bincount(groups, minlength=_N_GROUPS)
    grouped = GroupedTarget(target, groups.astype(np.int64), sizes, _ALPHA)

    def sweep_of(threads: int | None) -> Callable[[], object]:
        rng, first = np.random.default_rng(2), labels.astype(np.int32)
        held = [resume_groups(grouped, np.unique(first, return_inverse=True)[1].astype(np.int32))]

        def sweep() -> object:
            state, tables, _ = advance_groups(grouped, held[0], rng, 1, 0, threads)
            held[0] = redraw_weights(grouped, state, tables, rng)
            return held[0]

        return sweep

    calls = {
        "mixture": Chain(target, labels).sweep,
        "by slices": sweep_of(1),
        "collapsed scan": sweep_of(None),
    }
    for of in ratios_to_first(calls, _TURNS):
        yield Row(
            name=f"rows in groups: {of.name}, over the sweep of a mixture",
            measured=of.median,
            unit="x",
            aim=_MOST,
            larger_is_better=False,
            note=of.note,
        )
