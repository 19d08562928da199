"""Tables and global weights of a hierarchical Dirichlet process.

Groups share the clusters of one Dirichlet process with concentration gamma; given its weights, each
group is a Dirichlet process with concentration alpha.  In the Chinese restaurant franchise the
observations of a group sit at tables, and each table belongs to a cluster.  Given the labels, the
numbers of tables are all that the global weights depend on.
"""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.streams import next_uniform
from pymc_dpsplit.moves.measure import normalise
from pymc_dpsplit.moves.partition_law import draw_stick

# A sweep breaks some ten sticks off the remainder, each with parameters, per unit of gamma.
MOST_GAMMA = 1e5
# Below these, observations are seated one by one, which is then faster than jumps.
_FEW, _FEW_PER_STRENGTH = 5, 10.0


@jitted
def draw_n_tables(stream, n_seated, strength):
    """Draw the number of tables of `n_seated` observations, eq. (15.5), in logarithmic time.

    Observation i opens a table with probability p_i = a / (a + i), which decreases with i.  From
    observation i on, a geometric variable with probability p_i proposes the next opening j, which
    is kept with probability p_j / p_i.  That takes about a log(n / a) steps.

    Parameters
    ----------
    stream : ndarray of uint64, shape (2,)
        At most 2 `n_seated` numbers are drawn from it.
    n_seated : int
        Number of observations n of one group in one cluster, at least 1.
    strength : float
        Alpha times the global weight of the cluster, a.

    Returns
    -------
    int
    """
    n_tables = 1
    if n_seated <= max(_FEW, _FEW_PER_STRENGTH * strength):
        for i in range(1, n_seated):
            n_tables += next_uniform(stream) * (strength + i) < strength
        return n_tables
    i = 1
    while i < n_seated:
        skipped = -math.log(next_uniform(stream)) / math.log1p(strength / i)
        # Compared as a float: it may exceed every integer.
        if not skipped < n_seated - i:
            break
        opening = i + int(skipped)
        n_tables += next_uniform(stream) * (strength + opening) < strength + i
        i = opening + 1
    return n_tables


@jitted
def draw_global_weights(rng, n_tables, gamma):
    """Draw the global weights and their remainder, Dirichlet(m_1, .., m_K, gamma), eq. (15.6).

    Parameters
    ----------
    rng : numpy.random.Generator
    n_tables : ndarray of int64, shape (K,)
        Number of tables of each cluster, at least 1.
    gamma : float

    Returns
    -------
    weights : ndarray of float64, shape (K,)
    log_rest : float
        Log weight of the remainder; finite however small gamma is.
    """
    log_weights = np.empty(n_tables.shape[0])
    log_rest = draw_log_gamma(rng, gamma)
    for k in range(n_tables.shape[0]):
        log_weights[k] = draw_log_gamma(rng, float(n_tables[k]))
    log_rest = normalise(log_weights, log_rest, np.arange(n_tables.shape[0]))
    return np.exp(log_weights), log_rest


@jitted
def break_global_remainder(rng, law, log_rest, log_floor):
    """Break sticks off the remainder until at most exp(log_floor) is left, eq. (15.9).

    Parameters
    ----------
    rng : numpy.random.Generator
    law : PartitionLaw
        That of a Dirichlet process with concentration gamma.
    log_rest, log_floor : float

    Returns
    -------
    weights : ndarray of float64, shape (M,)
        Weights of the sticks.
    log_rest : float
        What is left.
    """
    weights = np.empty(8)
    n_sticks = 0
    while log_rest > log_floor:
        if n_sticks == weights.shape[0]:
            longer = np.empty(2 * n_sticks)
            longer[:n_sticks] = weights
            weights = longer
        log_share, log_left = draw_stick(law, n_sticks, rng)
        weights[n_sticks] = math.exp(log_rest + log_share)
        log_rest += log_left
        n_sticks += 1
    return weights[:n_sticks], log_rest
