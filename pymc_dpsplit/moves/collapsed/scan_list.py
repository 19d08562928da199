"""Scan list: observations that get a collapsed Gibbs update in every iteration.

The sweep gives birth to a cluster by drawing parameters from the base measure.  In many
dimensions these hardly ever fit an observation, so small clusters come and go slowly.  Collapsed
Gibbs does not have this problem, but it is sequential.  Most observations are unlikely to found a
cluster; the others are identified during tuning and visited in every iteration, with the members
of the tiny clusters that there are then.  The list is frozen before the first draw that is kept, so
the scan is an ordinary Gibbs step.
"""

import math

import numpy as np

from pymc_dpsplit.components.base import (
    draw_parameters,
    fill_log_density,
    load_tile,
    mean_parameters,
    params_size,
    stats_size,
)
from pymc_dpsplit.components.multiplicity import multiplicity, note_log_weight
from pymc_dpsplit.components.optional import begin_tile
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.tiles import TILE, fill_members, new_rows, new_scratch
from pymc_dpsplit.moves.collapsed.scan import log_densities_alone
from pymc_dpsplit.moves.partition_law import joining_mass, log_founding_factor
from pymc_dpsplit.moves.sweep.density import fill_log_mixture, log_prior_predictive


@jitted
def log_founding_odds(target, stats):
    """Log odds of each observation founding a cluster against joining a large one.

    Clusters with fewer members than sufficient statistics are left out: they may be new ones.

    Parameters
    ----------
    target : Target
    stats : ndarray of float64, shape (K, S)

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    prior, data, law = target
    least = min(float(stats.shape[1]), stats[:, 0].max())
    large = np.flatnonzero(stats[:, 0] >= least)
    log_weights = np.empty(large.shape[0])
    params = np.empty((large.shape[0], params_size(prior)))
    for j in range(large.shape[0]):
        log_weights[j] = math.log(joining_mass(law, stats[large[j], 0]))
        mean_parameters(prior, stats[large[j]], params[j])
    odds = np.empty(data.shape[0])
    alone = log_prior_predictive(prior, data)
    fill_log_mixture(prior, data, alone, log_weights, params, -np.inf, odds)
    for i in range(odds.shape[0]):
        log_open = log_founding_factor(law, stats.shape[0], multiplicity(prior, data, i))
        odds[i] = log_open + alone[i] - odds[i]
    return odds


def founding_probabilities(log_odds: np.ndarray) -> np.ndarray:
    """Probabilities of founding a cluster, given the results of `log_founding_odds`, shape (N,)."""
    probabilities: np.ndarray = 1.0 / (1.0 + np.exp(np.minimum(-log_odds, 700.0)))
    return probabilities


@jitted
def expected_births_in_sweeps(target, log_odds, founders, n_atoms, rng):
    """Estimate the births of a sweep by slices; the scan has `founding_probabilities` of them.

    The sweep draws a new atom from the base measure, whatever the observations are; it is a birth
    if an observation prefers that atom to its cluster.  Both have the same mean odds, but if these
    come from atoms that are hardly ever drawn, there are hardly any births.

    Parameters
    ----------
    target : Target
    log_odds : ndarray of float64, shape (N,)
        Result of `log_founding_odds`.
    founders : ndarray of int64, shape (M,)
        The observations that are counted, at least one; the first `TILE` of these.
    n_atoms : int
        Number of atoms drawn.
    rng : numpy.random.Generator

    Returns
    -------
    float
    """
    prior, data, founders = target.prior, target.data, founders[:TILE]
    rows, tile = new_rows(), begin_tile(prior, data)
    fill_members(rows, founders, 0)
    load_tile(prior, data, rows, tile)
    alone = log_densities_alone(prior, data, founders)
    values, scratch = new_scratch(1), new_scratch(4)
    nothing, params = np.zeros(stats_size(prior)), np.empty(params_size(prior))
    n_born = 0.0
    for _ in range(n_atoms):
        draw_parameters(prior, nothing, rng, params)
        note_log_weight(prior, params, 0.0)
        fill_log_density(prior, tile, params, values, scratch)
        for t in range(founders.shape[0]):
            log_odds_of_atom = log_odds[founders[t]] + values[t] - alone[t]
            n_born += 1.0 / (1.0 + math.exp(min(-log_odds_of_atom, 700.0)))
    return n_born / n_atoms


def members_of_tiny_clusters(
    labels: np.ndarray, stats: np.ndarray, n_features: int, most: int
) -> np.ndarray:
    """Members of clusters that have no more members than features, smallest clusters first.

    The parameters of such a cluster are drawn from hardly more than these observations, so that in
    a sweep they leave it rarely.

    Parameters
    ----------
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    n_features : int
    most : int
        Maximum number of members.

    Returns
    -------
    ndarray of int64, shape (M,)
        Ascending.
    """
    sizes = stats[labels, 0]
    members = np.flatnonzero(sizes <= n_features)
    smallest = members[np.argsort(sizes[members], kind="stable")]
    return np.sort(smallest[:most])


def likeliest_founders(log_odds: np.ndarray, most: int) -> np.ndarray:
    """Find the observations of highest odds.

    Parameters
    ----------
    log_odds : ndarray of float64, shape (N,)
        Result of `log_founding_odds`.
    most : int
        Number of observations, or more than there are.

    Returns
    -------
    ndarray of int64, shape (min(most, N),)
        Ascending.
    """
    most = min(most, len(log_odds))
    likeliest = np.argpartition(-log_odds, most - 1)[:most] if most else np.empty(0, np.int64)
    return np.sort(likeliest).astype(np.int64)


def choose_scan_list(log_odds: np.ndarray, most: int, covered: float) -> np.ndarray:
    """Choose the observations likeliest to found a cluster.

    Parameters
    ----------
    log_odds : ndarray of float64, shape (N,)
        Result of `log_founding_odds`.
    most : int
        Maximum length of the list.
    covered : float
        Share of the expected births that the list covers, if it may be so long.

    Returns
    -------
    ndarray of int64, shape (M,)
        Ascending.
    """
    probability = founding_probabilities(log_odds)
    likeliest = likeliest_founders(log_odds, most)
    likeliest = likeliest[np.argsort(-probability[likeliest], kind="stable")]
    enough = np.searchsorted(np.cumsum(probability[likeliest]), covered * probability.sum()) + 1
    return np.sort(likeliest[:enough])
