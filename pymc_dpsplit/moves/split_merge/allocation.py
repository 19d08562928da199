"""Proposal q(z | v) of a division of a set in two: draws from it and its probability.

The set is allocated in blocks.  Within a block the sides are independent given plug-in
parameters, which come from the launch (first block) or from the previous blocks (later ones).
So the proposal is normalised, its probability is known for a given division as well as for a
drawn one, and each block is parallel, eq. (3.2).
"""

import math

import numpy as np

from pymc_dpsplit.components.base import add_row, stats_size
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.rows import add_rows
from pymc_dpsplit.kernels.streams import next_key
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.moves.split_merge.launch import fill_log_odds, fit_pair

_BLOCKS = 3
# Any constant will do.  The block of an observation never changes.
_BLOCK_KEY = np.uint64(0x5851F42D4C957F2D)


@jitted
def _block_of(i):
    """Block of an observation: a fixed random choice, each block as large as all previous ones."""
    u = hash_uniform(_BLOCK_KEY, i)
    block = _BLOCKS - 1
    while block > 0 and u < 0.5:
        u *= 2.0
        block -= 1
    return block


@jitted
def order_by_block(members):
    """Sort members by block.

    Parameters
    ----------
    members : ndarray of int64, shape (n,)

    Returns
    -------
    ordered : ndarray of int64, shape (n,)
    bounds : ndarray of int64, shape (B + 1,)
        Block b is ordered[bounds[b] : bounds[b + 1]].
    """
    bounds = np.zeros(_BLOCKS + 1, np.int64)
    for j in range(members.shape[0]):
        bounds[_block_of(members[j]) + 1] += 1
    for b in range(_BLOCKS):
        bounds[b + 1] += bounds[b]
    at = bounds[:_BLOCKS].copy()
    ordered = np.empty_like(members)
    for j in range(members.shape[0]):
        b = _block_of(members[j])
        ordered[at[b]] = members[j]
        at[b] += 1
    return ordered, bounds


@jitted
def _log_one_plus_exp(x):
    """log(1 + exp(x)) without overflow."""
    return x + math.log1p(math.exp(-x)) if x > 0.0 else math.log1p(math.exp(x))


@jitted
def allocate(prior, data, members, bounds, anchors, log_shares, params, side, draw, stream):
    """Draw the sides of `members`, or evaluate the probability of given sides.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    bounds : ndarray of int64, shape (B + 1,)
        Result of `order_by_block`.
    anchors : ndarray of int64, shape (2,)
        Observations held on sides 0 and 1, or -1 for none; they contribute no probability.
    log_shares : ndarray of float64, shape (2,)
    params : ndarray of float64, shape (2, P)
        Results of `launch`; overwritten.
    side : ndarray of int8, shape (n,)
        0 or 1 for each member: written if `draw`, else read.
    draw : bool
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    pair_stats : ndarray of float64, shape (2, S)
    log_q : float
        Log probability of `side`.
    log_q_swapped : float
        Log probability with the two sides exchanged.  Later blocks are symmetric under the
        exchange, the first is not.
    """
    pair_stats = np.zeros((2, stats_size(prior)))
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(5)
    odds = new_scratch(1)
    key = next_key(stream)
    log_q, log_q_swapped = 0.0, 0.0
    for c in range(2):
        if anchors[c] >= 0:
            add_row(prior, data, anchors[c], pair_stats[c])
    for block in range(bounds.shape[0] - 1):
        from_launch = block == 0 or pair_stats[0, 0] + pair_stats[1, 0] == 0.0
        if not from_launch:
            fit_pair(prior, pair_stats, log_shares, params)
        block_members = members[: bounds[block + 1]]
        # Sides within a block are independent, so its statistics are added after the block.
        joining = np.zeros((2, stats_size(prior)))
        for first in range(bounds[block], bounds[block + 1], TILE):
            fill_members(rows, block_members, first)
            fill_log_odds(prior, data, rows, log_shares, params, odds, tile, scratch)
            for t in range(min(TILE, bounds[block + 1] - first)):
                i = rows[t]
                if i == anchors[0] or i == anchors[1]:
                    side[first + t] = 0 if i == anchors[0] else 1
                    continue
                if draw:
                    u = hash_uniform(key, i)
                    side[first + t] = 0 if odds[t] > math.log(u / (1.0 - u)) else 1
                s = side[first + t]
                log_p = -_log_one_plus_exp(-odds[t])
                log_q += log_p if s == 0 else log_p - odds[t]
                log_q_swapped += log_p - odds[t] if (s == 0) == from_launch else log_p
                add_row(prior, data, i, joining[s])
        add_rows(joining, pair_stats)
    return pair_stats, log_q, log_q_swapped
