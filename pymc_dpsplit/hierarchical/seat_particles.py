"""Particles for the rows of one group, beside the clusters of all other groups, eq. (16.17).

A particle takes row after row into a cluster of other groups, a cluster that its own rows have
opened, or a new one, by the masses of eq. (16.1).  Its weight is multiplied by their sum, which
does not depend on the choice.  The first particle follows given labels throughout, and stays when
particles are resampled (conditional sequential Monte Carlo, Andrieu, Doucet & Holenstein 2010).
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import (
    add_row,
    fill_predictive,
    log_predictive,
    predictive_size,
    stats_size,
)
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import categorical_at
from pymc_dpsplit.moves.partition_law import draw_stick

# Particles are resampled if they are worth fewer than this share of them.
_LEAST_SHARE = 0.5


class SeatParticles(NamedTuple):
    """Particles of the rows of a group, up to some row.

    Attributes
    ----------
    known : ndarray of int64, shape (R, K)
        Number of rows in each cluster of other groups.
    opened : ndarray of int64, shape (R, C)
        Number of rows in each cluster that the group alone has.
    n_opened : ndarray of int64, shape (R,)
        Number of these.
    weights : ndarray of float64, shape (R, C)
        Their global weights.
    log_rest : ndarray of float64, shape (R,)
        Log of the global weight of the remainder.
    stats : ndarray of float64, shape (R, C, S)
    caches : ndarray of float64, shape (R, C, P)
        Predictive densities of the clusters that the group alone has.
    masses : ndarray of float64, shape (R, K + C + 1)
        Workspace.
    log_weights : ndarray of float64, shape (R,)
        Since particles were last resampled.
    log_evidence : ndarray of float64, shape (1,)
        Log of the estimate up to then.
    """

    known: np.ndarray
    opened: np.ndarray
    n_opened: np.ndarray
    weights: np.ndarray
    log_rest: np.ndarray
    stats: np.ndarray
    caches: np.ndarray
    masses: np.ndarray
    log_weights: np.ndarray
    log_evidence: np.ndarray


class GivenSeats(NamedTuple):
    """Labels that the first particle follows.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        Of the rows of the group: clusters 0 .. K - 1 of other groups, then those of the group alone
        by their first rows.
    weights : ndarray of float64, shape (C,)
        Global weights of the latter.
    log_rests : ndarray of float64, shape (C,)
        Log of the remainder once each of them is open.
    """

    labels: np.ndarray
    weights: np.ndarray
    log_rests: np.ndarray


@jitted
def no_seats(prior, n_particles, n_known, log_rest):
    """Particles before the first row.

    Parameters
    ----------
    prior : NamedTuple
    n_particles : int
        R.
    n_known : int
        Number of clusters of other groups K.
    log_rest : float
        Log of the global weight of everything else.

    Returns
    -------
    SeatParticles
    """
    return _with_room(prior, n_particles, n_known, 4, log_rest)


@jitted
def _with_room(prior, n_particles, n_known, capacity, log_rest):
    return SeatParticles(
        np.zeros((n_particles, n_known), np.int64),
        np.zeros((n_particles, capacity), np.int64),
        np.zeros(n_particles, np.int64),
        np.zeros((n_particles, capacity)),
        np.full(n_particles, log_rest),
        np.zeros((n_particles, capacity, stats_size(prior))),
        np.zeros((n_particles, capacity, predictive_size(prior))),
        np.zeros((n_particles, n_known + capacity + 1)),
        np.zeros(n_particles),
        np.zeros(1),
    )


@jitted
def _widened(prior, seats):
    """Copy particles into twice as much room for clusters."""
    (n_particles, n_known), capacity = seats.known.shape, seats.opened.shape[1]
    wider = _with_room(prior, n_particles, n_known, 2 * capacity, 0.0)
    wider.known[:], wider.n_opened[:] = seats.known, seats.n_opened
    wider.opened[:, :capacity] = seats.opened
    wider.weights[:, :capacity] = seats.weights
    wider.log_rest[:] = seats.log_rest
    wider.stats[:, :capacity] = seats.stats
    wider.caches[:, :capacity] = seats.caches
    wider.log_weights[:], wider.log_evidence[:] = seats.log_weights, seats.log_evidence
    return wider


@jitted
def _weigh(target, i, log_known, weights, seats, p):
    """Write the masses of row i in a particle; return the log of their sum.

    `log_known` (K + 1,) are log densities in the clusters of other groups, and in a new one.
    """
    prior, data, _ = target.of_rows
    masses, n_known, n_opened = seats.masses[p], weights.shape[0], seats.n_opened[p]
    highest = log_known.max()
    for c in range(n_opened):
        masses[n_known + c] = log_predictive(prior, data, i, seats.caches[p, c])
        highest = max(highest, masses[n_known + c])
    total = 0.0
    for k in range(n_known):
        prior_mass = seats.known[p, k] + target.alpha * weights[k]
        masses[k] = prior_mass * math.exp(log_known[k] - highest)
        total += masses[k]
    for c in range(n_opened):
        prior_mass = seats.opened[p, c] + target.alpha * seats.weights[p, c]
        masses[n_known + c] = prior_mass * math.exp(masses[n_known + c] - highest)
        total += masses[n_known + c]
    new = target.alpha * math.exp(seats.log_rest[p] + log_known[n_known] - highest)
    masses[n_known + n_opened] = new
    return highest + math.log(total + new)


@jitted
def _take_in(target, i, goal, seats, p):
    """Put row i of a particle in cluster `goal`, whose weight is known."""
    prior, data, _ = target.of_rows
    c = goal - seats.known.shape[1]
    if c < 0:
        seats.known[p, goal] += 1
        return
    if c == seats.n_opened[p]:
        seats.n_opened[p] += 1
        seats.opened[p, c] = 0
        seats.stats[p, c] = 0.0
    seats.opened[p, c] += 1
    add_row(prior, data, i, seats.stats[p, c])
    fill_predictive(prior, seats.stats[p, c], seats.caches[p, c])


@jitted
def _choose(target, i, seats, p, rng):
    """Draw the cluster of row i in a particle, with its weight if it is new."""
    n_known, n_opened = seats.known.shape[1], seats.n_opened[p]
    goal = categorical_at(rng.random(), seats.masses[p, : n_known + n_opened + 1])
    if goal == n_known + n_opened:
        log_share, log_left = draw_stick(target.of_rows.law, 0, rng)
        seats.weights[p, n_opened] = math.exp(seats.log_rest[p] + log_share)
        seats.log_rest[p] += log_left
    _take_in(target, i, goal, seats, p)


@jitted
def _follow(target, i, goal, given, seats):
    """Put row i of the first particle where it is given to be."""
    c = goal - seats.known.shape[1]
    if c == seats.n_opened[0]:
        seats.weights[0, c], seats.log_rest[0] = given.weights[c], given.log_rests[c]
    _take_in(target, i, goal, seats, 0)


@jitted
def mean_weight(log_weights):
    """Log of the mean of weights, given their logarithms, shape (R,)."""
    highest = log_weights.max()
    return highest + math.log(np.exp(log_weights - highest).mean())


@jitted
def _resample(seats, rng):
    """Redraw all particles but the first with probabilities proportional to their weights."""
    n = seats.log_weights.shape[0]
    shares = np.exp(seats.log_weights - seats.log_weights.max())
    if shares.sum() ** 2 >= _LEAST_SHARE * n * (shares**2).sum():
        return
    seats.log_evidence[0] += mean_weight(seats.log_weights)
    seats.log_weights[:] = 0.0
    copies = np.zeros(n, np.int64)
    copies[0] = 1
    for _ in range(n - 1):
        copies[categorical_at(rng.random(), shares)] += 1
    source = 0
    for p in range(n):
        if copies[p] > 0:
            continue
        while copies[source] < 2:
            source += 1
        copies[source] -= 1
        seats.known[p], seats.opened[p] = seats.known[source], seats.opened[source]
        seats.n_opened[p], seats.log_rest[p] = seats.n_opened[source], seats.log_rest[source]
        seats.weights[p], seats.stats[p] = seats.weights[source], seats.stats[source]
        seats.caches[p], seats.masses[p] = seats.caches[source], seats.masses[source]


@jitted
def seat_rows(target, where, log_known, weights, given, first, seats, rng):
    """Take rows of the group into all particles.

    Parameters
    ----------
    target : GroupedTarget
    where : ndarray of int64, shape (m,)
        Indices of the rows.
    log_known : ndarray of float64, shape (m, K + 1)
        Their log densities in the clusters of other groups, and in a new one.
    weights : ndarray of float64, shape (K,)
        Global weights of the clusters of other groups.
    given : GivenSeats
    first : int
        Position of the first of these rows among those of the group.
    seats : SeatParticles
        Changed.
    rng : numpy.random.Generator

    Returns
    -------
    SeatParticles
    """
    n = seats.log_weights.shape[0]
    for r in range(where.shape[0]):
        i = where[r]
        if seats.n_opened.max() == seats.opened.shape[1]:
            seats = _widened(target.of_rows.prior, seats)
        for p in range(n):
            log_sum = _weigh(target, i, log_known[r], weights, seats, p)
            seats.log_weights[p] += log_sum - math.log(first + r + target.alpha)
        _resample(seats, rng)
        _follow(target, i, given.labels[first + r], given, seats)
        for p in range(1, n):
            _choose(target, i, seats, p, rng)
    return seats
