"""Record of successive draws that one kernel makes: what a trace has of each.

The kernels that fill it are composed with the iterations, in `moves.conjugate`.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.base import params_size
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.rows import copy_row
from pymc_dpsplit.moves.end_of_draw import end_draw
from pymc_dpsplit.moves.partition_law import PartitionLaw
from pymc_dpsplit.moves.target import Target

# Columns of `numbers`.
N_NUMBERS = 5
LOG_REST, LOG_JOINT, ENTROPY, LARGEST_SHARE, STRENGTH_VARIABLE = range(N_NUMBERS)
OF_PARTITION = slice(LOG_JOINT, LARGEST_SHARE + 1)


class DrawRecord(NamedTuple):
    """Successive draws of a chain, clusters by decreasing weight.

    Attributes
    ----------
    labels : ndarray of int32, shape (n, N)
        As the chain numbers clusters.
    n_clusters : ndarray of int64, shape (n,)
    weights : ndarray of float64, shape (n, L)
        Of the first L clusters; 0 in other columns.
    params : ndarray of float64, shape (n, L, P)
        Of the same clusters.
    numbers : ndarray of float64, shape (n, 5)
        Log weight of the remainder; log joint, entropy and largest share of the partition; the
        variable behind the strength, 0 if kernels do not move it.
    acceptance_counts : ndarray of int64, shape (n, 4)
        See `moves.acceptance_counts`.
    """

    labels: np.ndarray
    n_clusters: np.ndarray
    weights: np.ndarray
    params: np.ndarray
    numbers: np.ndarray
    acceptance_counts: np.ndarray


@jitted
def empty_record(target, n_draws, n_rows):
    """Room for so many draws, and for `n_rows` clusters of each."""
    n_params = params_size(target.prior)
    return DrawRecord(
        np.empty((n_draws, target.data.shape[0]), np.int32),
        np.empty(n_draws, np.int64),
        np.zeros((n_draws, n_rows)),
        np.empty((n_draws, n_rows, n_params)),
        np.empty((n_draws, N_NUMBERS)),
        np.zeros((n_draws, 4), np.int64),
    )


@jitted
def record_draw(record, i, target, labels, stats, generator, strength):
    """End a draw after its iterations, and record it as the i-th.

    Parameters
    ----------
    record : DrawRecord
    i : int
    target : Target
        The law of its partition may be that of the draw before.
    labels : ndarray of int32, shape (N,)
    stats : ndarray of float64, shape (K, S)
    generator : result of `address_of`, or numpy.random.Generator
    strength : StrengthPrior
        After the iterations.

    Returns
    -------
    Target
        With the law of the i-th draw.
    """
    if strength.address != 0:
        law = PartitionLaw(target.law.discount, strength.present[1])
        target = Target(target.prior, target.data, law)
    weights, log_rest, params, _, _, density, nats, share = end_draw(
        target, labels, stats, generator
    )
    copy_row(labels, record.labels[i])
    record.n_clusters[i] = weights.shape[0]
    for row in range(min(weights.shape[0], record.weights.shape[1])):
        record.weights[i, row] = weights[row]
        copy_row(params[row], record.params[i, row])
    numbers = record.numbers[i]
    numbers[LOG_REST], numbers[LOG_JOINT], numbers[ENTROPY] = log_rest, density, nats
    numbers[LARGEST_SHARE], numbers[STRENGTH_VARIABLE] = share, strength.present[0]
    return target
