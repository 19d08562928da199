"""Negative controls: moves broken on purpose.  A test that does not catch them is worthless.

Each is a real mistake: the first two are those of published and shipped samplers.
"""

from types import FunctionType
from typing import Any

import numba
import numpy as np

from pymc_dpsplit.components.base import predictive_size
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.collapsed import scan
from pymc_dpsplit.moves.collapsed.scan import collapsed_sweep
from pymc_dpsplit.moves.measure import Atoms, break_remainder, draw_measure, no_atoms
from pymc_dpsplit.moves.partition import (
    apply_merge,
    apply_split,
    log_split_ratio,
    members_of,
)
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.split_merge.anchored import decide_for_pair, draw_anchors
from pymc_dpsplit.moves.split_merge.decision import carry_out
from pymc_dpsplit.moves.split_merge.division import (
    draw_division,
    log_division_probability,
    no_anchors,
)
from pymc_dpsplit.moves.split_merge.greedy import greedy_attempt
from pymc_dpsplit.moves.split_merge.selection import draw_cluster, draw_pair, log_marginals
from pymc_dpsplit.moves.split_merge.transfer import transfer_attempt
from pymc_dpsplit.moves.sweep.assignment import (
    assign_strips,
    new_counter,
    new_strip_stats,
    next_sweep,
    renumber,
    slice_bounds_of,
    slice_sweep,
    total_strips,
    weigh,
)
from pymc_dpsplit.moves.sweep.tile_labels import Reach
from pymc_dpsplit.sampler import NOTHING_KEPT, Schedule
from pymc_dpsplit.samplers.av_parallel import draw_processors, iterate_av_parallel
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from pymc_dpsplit.samplers.jain_neal import divide_from_launch, restricted_scan
from pymc_dpsplit.samplers.neal2 import marginal_sweep
from pymc_dpsplit.samplers.neal8 import auxiliary_sweep, fill_auxiliary, redraw_label
from pymc_dpsplit.samplers.sams import divide_in_sequence
from pymc_dpsplit.samplers.slice_sampler import slice_sweep_of_sticks
from pymc_dpsplit.samplers.sticks import draw_positions
from pymc_dpsplit.samplers.sub_cluster_proposals import decide_by_sub_clusters
from pymc_dpsplit.samplers.two_sides import decide_by_ratio, fill_sides, sides_to_reach
from tests.support.moves import Move, sweep, three_transfers


def assign(
    target, labels, rng, log_weights, params, slice_bounds, order=None, floor=None, slice_key=None
):
    """Draw labels given atoms and the ends of their slices; return the new statistics."""
    prior, data = target.prior, target.data
    floor = 1.0 / len(labels) if floor is None else floor
    strip_stats = new_strip_stats(prior, len(labels), len(slice_bounds))
    slice_key = draw_key(rng) if slice_key is None else slice_key
    keys = np.uint64(slice_key), np.uint64(draw_key(rng))
    weighed = weigh(prior, log_weights, params, floor)
    order = np.argsort(log_weights) if order is None else order
    reach = Reach(slice_bounds, order, floor, by_slice=False, factors=None)
    assign_strips(prior, data, labels, weighed, reach, None, *keys, strip_stats, new_counter())
    totals, renumbered = total_strips(strip_stats)
    renumber(labels, renumbered, new_counter())
    return totals


def _emptying(target, labels, stats, rng):
    """Labels among the occupied clusters only: clusters die and are never born."""
    log_weights, _, params = draw_measure(target, stats, rng)
    slice_bounds = slice_bounds_of(log_weights, 1.0 / len(labels))
    return assign(target, labels, rng, log_weights, params, slice_bounds)


def _shifted(target, labels, stats, rng):
    """Slices reach beyond the weight of small atoms, and nothing makes up for it."""
    floor = 1.0 / len(labels)
    log_weights, log_rest, params = draw_measure(target, stats, rng)
    log_weights, params, _ = break_remainder(
        target, rng, log_weights, log_rest, params, np.log(1e-6 * floor)
    )
    slice_bounds = np.minimum(slice_bounds_of(log_weights, floor) + 0.5 * floor, floor)
    return assign(target, labels, rng, log_weights, params, slice_bounds)


def _by_number(target, labels, stats, rng):
    """Labels go to the other side of atoms in the order of clusters: the occupied come first."""
    log_weights, log_rest, params = draw_measure(target, stats, rng)
    log_weights, params, _ = break_remainder(
        target, rng, log_weights, log_rest, params, np.log(1e-6 / len(labels))
    )
    # A floor below all weights: slices exclude no atom, so that the order alone is wrong.
    floor = 1e-9 / len(labels)
    slice_bounds, order = np.full(len(log_weights), floor), np.arange(len(log_weights))
    return assign(target, labels, rng, log_weights, params, slice_bounds, order, floor)


