"""Sweep over the tokens of documents that looks at all atoms for each token, in vector code.

The law is that of `documents.py`, and so is the use of random numbers.  Up to a few hundred atoms
this takes less time than to look at those of the document alone: no branch depends on a draw, and
documents are visited in turns.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_uncounted
from pymc_dpsplit.kernels.product_choice import TOGETHER, choose_by_products
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.tables import draw_n_tables
from pymc_dpsplit.topics.documents import DOCUMENTS_AT_A_TIME, DRAWS_PER_TOKEN
from pymc_dpsplit.topics.turns import (
    begin_document,
    count_chunk,
    no_documents,
    prepare_chunk,
    settle_token,
)


class DenseLaw(NamedTuple):
    """What a sweep over all documents keeps fixed, docs/method.md, eq. (15.10).

    Attributes
    ----------
    phi : ndarray of float64, shape (V, P)
        Probability of each word in each atom; P is a multiple of 8, columns beyond A are zero.
    prior : ndarray of float64, shape (P,)
        Alpha times the global weights of the atoms; zero beyond A.
    weights : ndarray of float64, shape (A,)
        Global weights.
    floor : float
        Atoms with at least this weight are never excluded by a slice: big ones.
    small : ndarray of int32, shape (S,)
        The other atoms, in order of decreasing weight.
    slices : ndarray of float64, shape (J,)
        Slice of each document.
    """

    phi: np.ndarray
    prior: np.ndarray
    weights: np.ndarray
    floor: float
    small: np.ndarray
    slices: np.ndarray


class Share(NamedTuple):
    """Documents that a thread has taken from the counter of all threads.

    Attributes
    ----------
    counter : ndarray of int64, shape (1,)
        Of blocks of documents, which all threads share.
    taken : ndarray of int64, shape (2,)
        The next document of this thread, and the end of those that it has taken.
    """

    counter: np.ndarray
    taken: np.ndarray


@jitted_uncounted
def _next_document(corpus, share):
    """Return the next document with tokens; -1 if there is none."""
    n_documents, taken = corpus.first_token.shape[0] - 1, share.taken
    while True:
        if taken[0] == taken[1]:
            taken[0] = DOCUMENTS_AT_A_TIME * take_next(share.counter)
            taken[1] = min(taken[0] + DOCUMENTS_AT_A_TIME, n_documents)
            if taken[0] >= n_documents:
                # So it stays if this is called again.
                taken[0] = taken[1] = 0
                return -1
        document = taken[0]
        taken[0] += 1
        if corpus.first_token[document] < corpus.first_token[document + 1]:
            return document


@jitted_uncounted
def _begin_next(corpus, law, labels, key, turns, t, share):
    """Give a row to the next document; return whether there is one."""
    document = _next_document(corpus, share)
    if document >= 0:
        begin_document(corpus, law, document, labels, key, turns, t)
    return document >= 0


@jitted_uncounted
def _finish_document(corpus, law, turns, t, stream, tables):
    """Draw the tables of a document, and give up its row."""
    stream[1] = np.uint64(DRAWS_PER_TOKEN * corpus.first_token[turns.document[t]])
    for k in range(law.weights.shape[0]):
        if turns.counts[t, k] > 0.0:
            tables[k] += draw_n_tables(stream, np.int64(turns.counts[t, k]), law.prior[k])
            turns.counts[t, k] = 0.0
    turns.document[t] = -1


@jitted_uncounted
def _take_turns(corpus, law, labels, key, turns, share, stream, word_counts, tables):
    """Visit documents, TOGETHER at a time, until none is left."""
    n_rows, width = 0, law.prior.shape[0]
    for t in range(TOGETHER):
        n_rows += _begin_next(corpus, law, labels, key, turns, t, share)
    while n_rows > 0:
        # Rows without a document have no masses, and whatever is chosen for them is not used.
        choose_by_products(turns.masses, law.phi, turns.word, width, turns.u, turns.chosen)
        for t in range(TOGETHER):
            if turns.document[t] < 0 or not settle_token(law, labels, turns, t, word_counts):
                continue
            count_chunk(labels, turns, t, word_counts)
            if turns.token[t] < corpus.first_token[turns.document[t] + 1]:
                prepare_chunk(corpus, law, labels, key, turns, t)
                continue
            _finish_document(corpus, law, turns, t, stream, tables)
            if not _begin_next(corpus, law, labels, key, turns, t, share):
                n_rows -= 1


@jitted
def sweep_dense_documents(corpus, law, labels, keys, counter, word_counts, tables):
    """Redraw topics and numbers of tables of the documents that this thread takes.

    Parameters
    ----------
    corpus : Corpus
    law : DenseLaw
    labels : ndarray of int32, shape (T,)
        Modified.
    keys : tuple of uint64
        For tokens, and for tables.
    counter : ndarray of int64, shape (1,)
        Of blocks of documents, which all threads share.
    word_counts : ndarray of int32, shape (V, A)
        Of this thread; new topics of tokens are added.
    tables : ndarray of int64, shape (A,)
        Of this thread; numbers of tables are added.
    """
    turns, share = no_documents(law.prior.shape[0]), Share(counter, np.zeros(2, np.int64))
    stream = new_stream(keys[1])
    _take_turns(corpus, law, labels, keys[0], turns, share, stream, word_counts, tables)
