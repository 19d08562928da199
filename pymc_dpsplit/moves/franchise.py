"""The Chinese restaurant franchise in groups whose labels are not known, and its concentrations.

Each factor is the probability of the numbers of tables as a function of one concentration, with the
global weights and those of groups summed out.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.rising import LARGE, log_rising_of_large
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.forward import draw_block_sizes, draw_seating
from pymc_dpsplit.moves.partition_law import dirichlet_process, log_number_factor
from pymc_dpsplit.moves.tables import draw_global_weights, draw_n_tables

LogFactor = Callable[[float], float]


def draw_franchise(
    lengths: np.ndarray, alpha: float, gamma: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw numbers of tables and global weights for groups of these sizes.

    Parameters
    ----------
    lengths : ndarray of int64, shape (J,)
        Number of observations of each group.
    alpha, gamma : float
    rng : numpy.random.Generator

    Returns
    -------
    tables : ndarray of int64, shape (K,)
        Number of tables of each cluster.
    weights : ndarray of float64, shape (K,)
    log_rest : float
    """
    stream = new_stream(np.uint64(draw_key(rng)))
    # Under one process, the tables of a group are those of one cluster with all its weight.
    n_tables = sum(draw_n_tables(stream, int(n), alpha) for n in lengths if n > 0)
    tables = np.asarray(draw_block_sizes(rng, gamma, n_tables), np.int64)
    return tables, *draw_global_weights(rng, tables, gamma)


class Seated(NamedTuple):
    """Observations seated in a franchise.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        Cluster 0 .. K - 1 of each observation.
    tables : ndarray of int64, shape (K,)
        Number of tables of each cluster.
    weights : ndarray of float64, shape (K,)
        Global weights.
    log_rest : float
    """

    labels: np.ndarray
    tables: np.ndarray
    weights: np.ndarray
    log_rest: float


def seat_in_franchise(
    groups: np.ndarray, alpha: float, gamma: float, rng: np.random.Generator
) -> Seated:
    """Draw the clusters of observations in groups, and global weights.

    Parameters
    ----------
    groups : ndarray of int64, shape (n,)
        Group of each observation; there may be none.
    alpha, gamma : float
    rng : numpy.random.Generator

    Returns
    -------
    Seated
    """
    table_of, n_tables = np.empty(len(groups), np.int64), 0
    order = np.argsort(groups, kind="stable")
    starts = np.unique(groups[order], return_index=True)[1]
    for own in np.split(order, starts[1:]) if len(order) else ():
        table_of[own] = n_tables + draw_seating(rng, alpha, len(own))
        n_tables = int(table_of[own].max()) + 1
    cluster_of = draw_seating(rng, gamma, n_tables)
    tables = np.bincount(cluster_of)
    return Seated(cluster_of[table_of], tables, *draw_global_weights(rng, tables, gamma))


def factor_of_alpha(lengths: np.ndarray, n_tables: float) -> LogFactor:
    """Return the log probability of all tables as a function of alpha, eq. (15.7).

    Parameters
    ----------
    lengths : ndarray of int64, shape (J,)
        Number of observations of each group.
    n_tables : float
        Their number, or its mean.

    Returns
    -------
    callable
    """
    sizes, times = np.unique(lengths, return_counts=True)

    def log_factor(alpha: float) -> float:
        return float(n_tables * np.log(alpha) - times @ log_rising(alpha, sizes))

    return log_factor


def factor_of_gamma(n_clusters: int, n_tables: int) -> LogFactor:
    """Return the log probability of K clusters of all tables as a function of gamma, eq. (15.7).

    Parameters
    ----------
    n_clusters, n_tables : int

    Returns
    -------
    callable
    """

    def log_factor(gamma: float) -> float:
        return float(log_number_factor(dirichlet_process(gamma), n_clusters, n_tables))

    return log_factor


def log_rising(x: float | np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the log of Gamma(x + n) / Gamma(x), for nonnegative n."""
    gammaln = scipy.special.gammaln
    x, n = np.broadcast_arrays(x, n)
    is_large = x > LARGE
    risen: np.ndarray = gammaln(x + n) - gammaln(x)
    if is_large.any():
        risen[is_large] = log_rising_of_large(x[is_large], n[is_large], np)
    return risen