def _uncompensated(target, labels, stats, rng):
    """An exact sweep, then splits accepted without the probability of the division."""
    stats = slice_sweep(target, labels, stats, rng)
    return greedy_attempt(target, labels, stats, rng, np.zeros(4, np.int64))


def _unselected(target, labels, stats, rng):
    """The informed move without the probabilities of choosing the cluster and the pair."""
    log_u = -rng.standard_exponential()
    stream = new_stream(np.uint64(draw_key(rng)))
    if rng.random() < 0.5:
        cluster = draw_cluster(target, labels, stats, stream)
        members, side, pair, log_q = draw_division(
            target, labels, stats, stream, cluster, no_anchors()
        )
        if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
            return stats
        if log_u >= log_split_ratio(target, len(stats), pair[0], pair[1], stats[cluster]) - log_q:
            return stats
        return apply_split(labels, stats, cluster, members, side, pair[0], pair[1])
    if len(stats) == 1:
        return stats
    a, b = draw_pair(target.prior, labels, stats, log_marginals(target.prior, stats), stream)
    log_q = log_division_probability(target, labels, stats, stream, a, b, no_anchors())
    if log_u >= log_q - log_split_ratio(
        target, len(stats) - 1, stats[a], stats[b], stats[a] + stats[b]
    ):
        return stats
    return apply_merge(labels, stats, a, b)


def wrong_by(factor: float) -> Move:
    """Collapsed Gibbs that sees the concentration multiplied by a factor."""

    def scaled(target, labels, stats, rng):
        target = target._replace(law=dirichlet_process(factor * target.law.strength))
        return collapsed_sweep(target, labels, stats, rng)

    return sweep(scaled)


def _drawn_together(target, labels, stats, rng):
    """Anchored pairs, of which half are drawn within a cluster: units chosen by the partition."""
    for _ in range(4):
        anchors = rng.choice(len(labels), 2, replace=False)
        companions = np.flatnonzero(labels == labels[anchors[0]])
        if rng.random() < 0.5 and len(companions) > 1:
            anchors[1] = rng.choice(companions[companions != anchors[0]])
        stream = new_stream(np.uint64(draw_key(rng)))
        decision = decide_for_pair(target, labels, stats, stream, anchors)
        stats = carry_out(labels, stats, decision, np.zeros(4, np.int64))
    return stats


def _mismatched(target, labels, stats, rng):
    """Over-relaxed sweeps in which clusters follow each other's atoms, not their own."""
    atoms = no_atoms(target.prior)
    for _ in range(3):
        stats, (_, log_weights, params) = next_sweep(target, labels, stats, rng, atoms)
        atoms = Atoms(stats, log_weights, params[::-1].copy())
    return stats


def _launched_by_the_division(target, labels, stats, rng):
    """The move of Jain & Neal, but a merge launches from the division that it removes."""
    stream = new_stream(np.uint64(draw_key(rng)))
    anchors = draw_anchors(len(labels), stream)
    a, b = np.int64(labels[anchors])
    members = members_of(labels, stats, a, b)
    goal = sides_to_reach(labels, members, a, b)
    side, size = goal.copy(), predictive_size(target.prior)
    sizes, caches = np.zeros(2), np.zeros((2, size))
    if a == b:
        log_q = divide_from_launch(target, members, anchors, side, goal, stream)
    else:
        fill_sides(target.prior, target.data, members, side, sizes, caches)
        log_q = restricted_scan(target, members, anchors, side, goal, sizes, caches, stream)
    log_u = -rng.standard_exponential()
    decision = decide_by_ratio(target, stats, a, b, members, side, log_q, log_u)
    return carry_out(labels, stats, decision, np.zeros(4, np.int64))


def _merged_without_reverse(target, labels, stats, rng):
    """Sequentially allocated splits, and merges that take their reverse for certain."""
    stream = new_stream(np.uint64(draw_key(rng)))
    anchors = draw_anchors(len(labels), stream)
    a, b = np.int64(labels[anchors])
    members = members_of(labels, stats, a, b)
    side = sides_to_reach(labels, members, a, b)
    log_q = 0.0
    if a == b:
        log_q = divide_in_sequence(target, members, anchors, side, side.copy(), stream)
    log_u = -rng.standard_exponential()
    decision = decide_by_ratio(target, stats, a, b, members, side, log_q, log_u)
    return carry_out(labels, stats, decision, np.zeros(4, np.int64))


def altered(kernel: Any, **changed: Any) -> Any:
    """Compile the function of a kernel with other functions in the place of some that it calls."""
    honest = kernel.__wrapped__
    return numba.njit(FunctionType(honest.__code__, {**honest.__globals__, **changed}))


@numba.njit
def _accept_bounds(
    prior, data, i, positions, log_prior, own, log_own, log_new, alone, limit, p, rng
):
    return p


