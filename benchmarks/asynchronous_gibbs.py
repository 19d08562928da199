"""Asynchronous Gibbs sampling of a mixture of scalars, which is not exact (a baseline).

After Asuncion, Smyth & Welling (2008), who have topics, as Williamson, Dubey & Xing (2013) carry it
over to mixtures.  Every processor has a fixed part of the observations.  It makes a collapsed sweep
over these with what it last heard of all others, tells one other processor, drawn uniformly, where
its own stand, and goes on.  Processors run one after another here, and none is faster than another.

Not exact: what a processor has heard is old.  A new cluster takes the first number that is free as
far as the processor knows; if two take the same number, their clusters are one from then on.  The
paper leaves open which new clusters are the same.

Clusters are normal with a known standard deviation and a normal prior of their means.
"""

import math
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted


class Model(NamedTuple):
    """Observations (N,), their standard deviation, prior of the means, and alpha."""

    rows: np.ndarray
    sigma: float
    mu0: float
    sigma0: float
    alpha: float


class State(NamedTuple):
    """Where the observations are, and what processors know of each other.

    Attributes
    ----------
    labels : ndarray of int64, shape (N,)
        Numbers of clusters, with gaps.
    members : list of ndarray of int64
        Observations of each processor.
    heard : ndarray, shape (P, P, C, 2)
        Size and sum of each cluster at a processor, last axis but one, as the first has last heard
        of the second; of itself it knows all.
    """

    labels: np.ndarray
    members: list[np.ndarray]
    heard: np.ndarray


def begin(
    model: Model, labels: np.ndarray, n_processors: int, most: int, rng: np.random.Generator
) -> State:
    """Deal out the observations; at first every processor knows all of all others.

    Parameters
    ----------
    model : Model
    labels : ndarray of int, shape (N,)
    n_processors : int
    most : int
        Numbers of clusters that there are; if all are taken no cluster is founded.
    rng : numpy.random.Generator

    Returns
    -------
    State
    """
    members = np.array_split(rng.permutation(len(labels)), n_processors)
    members = [np.sort(own) for own in members]
    heard = np.zeros((n_processors, n_processors, most, 2))
    for q, own in enumerate(members):
        heard[:, q, :, 0] = np.bincount(labels[own], minlength=most)
        heard[:, q, :, 1] = np.bincount(labels[own], model.rows[own], minlength=most)
    return State(labels.astype(np.int64), members, heard)


def sweep(model: Model, state: State, processor: int, rng: np.random.Generator) -> None:
    """Redraw the labels of the observations of one processor by what it knows."""
    view = state.heard[processor].sum(0)
    own = state.heard[processor, processor]
    uniforms = rng.random(len(state.members[processor]))
    _sweep(model, state.labels, state.members[processor], view, own, uniforms)


def tell(state: State, processor: int, rng: np.random.Generator) -> None:
    """Let one other processor hear where the observations of this one are."""
    n_processors = len(state.members)
    if n_processors > 1:
        other = (processor + 1 + rng.integers(n_processors - 1)) % n_processors
        state.heard[other, processor] = state.heard[processor, processor]


@jitted
def _tabulate(model, view, k, table):  # type: ignore[no-untyped-def]
    """Write the predictive density of cluster k, times its size, as its three numbers."""
    size, sigma2 = view[k, 0], model.sigma**2
    precision = 1.0 / model.sigma0**2 + size / sigma2
    variance = sigma2 + 1.0 / precision
    table[0, k] = size / math.sqrt(variance)
    table[1, k] = -0.5 / variance
    table[2, k] = (model.mu0 / model.sigma0**2 + view[k, 1] / sigma2) / precision


@jitted
def _put(model, view, own, k, x, sign, table):  # type: ignore[no-untyped-def]
    """Add an observation to a cluster, or take it out of it."""
    view[k, 0] += sign
    view[k, 1] += sign * x
    own[k, 0] += sign
    own[k, 1] += sign * x
    _tabulate(model, view, k, table)


@jitted
def _first_free(view):  # type: ignore[no-untyped-def]
    """Lowest number without observations, or the number of all."""
    for k in range(view.shape[0]):
        if view[k, 0] == 0.0:
            return k
    return view.shape[0]


@jitted
def _chosen(masses, rest, fallback):  # type: ignore[no-untyped-def]
    """Number at which the running sum of masses passes `rest`, which rounding may prevent."""
    for k in range(masses.shape[0]):
        rest -= masses[k]
        if rest < 0.0:
            return k
    return fallback


@jitted
def _sweep(model, labels, members, view, own, uniforms):  # type: ignore[no-untyped-def]
    """Collapsed sweep over some observations; `view` and `own` have sizes and sums (C, 2)."""
    most = view.shape[0]
    table, masses = np.zeros((3, most)), np.empty(most)
    for k in range(most):
        _tabulate(model, view, k, table)
    prior_variance = model.sigma**2 + model.sigma0**2
    alone = model.alpha / math.sqrt(prior_variance)
    free = _first_free(view)
    for j in range(members.shape[0]):
        i = members[j]
        x = model.rows[i]
        _put(model, view, own, labels[i], x, -1.0, table)
        if view[labels[i], 0] == 0.0:
            free = min(free, labels[i])
        total = 0.0
        for k in range(most):
            masses[k] = 0.0
            if k == free:
                masses[k] = alone * math.exp(-0.5 * (x - model.mu0) ** 2 / prior_variance)
            elif table[0, k] > 0.0:
                masses[k] = table[0, k] * math.exp(table[1, k] * (x - table[2, k]) ** 2)
            total += masses[k]
        k = _chosen(masses, uniforms[j] * total, labels[i])
        labels[i] = k
        _put(model, view, own, k, x, 1.0, table)
        if k == free:
            free = _first_free(view)
