"""Negative controls: moves broken on purpose.  A test that does not catch them is worthless.

Each is a real mistake: the first two are those of published and shipped samplers.
"""

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.anchored import decide_for_pair
from pymc_dpsplit.moves.assignment import (
    assign_strips,
    new_counter,
    new_strip_stats,
    next_sweep,
    renumber,
    slice_caps,
    slice_sweep,
    total_strips,
    weigh,
)
from pymc_dpsplit.moves.decision import carry_out
from pymc_dpsplit.moves.greedy import greedy_attempt
from pymc_dpsplit.moves.informed import log_division_probability, propose_split
from pymc_dpsplit.moves.measure import Atoms, break_remainder, draw_measure, no_atoms
from pymc_dpsplit.moves.partition import apply_merge, apply_split, log_split_ratio
from pymc_dpsplit.moves.selection import draw_cluster, draw_pair, log_marginals
from pymc_dpsplit.moves.tile_labels import Reach
from tests.support.moves import Move, sweep


def _assign(prior, data, labels, log_weights, params, caps, rng, order=None):
    strip_stats = new_strip_stats(prior, len(labels), len(caps))
    keys = np.uint64(draw_key(rng)), np.uint64(draw_key(rng))
    weighed = weigh(log_weights, params, 1.0 / len(labels))
    reach = Reach(caps, np.argsort(log_weights) if order is None else order)
    assign_strips(prior, data, labels, weighed, reach, None, *keys, strip_stats, new_counter())
    totals, renumbered = total_strips(strip_stats)
    renumber(labels, renumbered, new_counter())
    return totals


def _emptying(prior, data, labels, stats, alpha, rng):
    """Labels among the occupied clusters only: clusters die and are never born."""
    log_weights, _, params = draw_measure(prior, stats, alpha, rng)
    caps = slice_caps(log_weights, 1.0 / len(labels))
    return _assign(prior, data, labels, log_weights, params, caps, rng)


def _shifted(prior, data, labels, stats, alpha, rng):
    """Slices reach beyond the weight of small atoms, and nothing makes up for it."""
    floor = 1.0 / len(labels)
    log_weights, log_rest, params = draw_measure(prior, stats, alpha, rng)
    log_weights, params = break_remainder(
        prior, log_weights, log_rest, params, alpha, np.log(1e-6 * floor), rng
    )
    caps = np.minimum(slice_caps(log_weights, floor) + 0.5 * floor, floor)
    return _assign(prior, data, labels, log_weights, params, caps, rng)


def _by_number(prior, data, labels, stats, alpha, rng):
    """Labels go to the other side of atoms in the order of clusters: the occupied come first."""
    log_weights, log_rest, params = draw_measure(prior, stats, alpha, rng)
    log_weights, params = break_remainder(
        prior, log_weights, log_rest, params, alpha, np.log(1e-6 / len(labels)), rng
    )
    caps = slice_caps(log_weights, 1.0 / len(labels))
    return _assign(prior, data, labels, log_weights, params, caps, rng, np.arange(len(caps)))


def _uncompensated(prior, data, labels, stats, alpha, rng):
    """An exact sweep, then splits accepted without the probability of the division."""
    stats = slice_sweep(prior, data, labels, stats, alpha, rng)
    return greedy_attempt(prior, data, labels, stats, alpha, rng, np.zeros(4, np.int64))


def _unselected(prior, data, labels, stats, alpha, rng):
    """The informed move without the probabilities of choosing the cluster and the pair."""
    log_u = -rng.standard_exponential()
    stream = new_stream(np.uint64(draw_key(rng)))
    if rng.random() < 0.5:
        cluster = draw_cluster(stats, stream)
        members, side, pair, log_q = propose_split(prior, data, labels, stats, cluster, stream)
        if pair[0, 0] == 0.0 or pair[1, 0] == 0.0:
            return stats
        if log_u >= log_split_ratio(prior, alpha, pair[0], pair[1], stats[cluster]) - log_q:
            return stats
        return apply_split(labels, stats, cluster, members, side, pair[0], pair[1])
    if len(stats) == 1:
        return stats
    a, b = draw_pair(prior, stats, log_marginals(prior, stats), stream)
    log_q = log_division_probability(prior, data, labels, stats, a, b, stream)
    if log_u >= log_q - log_split_ratio(prior, alpha, stats[a], stats[b], stats[a] + stats[b]):
        return stats
    return apply_merge(labels, stats, a, b)


def _doubled(prior, data, labels, stats, alpha, rng):
    """Collapsed Gibbs that sees twice the concentration."""
    return sampler.collapsed_sweep(prior, data, labels, stats, 2.0 * alpha, rng)


def _drawn_together(prior, data, labels, stats, alpha, rng):
    """Anchored pairs, of which half are drawn within a cluster: units chosen by the partition."""
    for _ in range(4):
        anchors = rng.choice(len(labels), 2, replace=False)
        companions = np.flatnonzero(labels == labels[anchors[0]])
        if rng.random() < 0.5 and len(companions) > 1:
            anchors[1] = rng.choice(companions[companions != anchors[0]])
        stream = new_stream(np.uint64(draw_key(rng)))
        decision = decide_for_pair(prior, data, labels, stats, alpha, anchors, stream)
        stats = carry_out(labels, stats, decision, np.zeros(4, np.int64))
    return stats


def _mismatched(prior, data, labels, stats, alpha, rng):
    """Over-relaxed sweeps in which clusters follow each other's atoms, not their own."""
    atoms = no_atoms(prior)
    for _ in range(3):
        stats, (_, log_weights, params) = next_sweep(prior, data, labels, stats, alpha, rng, atoms)
        atoms = Atoms(stats, log_weights, params[::-1].copy())
    return stats


# For tests of its own: few atoms without observations hide it.
sweep_by_number = sweep(_by_number)

CONTROLS: dict[str, Move] = {
    "emptying sweep": sweep(_emptying),
    "shifted slice": sweep(_shifted),
    "mismatched atoms": sweep(_mismatched),
    "uncompensated split": sweep(_uncompensated),
    "unselected merge": sweep(_unselected),
    "doubled concentration": sweep(_doubled),
    "units chosen by the partition": sweep(_drawn_together),
}
