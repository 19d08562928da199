"""Sweep over the tokens of documents that looks at all atoms for each token, in vector code.

The law is that of `documents.py`, and so is the use of random numbers.  Up to a few hundred atoms
this takes less time than to look at those of the document alone: no branch depends on a draw.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import (
    jitted,
    jitted_copied,
    jitted_inlined_uncounted,
    jitted_uncounted,
)
from pymc_dpsplit.kernels.product_choice import choose_by_product
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.tables import draw_n_tables
from pymc_dpsplit.topics.documents import DOCUMENTS_AT_A_TIME, DRAWS_PER_TOKEN, slice_ratio


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


class DenseVisit(NamedTuple):
    """The document that a thread visits.

    Attributes
    ----------
    counts : ndarray of float64, shape (P,)
        Number of its tokens in each atom.
    masses : ndarray of float64, shape (P,)
        Factor of phi in the mass of each atom for the next token.
    """

    counts: np.ndarray
    masses: np.ndarray


@jitted_copied
def _set_small_masses(law, visit, reach):
    """Set the masses of the small atoms in reach; all of them depend on those that have tokens."""
    height = law.floor
    for s in range(reach):
        if visit.counts[law.small[s]] > 0.0:
            height = min(height, law.weights[law.small[s]])
    for s in range(reach):
        k = law.small[s]
        ratio = slice_ratio(height, law.weights[k], law.floor)
        visit.masses[k] = (visit.counts[k] + law.prior[k]) * ratio


@jitted_uncounted
def _begin_document(corpus, law, document, labels, visit):
    """Set counts, which are zero, and masses; return how many small atoms are in reach."""
    for token in range(corpus.first_token[document], corpus.first_token[document + 1]):
        visit.counts[labels[token]] += 1.0
    for k in range(law.prior.shape[0]):
        visit.masses[k] = visit.counts[k] + law.prior[k]
    reach = 0
    while reach < law.small.shape[0] and law.weights[law.small[reach]] > law.slices[document]:
        reach += 1
    for s in range(reach, law.small.shape[0]):
        visit.masses[law.small[s]] = 0.0
    _set_small_masses(law, visit, reach)
    return reach


@jitted_inlined_uncounted
def _change_count(law, visit, k, change, reach):
    """Add `change` to the tokens of an atom."""
    visit.counts[k] += change
    visit.masses[k] = visit.counts[k] + law.prior[k]
    if law.weights[k] < law.floor:
        _set_small_masses(law, visit, reach)


@jitted_uncounted
def _last_with_mass(law, visit, word, otherwise):
    """Return the last atom with mass, where rounding led beyond it."""
    for k in range(law.weights.shape[0] - 1, -1, -1):
        if visit.masses[k] * law.phi[word, k] > 0.0:
            return np.int64(k)
    return otherwise


@jitted_uncounted
def _visit_document(corpus, law, document, labels, key, visit, word_counts):
    """Redraw the topics of the tokens of a document in turn."""
    reach = _begin_document(corpus, law, document, labels, visit)
    width = law.prior.shape[0]
    token = corpus.first_token[document]
    for entry in range(corpus.indptr[document], corpus.indptr[document + 1]):
        word = np.int64(corpus.words[entry])
        for _ in range(corpus.counts[entry]):
            old = np.int64(labels[token])
            _change_count(law, visit, old, -1.0, reach)
            u = hash_uniform(key, token)
            new = choose_by_product(visit.masses, law.phi, word, width, u)
            if not visit.masses[new] * law.phi[word, new] > 0.0:
                new = _last_with_mass(law, visit, word, old)
            _change_count(law, visit, new, 1.0, reach)
            labels[token] = new
            word_counts[word, new] += 1
            token += 1


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
    n_documents, width = corpus.first_token.shape[0] - 1, law.prior.shape[0]
    visit = DenseVisit(np.zeros(width), np.empty(width))
    stream = new_stream(keys[1])
    block = take_next(counter)
    while block * DOCUMENTS_AT_A_TIME < n_documents:
        begin = block * DOCUMENTS_AT_A_TIME
        for document in range(begin, min(begin + DOCUMENTS_AT_A_TIME, n_documents)):
            _visit_document(corpus, law, document, labels, keys[0], visit, word_counts)
            stream[1] = np.uint64(DRAWS_PER_TOKEN * corpus.first_token[document])
            for k in range(law.weights.shape[0]):
                if visit.counts[k] > 0.0:
                    tables[k] += draw_n_tables(stream, np.int64(visit.counts[k]), law.prior[k])
                    visit.counts[k] = 0.0
        block = take_next(counter)
