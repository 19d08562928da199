"""What follows the iterations of a draw, as one kernel: a call from Python takes longer than it."""

import math

import numpy as np

from pymc_dpsplit.kernels.generators import open_generator
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row, first_column_sum
from pymc_dpsplit.kernels.sorting import ascending
from pymc_dpsplit.moves.cluster_order import cluster_order
from pymc_dpsplit.moves.measure import draw_measure
from pymc_dpsplit.moves.partition import entropy, log_joint


@jitted
def end_draw(target, labels, stats, generator):
    """Draw the measure given the partition, and summarise the partition.

    Parameters
    ----------
    target : Target
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    generator : result of `address_of`, or numpy.random.Generator

    Returns
    -------
    weights : ndarray of float64, shape (K,)
        In decreasing order.
    log_rest : float
        Log weight of the remainder.
    params : ndarray of float64, shape (K, P)
        In the order of the weights.
    rank : ndarray of int64, shape (K,)
        Row of each cluster in this order.
    sum_log_weights : float
    log_joint_density, nats : float
        `log_joint` and `entropy` of the partition.
    largest_share : float
        Share of the observations that the largest cluster has.
    """
    rng, n_clusters = open_generator(generator), stats.shape[0]
    order = cluster_order(labels, stats)
    log_weights, log_rest, drawn = draw_measure(target, stats, rng, order)
    weights, params = np.empty(n_clusters), np.empty(drawn.shape)
    rank = np.empty(n_clusters, np.int64)
    sum_log_weights = 0.0
    for row, k in enumerate(ascending(-log_weights)):
        weights[row], rank[k] = math.exp(log_weights[k]), row
        copy_row(drawn[k], params[row])
        sum_log_weights += log_weights[k]
    largest_share = stats[:, 0].max() / first_column_sum(stats)
    summary = log_joint(target, stats), entropy(stats), largest_share
    return weights, log_rest, params, rank, sum_log_weights, *summary
