"""Two-cluster fit inside a set of observations, from which splits are proposed.

The launch may be any random function of the set and the anchors: it does not enter the
acceptance probability (docs/method.md, launch lemma).  It must not depend on how the set is
divided at present.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_log_density,
    load_tile,
    mean_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity
from pymc_dpsplit.components.optional import begin_tile, entry_of
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.streams import next_index, next_key, next_uniform
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch

_SUBSAMPLE = 500
_SCANS = 3
_CANDIDATES = 3
# Share of launches that start from a column.
_BY_COLUMN = 0.25


@jitted
def fit_pair(prior, pair_stats, log_shares, params):
    """Write plug-in parameters and log shares of two clusters, given their statistics.

    Half an observation is added to each size, so that no share is zero.

    Parameters
    ----------
    prior : NamedTuple
    pair_stats : ndarray of float64, shape (2, S)
    log_shares : ndarray of float64, shape (2,)
    params : ndarray of float64, shape (2, P)
        Both overwritten.
    """
    for c in range(2):
        log_shares[c] = math.log(pair_stats[c, 0] + 0.5)
        mean_parameters(prior, pair_stats[c], params[c])


@jitted
def fill_log_odds(prior, data, rows, log_shares, params, odds, tile, scratch):
    """Write the log odds of cluster 0 against cluster 1 for the observations `rows`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    rows : ndarray of int64, shape (TILE,)
    log_shares : ndarray of float64, shape (2,)
    params : ndarray of float64, shape (2, P)
        Results of `fit_pair`.
    odds : ndarray of float64, shape (TILE,)
        Overwritten.
    tile : object
        Scratch, a result of `begin_tile`.
    scratch : ndarray of float64, shape (5 * TILE,)
    """
    load_tile(prior, data, rows, tile)
    other = scratch[4 * TILE : 5 * TILE]
    fill_log_density(prior, tile, params[0], odds, scratch)
    fill_log_density(prior, tile, params[1], other, scratch)
    shift = log_shares[0] - log_shares[1]
    for t in range(TILE):
        odds[t] += multiplicity(prior, data, rows[t]) * shift - other[t]


@jitted
def _scan(prior, data, members, anchors, log_shares, params, stream):
    """Draw the sides of `members` independently, anchors held; return statistics, shape (2, S)."""
    pair_stats = np.zeros((2, stats_size(prior)))
    rows = new_rows()
    tile = begin_tile(prior, data)
    scratch = new_scratch(5)
    odds = new_scratch(1)
    key = next_key(stream)
    for c in range(2):
        if anchors[c] >= 0:
            add_row(prior, data, anchors[c], pair_stats[c])
    for first in range(0, members.shape[0], TILE):
        fill_members(rows, members, first)
        fill_log_odds(prior, data, rows, log_shares, params, odds, tile, scratch)
        for t in range(min(TILE, members.shape[0] - first)):
            i = rows[t]
            if i != anchors[0] and i != anchors[1]:
                u = hash_uniform(key, i)
                side = 0 if odds[t] > math.log(u / (1.0 - u)) else 1
                add_row(prior, data, i, pair_stats[side])
    return pair_stats


@jitted
def _draw_seeds(prior, data, members, stream):
    """Draw two seeds: a random member, and the least likely of three given the first.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    ndarray of int64, shape (2,)
    """
    n_members = members.shape[0]
    seeds = np.empty(2, np.int64)
    seeds[0] = members[next_index(stream, n_members)]
    one = np.zeros(stats_size(prior))
    add_row(prior, data, seeds[0], one)
    params = np.empty(params_size(prior))
    mean_parameters(prior, one, params)
    rows = new_rows()
    for t in range(TILE):
        rows[t] = seeds[0]
    for t in range(_CANDIDATES):
        rows[t] = members[next_index(stream, n_members)]
    tile = begin_tile(prior, data)
    values = new_scratch(1)
    load_tile(prior, data, rows, tile)
    fill_log_density(prior, tile, params, values, new_scratch(4))
    worst = 0
    for t in range(1, _CANDIDATES):
        if values[t] < values[worst]:
            worst = t
    seeds[1] = rows[worst]
    return seeds


@jitted
def _subsample(members, stream):
    """At most 500 of the members, evenly spaced from a random offset."""
    n_members = members.shape[0]
    if n_members <= _SUBSAMPLE:
        return members
    some = np.empty(_SUBSAMPLE, np.int64)
    offset = next_uniform(stream)
    for j in range(_SUBSAMPLE):
        some[j] = members[np.int64((j + offset) * n_members / _SUBSAMPLE)]
    return some


@jitted
def _divide_by_column(prior, data, members, anchors, stream):
    """Put those on side 0 that are as near in a random column to a random member as another one.

    If many observations have one value, as the zeros of a measurement that was not made, both
    members often have it, and side 0 is those alone.  Anchor 0, if any, takes the place of the
    first member.

    Returns
    -------
    ndarray of float64, shape (2, S)
        Side 0 is empty if the family does not say what is in a column, or if anchor 1 is as near.
    """
    pair_stats, n_members = np.zeros((2, stats_size(prior))), members.shape[0]
    j, first = next_index(stream, data.shape[1]), members[next_index(stream, n_members)]
    centre = entry_of(prior, data, anchors[0] if anchors[0] >= 0 else first, j)
    width = abs(entry_of(prior, data, members[next_index(stream, n_members)], j) - centre)
    if anchors[1] >= 0 and abs(entry_of(prior, data, anchors[1], j) - centre) <= width:
        return pair_stats
    for q in range(n_members):
        is_near = abs(entry_of(prior, data, members[q], j) - centre) <= width
        add_row(prior, data, members[q], pair_stats[0 if is_near else 1])
    return pair_stats


@jitted
def _start(prior, data, members, some, anchors, stream):
    """Statistics from which a launch starts, shape (2, S): of a column, the anchors or two seeds.

    `some` are the members of the launch, and without anchors seeds are drawn from all `members`.
    """
    if next_uniform(stream) < _BY_COLUMN:
        pair_stats = _divide_by_column(prior, data, some, anchors, stream)
        if pair_stats[0, 0] > 0.0 and pair_stats[1, 0] > 0.0:
            return pair_stats
    pair_stats = np.zeros((2, stats_size(prior)))
    seeds = anchors if anchors[0] >= 0 else _draw_seeds(prior, data, members, stream)
    for c in range(2):
        add_row(prior, data, seeds[c], pair_stats[c])
    return pair_stats


@jitted
def launch(prior, data, members, anchors, stream):
    """Fit two clusters to `members`.

    Parameters
    ----------
    prior : NamedTuple
    data : ndarray of float64, shape (N, D)
    members : ndarray of int64, shape (n,)
    anchors : ndarray of int64, shape (2,)
        Observations held on sides 0 and 1, or -1 for none.
    stream : ndarray of uint64, shape (2,)

    Returns
    -------
    log_shares : ndarray of float64, shape (2,)
    params : ndarray of float64, shape (2, P)
    """
    log_shares = np.empty(2)
    params = np.empty((2, params_size(prior)))
    some = _subsample(members, stream)
    fit_pair(prior, _start(prior, data, members, some, anchors, stream), log_shares, params)
    for _ in range(_SCANS):
        pair_stats = _scan(prior, data, some, anchors, log_shares, params, stream)
        fit_pair(prior, pair_stats, log_shares, params)
    return log_shares, params
