"""Draws from the prior of the topics of a corpus."""

import numpy as np

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.forward import draw_block_sizes
from pymc_dpsplit.moves.tables import draw_global_weights, draw_n_tables


def draw_franchise(
    lengths: np.ndarray, alpha: float, gamma: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw numbers of tables and global weights of documents whose words are not known.

    Parameters
    ----------
    lengths : ndarray of int64, shape (J,)
        Number of tokens of each document.
    alpha, gamma : float
    rng : numpy.random.Generator

    Returns
    -------
    tables : ndarray of int64, shape (K,)
        Number of tables of each topic.
    weights : ndarray of float64, shape (K,)
    log_rest : float
    """
    stream = new_stream(np.uint64(draw_key(rng)))
    # Under one process, the tables of a document are those of one cluster with all its weight.
    n_tables = sum(draw_n_tables(stream, int(n), alpha) for n in lengths if n > 0)
    tables = np.asarray(draw_block_sizes(rng, gamma, n_tables), np.int64)
    return tables, *draw_global_weights(rng, tables, gamma)
