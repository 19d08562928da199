"""Scans of rows in groups on processors (Williamson, Dubey & Xing 2013).

Every cluster lives on one of P processors, and the remainder of the global measure is divided among
them; docs/method.md, (16.23).  Given these a row can only join clusters of its own processor, so
that processors are independent.  With the global weights in the state the masses of a scan are the
same on a processor as on all, over fewer clusters.
"""

import numpy as np

from pymc_dpsplit.hierarchical.scan import scan_some_rows
from pymc_dpsplit.hierarchical.state import GroupedTarget
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma
from pymc_dpsplit.kernels.rows import copy_row
from pymc_dpsplit.kernels.special import log_sum_of_two
from pymc_dpsplit.moves.collapsed.scan import log_densities_alone
from pymc_dpsplit.moves.partition import gather_stats
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.moves.target import Target
from pymc_dpsplit.samplers.av_parallel import draw_processors, local_labels


@jitted
def divide_rest(rng, log_rest, gamma, n_processors):
    """Divide the remainder by Dirichlet(gamma / P, .., gamma / P); return logarithms (P,)."""
    parts = np.empty(n_processors)
    for p in range(n_processors):
        parts[p] = draw_log_gamma(rng, gamma / n_processors)
    highest = parts.max()
    return log_rest + parts - highest - np.log(np.sum(np.exp(parts - highest)))


@jitted
def target_on(target, n_processors):
    """The target of the rows of one processor, whose global measure has concentration gamma / P."""
    prior, data, law = target.of_rows
    of_rows = Target(prior, data, PartitionLaw(law.discount, law.strength / n_processors))
    return GroupedTarget(of_rows, target.group_of_row, target.sizes, target.alpha)


@jitted
def scan_on_processors(target, labels, stats, weights, log_rest, rng, n_processors):
    """Draw the processors of all clusters, then redraw the labels of rows among those of their own.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int32, shape (N,)
        Changed.
    stats : ndarray of float64, shape (K, S)
    weights : ndarray of float64, shape (K,)
        Global weights.
    log_rest : float
    rng : numpy.random.Generator
    n_processors : int

    Returns
    -------
    stats : ndarray of float64, shape (K', S)
    weights : ndarray of float64, shape (K',)
    log_rest : float
    """
    prior, data, law = target.of_rows
    shares = np.full(n_processors, 1.0 / n_processors)
    processors = draw_processors(labels, stats, shares, rng)
    rests = divide_rest(rng, log_rest, law.strength, n_processors)
    local = target_on(target, n_processors)
    found, n_found, log_rest = np.empty_like(labels), 0, -np.inf
    kept = np.empty(labels.shape[0])
    for p in range(n_processors):
        own, clusters, rows = local_labels(labels, processors, p)
        rest = rests[p]
        if rows.shape[0] > 0:
            log_alone = log_densities_alone(prior, data, rows)
            own_weights, rest = scan_some_rows(
                local, own, stats[clusters], weights[clusters], rest, rng, rows, log_alone
            )
            for i in rows:
                found[i] = n_found + own[i]
            kept[n_found : n_found + own_weights.shape[0]] = own_weights
            n_found += own_weights.shape[0]
        log_rest = log_sum_of_two(log_rest, rest)
    copy_row(found, labels)
    return gather_stats(prior, data, labels, n_found), kept[:n_found].copy(), log_rest
