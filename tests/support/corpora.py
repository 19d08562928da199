"""Tiny corpora, chains of topics on them, and statistics of the chains."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.topics.corpus import Corpus, corpus_of, document_lengths, expected_tables
from pymc_dpsplit.topics.state import Strengths, start_topics
from pymc_dpsplit.topics.sweep import redraw_weights, sweep_topics
from tests.reference.franchise import Truth, posterior
from tests.support.partitions import partition_index
from tests.support.statistics import combine, count_test, mean_test, partition_test


def corpus_from(counts: np.ndarray) -> Corpus:
    """Corpus of an array of counts (J, V)."""
    rows = csr_array(np.asarray(counts, np.int32))
    parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
    return corpus_of(SparseRows(*parts, rows.shape))


def tokens_of(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Document and word (T,) of each token."""
    documents = np.repeat(np.arange(len(corpus.indptr) - 1), document_lengths(corpus))
    return documents, np.repeat(corpus.words, corpus.counts)


class Case(NamedTuple):
    """A corpus of a few tokens, and the concentrations."""

    counts: list[list[int]]
    strengths: Strengths


CASES = {
    # Two documents of three tokens, three of two with one empty, one document, and one word.
    "c33": Case([[2, 0, 1], [0, 2, 1]], Strengths(1.0, 1.0, 0.5)),
    "c2022": Case([[1, 1, 0], [0, 0, 0], [0, 2, 0], [1, 0, 1]], Strengths(1.5, 1.0, 0.5)),
    "c42": Case([[1, 2, 1], [2, 0, 0]], Strengths(0.5, 3.0, 0.2)),
    "c5": Case([[2, 3]], Strengths(2.0, 0.7, 1.0)),
    "c111": Case([[2], [1], [2]], Strengths(1.0, 1.5, 0.5)),
}
# Floors of the slices: the default, and some under which many topics are small.
FLOORS = {"default": None, "0.3": 0.3, "1": 1.0}


def truth_of(case: Case) -> Truth:
    """Posterior by enumeration."""
    documents, words = tokens_of(corpus_from(np.array(case.counts)))
    return posterior(documents, words, len(case.counts[0]), *case.strengths)


class Draws(NamedTuple):
    """Statistics of chains, each (chains, S)."""

    partitions: np.ndarray
    n_topics: np.ndarray
    n_tables: np.ndarray
    rest: np.ndarray


def run_chains(case: Case, floor: float | None, shape: tuple[int, int], seed: int) -> Draws:
    """Run chains of sweeps; `shape` is their number and their length."""
    corpus = corpus_from(np.array(case.counts))
    if floor is None:
        floor = 1.0 / expected_tables(document_lengths(corpus), case.strengths.alpha)
    n_tokens = int(corpus.first_token[-1])
    labels = np.empty((*shape, n_tokens), np.int64)
    n_tables, rest = np.empty(shape, np.int64), np.empty(shape)
    for c in range(shape[0]):
        rng = np.random.default_rng([seed, c])
        state = start_topics(corpus, 1 + c % n_tokens, rng)
        for s in range(-20, shape[1]):
            state = sweep_topics(corpus, state, case.strengths, floor, rng)
            state = redraw_weights(state, case.strengths.gamma, rng)
            if s >= 0:
                labels[c, s], n_tables[c, s] = state.labels, state.tables.sum()
                rest[c, s] = np.exp(state.log_rest)
    return Draws(partition_index(labels), labels.max(axis=2) + 1, n_tables, rest)


def p_value_of(draws: Draws, truth: Truth) -> float:
    """P-value of all statistics."""
    moments = np.stack((draws.rest, draws.rest**2), axis=-1)
    return combine(
        partition_test(draws.partitions, truth.partitions),
        count_test(draws.n_topics, truth.n_topics),
        count_test(draws.n_tables, truth.n_tables),
        mean_test(moments, np.array(truth.rest)),
    )
