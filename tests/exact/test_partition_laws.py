"""Moves under Pitman-Yor and finite laws of the partition, against enumeration and forward draws.

Users meet Dirichlet processes only; moves are right for every law of `moves.partition_law`.
Chains start from exact draws.  Level 1e-5 each; the controls leave out the discount, or the
number of clusters, in one formula of one move.
"""

from collections.abc import Callable

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from pymc_dpsplit.moves.forward import draw_partition
from pymc_dpsplit.moves.measure import break_remainder, draw_measure
from pymc_dpsplit.moves.partition import entropy, log_joint
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process
from pymc_dpsplit.moves.split_merge.anchored import anchored_attempt
from pymc_dpsplit.moves.split_merge.informed import informed_attempt
from pymc_dpsplit.moves.sweep.assignment import slice_bounds_of, slice_sweep
from pymc_dpsplit.samplers.jain_neal import jain_neal_attempt
from pymc_dpsplit.samplers.neal2 import iterate_neal2
from pymc_dpsplit.samplers.neal8 import auxiliary_sweep
from pymc_dpsplit.samplers.sams import sams_attempt
from tests.support.controls import assign
from tests.support.families import component_of, dataset_of, target_of, twin_of
from tests.support.moves import MOVES, PUBLISHED_FOR_EVERY_LAW, Move, sweep
from tests.support.partition_laws import LAWS, posterior_under
from tests.support.partitions import (
    coclustering,
    enumerate_partitions,
    n_clusters_law,
    partition_index,
)
from tests.support.statistics import (
    LEVEL,
    coclustering_test,
    combine,
    count_test,
    partition_test,
    two_sample_test,
)

pytestmark = pytest.mark.slow

_CHAINS, _DRAWS, _N_OBS = 64, 200, 6
_REPLICATES, _N_FORWARD = 1500, 25
_LAWS = [name for name, (law, _) in LAWS.items() if law.discount != 0.0]
_MOVES = (
    "slice",
    "over-relaxed slice",
    "collapsed",
    "anchored",
    "informed",
    "transfer",
    "partial scan",
    "exact kernel",
    *PUBLISHED_FOR_EVERY_LAW,
)
# Exact starts among the draws of a chain, see `test_enumeration`.
_STARTS = {"informed": 10, "transfer": 20}


def rows_of(family: str) -> np.ndarray:
    return dataset_of(family, "overlapping", 1 if family == "Normal" else 2)[:_N_OBS]