def scan_of_bounds(
    unlikely: float, finishes: bool = True, kernel: Any = scan.collapsed_scan
) -> Any:
    """Return a kernel that visits, with another difference of log masses for unfinished densities.

    The kernel is `collapsed_scan` or `collapsed_sweep`; one that does not finish densities that are
    chosen draws by bounds.
    """
    limits = altered(scan.limits_of_densities, _UNLIKELY=unlikely)
    finish = scan.finish_choice if finishes else _accept_bounds
    draw = altered(scan._draw_position, limits_of_densities=limits, finish_choice=finish)
    visit_some = altered(scan._visit_some, _draw_position=draw)
    return altered(kernel, _visit=altered(scan._visit, _visit_some=visit_some))


@numba.njit
def _fill_anew(prior, tile, clusters, n_clusters, is_alone, auxiliary, rng):
    fill_auxiliary(prior, tile, clusters, n_clusters, False, auxiliary, rng)


# Auxiliary clusters among which an observation that was alone does not find its own parameters.
_forgetful = altered(auxiliary_sweep, redraw_label=altered(redraw_label, fill_auxiliary=_fill_anew))


def _founded_without_marginal(target, labels, stats, rng):
    """The marginal sampler that founds clusters with mass alpha, whatever the observation is."""
    return marginal_sweep(target, labels, stats, np.zeros(len(labels)), rng)


@numba.njit
def _leave_remainder(target, rng, log_weights, log_rest, params, log_floor):
    return log_weights, params, log_rest


_short_of_sticks = altered(slice_sweep_of_sticks, break_remainder=_leave_remainder)


def _too_few_sticks(target, labels, stats, rng):
    """A sweep over sticks in their order that breaks none after the last one with observations."""
    positions = draw_positions(target.law, labels, stats, rng)
    return _short_of_sticks(target, labels, stats, positions, rng)[0]


def _sticks_by_number(target, labels, stats, rng):
    """A sweep over sticks of which the clusters have the first, in the order of their numbers."""
    positions = np.arange(len(stats))
    return slice_sweep_of_sticks(target, labels, stats, positions, rng)[0]


def _sub_clusters_within_clusters(target, labels, stats, rng):
    """Splits and merges proposed by sub-clusters that divide the clusters, as the paper has them.

    A merge then launches from the division that it removes.
    """
    for _ in range(3):
        sub_labels = (2 * labels + rng.integers(2, size=len(labels))).astype(np.int8)
        key = np.uint64(draw_key(rng))
        decision = decide_by_sub_clusters(target, labels, stats, sub_labels, key)
        stats = carry_out(labels, stats, decision, np.zeros(4, np.int64))
    return stats


_EQUAL = np.full(3, 1.0 / 3.0)


@numba.njit
def _draw_equally(labels, stats, shares, rng):
    return draw_processors(labels, stats, _EQUAL, rng)


_by_shares_and_equally = altered(iterate_av_parallel, draw_processors=_draw_equally)


def _processors_drawn_equally(target, labels, stats, rng):
    """Uneven processors, each with its share of alpha, to which clusters go with equal odds."""
    settings = SAMPLERS["av-parallel"].settings({"shares": (0.9, 0.09, 0.01)})
    schedule = Schedule(2, 0.0, np.empty(0, np.int64), settings=settings)
    given = target, labels, stats, rng, schedule, np.zeros(4, np.int64), *NOTHING_KEPT
    return _by_shares_and_equally(*given)[0]


# For tests of its own: few atoms without observations hide it.
sweep_by_number = sweep(_by_number)


@numba.njit
def _for_certain(target, labels, stats, stream, a, b, anchors):
    return 0.0


@numba.njit
def _anchors_alike(n_origin, n_moving, n_goal):
    return 0.0


# Transfers that take the division on the way back for certain, and that take all anchors as equally
# probable.
_one_way = altered(transfer_attempt, log_division_probability=_for_certain)
_by_any_anchors = altered(transfer_attempt, _log_ratio_of_anchors=_anchors_alike)

# Each is of one sampler of the room `samplers`.
CONTROLS_OF_PUBLISHED: dict[str, Move] = {
    "launch from the division": sweep(_launched_by_the_division),
    "merge without its reverse": sweep(_merged_without_reverse),
    "founded without the marginal": sweep(_founded_without_marginal),
    "forgotten parameters": sweep(_forgetful),
    "too few sticks": sweep(_too_few_sticks),
    "sticks by number": sweep(_sticks_by_number),
    "processors drawn equally": sweep(_processors_drawn_equally),
    "sub-clusters within clusters": sweep(_sub_clusters_within_clusters),
}
CONTROLS: dict[str, Move] = {
    "emptying sweep": sweep(_emptying),
    "shifted slice": sweep(_shifted),
    "mismatched atoms": sweep(_mismatched),
    "uncompensated split": sweep(_uncompensated),
    "unselected merge": sweep(_unselected),
    "doubled concentration": wrong_by(2.0),
    "units chosen by the partition": sweep(_drawn_together),
    "transfer without its way back": three_transfers(_one_way),
    "transfer by any anchors": three_transfers(_by_any_anchors),
    **CONTROLS_OF_PUBLISHED,
}
