"""Perplexity of documents that were held out, from topics and global weights of any system."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.topic_systems import STRENGTHS, Tokens
from pymc_dpsplit.components.sparse_counts import rows_of_sparse
from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.tables import draw_global_weights, draw_n_tables
from pymc_dpsplit.topics.completion import add_completions
from pymc_dpsplit.topics.corpus import corpus_of
from pymc_dpsplit.topics.halves import Halves, divide_documents

_HELD_OUT, _SEED = 250, 20260
_WEIGHT_STEPS = 15
# Sweeps over the first half, and how many of them come before the average.
_SWEEPS = 12, 4


class Split(NamedTuple):
    """Documents to learn from, and documents to judge by, over the words of the former.

    Attributes
    ----------
    rows : SparseRows
    n_tokens : int
        Of `rows`.
    halves : Halves
        Of the documents held out.
    """

    rows: SparseRows
    n_tokens: int
    halves: Halves


def split_documents(documents: sparse.csr_matrix) -> Split:
    """Hold out 250 documents, the same for every system and seed."""
    rng = np.random.default_rng(_SEED)
    order = rng.permutation(documents.shape[0])
    training, test = documents[np.sort(order[_HELD_OUT:])], documents[order[:_HELD_OUT]]
    known = np.flatnonzero(np.asarray(training.sum(axis=0)).ravel())
    rows = rows_of_sparse(training[:, known])
    halves = divide_documents(corpus_of(rows_of_sparse(test[:, known])), rng)
    return Split(rows, int(training.sum()), halves)


def law_of_tokens(tokens: Tokens, n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Return global weights (K + 1,) and topics (V, K + 1), of which the last one is new.

    Topics are posterior means given the labels.  Weights are drawn given the labels, by Gibbs
    steps over them and the tables, so systems that hold other tables or none are treated alike.
    """
    alpha, gamma, eta = STRENGTHS
    _, topics = np.unique(tokens.topics, return_inverse=True)
    n_topics = int(topics.max()) + 1
    pairs, seated = np.unique(tokens.documents * n_topics + topics, return_counts=True)
    dishes = pairs % n_topics
    rng, stream = np.random.default_rng(_SEED), new_stream(np.uint64(_SEED))
    weights = np.full(n_topics, 1.0 / (n_topics + 1))
    log_rest = 0.0
    for _ in range(_WEIGHT_STEPS):
        tables = np.zeros(n_topics, np.int64)
        for k, n in zip(dishes, seated, strict=True):
            tables[k] += draw_n_tables(stream, n, alpha * weights[k])
        weights, log_rest = draw_global_weights(rng, tables, gamma)
    counts = np.bincount(tokens.words * n_topics + topics, minlength=n_words * n_topics)
    phi = counts.reshape(n_words, n_topics) + eta
    phi /= phi.sum(axis=0)
    return np.append(weights, np.exp(log_rest)), np.column_stack(
        (phi, np.full(n_words, 1 / n_words))
    )


def perplexity(halves: Halves, weights: np.ndarray, phi: np.ndarray) -> float:
    """Perplexity of the second halves given the first ones, weights (K,) and topics (V, K)."""
    probability = np.zeros(len(halves.words))
    law = np.ascontiguousarray(weights), np.ascontiguousarray(phi)
    add_completions(halves, *law, STRENGTHS.alpha, _SWEEPS, np.uint64(_SEED), probability)
    return float(np.exp(-np.log(probability[halves.is_second]).mean()))