def p_value(
    move: Move, name: str, rng: np.random.Generator, family: str = "Normal", n_starts: int = 1
) -> float:
    """P-value over partitions, number of clusters and co-clustering."""
    law, log_prior = LAWS[name]
    rows = rows_of(family)
    n_features = rows.shape[1]
    exact = posterior_under(log_prior, twin_of(family, n_features), rows)
    target = target_of(component_of(family, n_features), rows, 1.0)._replace(law=law)
    starts = enumerate_partitions(_N_OBS)[rng.choice(len(exact), _CHAINS * n_starts, p=exact)]
    labels = np.empty((len(starts), _DRAWS // n_starts, _N_OBS), np.int8)
    for chain, start in enumerate(starts):
        state = sampler.resume(target, start)
        for draw in range(labels.shape[1]):
            state = move(target, state, rng)
            labels[chain, draw] = state.labels
    labels = labels.reshape(_CHAINS, -1, _N_OBS)
    n_clusters = (labels.max(axis=2) + 1).astype(np.int64)
    return combine(
        partition_test(partition_index(labels), exact),
        count_test(n_clusters, n_clusters_law(exact, _N_OBS)),
        coclustering_test(labels, coclustering(exact, _N_OBS)),
    )


@pytest.mark.parametrize("name", _LAWS)
@pytest.mark.parametrize("move", _MOVES)
def test_move_keeps_the_posterior(move: str, name: str, rng: np.random.Generator) -> None:
    assert p_value(MOVES[move], name, rng, n_starts=_STARTS.get(move, 1)) > LEVEL


@pytest.mark.parametrize("name", ["Pitman-Yor", "finite"])
@pytest.mark.parametrize("move", ["exact kernel", "threaded sweep", "pruned slice", "Neal 2"])
def test_move_keeps_the_posterior_of_vectors(
    move: str, name: str, rng: np.random.Generator
) -> None:
    assert p_value(MOVES[move], name, rng, "MvNormal") > LEVEL


# --- forward draws ------------------------------------------------------------------------


def statistics(target: sampler.Target, state: sampler.ChainState) -> list[float]:
    """Functions of partition and data that do not depend on how clusters are numbered."""
    sizes = state.stats[:, 0]
    return [
        len(sizes),
        sizes.max(),
        (sizes == 1).sum(),
        state.labels[0] == state.labels[1],
        entropy(state.stats),
        log_joint(target, state.stats),
    ]


def one_step(
    move: Move,
    law: PartitionLaw,
    rng: np.random.Generator,
    n_obs: int = _N_FORWARD,
    n_replicates: int = _REPLICATES,
) -> float:
    """P-value that a step leaves the law of exact forward draws as it was."""
    component = component_of("Normal", 1)
    values = component.check(component.hyperparameters, 1)
    before, after = [], []
    for _ in range(n_replicates):
        labels = draw_partition(rng, law, n_obs)
        parameters = component.draw_base(rng, values, int(labels.max()) + 1)
        rows = component.draw_rows(rng, parameters, labels)[:, None]
        target = target_of(component, rows, 1.0)._replace(law=law)
        state = sampler.resume(target, labels)
        before.append(statistics(target, state))
        state = move(target, state, rng)
        after.append(statistics(target, state))
    return two_sample_test(np.array(before, float), np.array(after, float))


@pytest.mark.parametrize("name", _LAWS)
@pytest.mark.parametrize("move", ["exact kernel", "collapsed", *PUBLISHED_FOR_EVERY_LAW])
def test_one_step_is_invariant(move: str, name: str, rng: np.random.Generator) -> None:
    assert one_step(MOVES[move], LAWS[name][0], rng) > LEVEL


# --- controls -----------------------------------------------------------------------------

Kernel = Callable[..., np.ndarray]


def under(kernel: Kernel, replace: Callable[[PartitionLaw], PartitionLaw]) -> Kernel:
    """A sweep that sees another law than the target has."""

    def broken(target, labels, stats, rng, *rest):
        return kernel(target._replace(law=replace(target.law)), labels, stats, rng, *rest)

    return broken


def without_discount(law: PartitionLaw) -> PartitionLaw:
    return dirichlet_process(max(law.strength, 0.1))


def _then(first: Kernel, second: Kernel) -> Kernel:
    def both(target, labels, stats, rng):
        stats = first(target, labels, stats, rng)
        return second(target, labels, stats, rng, np.zeros(4, np.int64))

    return both


def _tail_of_a_dirichlet_process(target, labels, stats, rng):
    """A sweep whose weights have the law of the target, and whose sticks have no discount."""
    log_weights, log_rest, params = draw_measure(target, stats, rng)
    tail = target._replace(law=without_discount(target.law))
    log_floor = np.log(1e-4 / len(labels))
    log_weights, params, _ = break_remainder(tail, rng, log_weights, log_rest, params, log_floor)
    slice_bounds = slice_bounds_of(log_weights, 1.0 / len(labels))
    return assign(target, labels, rng, log_weights, params, slice_bounds)


def _sweep_of_neal2(target, labels, stats, rng):
    schedule = sampler.Schedule(1, 0.0, np.empty(0, np.int64))
    return iterate_neal2(target, labels, stats, rng, schedule, np.zeros(4, np.int64))


CONTROLS: dict[str, Move] = {
    "collapsed": sweep(under(collapsed_sweep, without_discount)),
    "anchored": sweep(_then(collapsed_sweep, under(anchored_attempt, without_discount))),
    "informed": sweep(_then(collapsed_sweep, under(informed_attempt, without_discount))),
    "slice": sweep(under(slice_sweep, without_discount)),
    "sticks": sweep(_tail_of_a_dirichlet_process),
    "Jain-Neal": sweep(_then(collapsed_sweep, under(jain_neal_attempt, without_discount))),
    "SAMS": sweep(_then(collapsed_sweep, under(sams_attempt, without_discount))),
    "Neal 2": sweep(under(_sweep_of_neal2, without_discount)),
    "Neal 8": sweep(under(auxiliary_sweep, without_discount)),
}


@pytest.mark.control
@pytest.mark.parametrize("name", ["Pitman-Yor", "finite"])
@pytest.mark.parametrize("control", CONTROLS)
def test_discount_left_out_is_caught(control: str, name: str, rng: np.random.Generator) -> None:
    assert p_value(CONTROLS[control], name, rng) < LEVEL


@pytest.mark.control
@pytest.mark.parametrize("control", ["collapsed", "slice", "Neal 2"])
def test_discount_left_out_of_one_step_is_caught(control: str, rng: np.random.Generator) -> None:
    assert one_step(CONTROLS[control], LAWS["Pitman-Yor"][0], rng) < LEVEL
