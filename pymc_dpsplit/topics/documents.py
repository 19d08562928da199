"""Sweep over the tokens of documents: a slice for each document, its weights summed out.

Documents are independent given the law of a sweep, so threads take them from a counter.  Random
numbers belong to tokens, so draws do not depend on the threads.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_copied
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.special import log_rising
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.moves.tables import draw_n_tables
from pymc_dpsplit.topics.alias_tables import AliasTables, look_up

# Number of documents that a thread takes at a time.
DOCUMENTS_AT_A_TIME = 8
# Numbers that the tables of a document may draw for each of its tokens.
DRAWS_PER_TOKEN = 2


class SweepLaw(NamedTuple):
    """What a sweep over all documents keeps fixed, docs/method.md, eq. (15.10).

    Attributes
    ----------
    phi : ndarray of float64, shape (V, >= A)
        Probability of each word in each atom.
    weights : ndarray of float64, shape (A,)
        Global weights of the atoms.
    alpha : float
    floor : float
        Atoms with at least this weight are never excluded by a slice: big ones.
    big : AliasTables
        Of the masses alpha weights[k] phi[w, k] of the big atoms.
    small : ndarray of int32, shape (S,)
        The other atoms, in order of decreasing weight.
    small_running : ndarray of float64, shape (V, S + 1)
        Mass of the first s small atoms in a document without tokens in small atoms.
    slices : ndarray of float64, shape (J,)
        Slice of each document.
    """

    phi: np.ndarray
    weights: np.ndarray
    alpha: float
    floor: float
    big: AliasTables
    small: np.ndarray
    small_running: np.ndarray
    slices: np.ndarray


class Visit(NamedTuple):
    """The document that a thread visits.

    Attributes
    ----------
    counts : ndarray of int64, shape (A,)
        Number of its tokens in each atom.
    topics : ndarray of int32, shape (A,)
        Atoms that it has; the first `n_topics` elements count.
    place : ndarray of int32, shape (A,)
        Place of an atom in `topics`.
    masses : ndarray of float64, shape (A,)
        Running masses, by place in `topics`.
    """

    counts: np.ndarray
    topics: np.ndarray
    place: np.ndarray
    masses: np.ndarray


@jitted
def slice_height(corpus, document, labels, weights, floor):
    """Smallest floored weight of the topics of a document, the upper end of its slice."""
    height = floor
    for token in range(corpus.first_token[document], corpus.first_token[document + 1]):
        height = min(height, weights[labels[token]])
    return height


@jitted
def draw_slices(corpus, labels, weights, floor, key):
    """Draw the slice of each document, eq. (15.8).

    Parameters
    ----------
    corpus : Corpus
    labels : ndarray of int32, shape (T,)
    weights : ndarray of float64, shape (K,)
    floor : float
    key : uint64

    Returns
    -------
    slices : ndarray of float64, shape (J,)
        Infinite for documents without tokens.
    lowest : float
    """
    n_documents = corpus.first_token.shape[0] - 1
    slices = np.full(n_documents, np.inf)
    lowest = np.inf
    for document in range(n_documents):
        if corpus.first_token[document] < corpus.first_token[document + 1]:
            height = slice_height(corpus, document, labels, weights, floor)
            slices[document] = height * hash_uniform(key, document)
            lowest = min(lowest, slices[document])
    return slices, lowest


@jitted_copied
def slice_ratio(height, weight, floor):
    """Factor of an atom: the height of the slice without a token over the height with it."""
    return height / min(height, min(weight, floor))


@jitted
def sum_small_masses(phi, weights, alpha, floor, small):
    """Sum the masses of small atoms in a document without tokens in them.

    Parameters
    ----------
    phi : ndarray of float64, shape (V, A)
    weights : ndarray of float64, shape (A,)
    alpha, floor : float
    small : ndarray of int32, shape (S,)

    Returns
    -------
    ndarray of float64, shape (V, S + 1)
        Running sums in the order of `small`, from 0.
    """
    n_words, n_small = phi.shape[0], small.shape[0]
    running = np.zeros((n_words, n_small + 1))
    for word in range(n_words):
        for s in range(n_small):
            k = small[s]
            mass = alpha * weights[k] * phi[word, k] * slice_ratio(floor, weights[k], floor)
            running[word, s + 1] = running[word, s] + mass
    return running


@jitted_copied
def _add(visit, n_topics, k):
    """Put a token in an atom; return the number of atoms that the document then has."""
    if visit.counts[k] == 0:
        visit.topics[n_topics] = k
        visit.place[k] = n_topics
        n_topics += 1
    visit.counts[k] += 1
    return n_topics


@jitted_copied
def _remove(visit, n_topics, k):
    """Take a token from an atom; return the number of atoms that the document then has."""
    visit.counts[k] -= 1
    if visit.counts[k] == 0:
        n_topics -= 1
        last = visit.topics[n_topics]
        visit.topics[visit.place[k]] = last
        visit.place[last] = visit.place[k]
    return n_topics


@jitted
def _choose_without_small(law, visit, n_topics, word, reach, u):
    """Choose the atom of a token if the rest of its document has big atoms only.

    The document's own atoms then have mass n_k phi_k, and those of the alias table and the small
    ones are the same for all such documents.
    """
    held = 0.0
    for t in range(n_topics):
        k = visit.topics[t]
        held += visit.counts[k] * law.phi[word, k]
        visit.masses[t] = held
    target = u * (held + law.big.total[word] + law.small_running[word, reach])
    if target < held:
        t = 0
        while visit.masses[t] <= target:
            t += 1
        return np.int64(visit.topics[t])
    target -= held
    if target < law.big.total[word]:
        return look_up(law.big, word, target / law.big.total[word])
    target -= law.big.total[word]
    chosen = np.int64(-1)
    for s in range(reach):
        if law.small_running[word, s + 1] > law.small_running[word, s]:
            chosen = np.int64(law.small[s])
            if law.small_running[word, s + 1] > target:
                break
    if chosen >= 0:
        return chosen
    # Rounding alone leads here.
    if law.big.total[word] > 0.0:
        return look_up(law.big, word, u)
    return np.int64(visit.topics[n_topics - 1])


@jitted
def _choose_with_small(law, visit, n_topics, word, reach, u):
    """Choose the atom of a token if the rest of its document has a small atom, eq. (15.10)."""
    height, floor = law.floor, law.floor
    for t in range(n_topics):
        height = min(height, law.weights[visit.topics[t]])
    total = 0.0
    for t in range(n_topics):
        k = visit.topics[t]
        ratio = slice_ratio(height, law.weights[k], floor)
        total += visit.counts[k] * law.phi[word, k] * ratio
    held = total
    total += law.big.total[word]
    for s in range(reach):
        k = law.small[s]
        ratio = slice_ratio(height, law.weights[k], floor)
        total += law.alpha * law.weights[k] * law.phi[word, k] * ratio
    target = u * total
    chosen = np.int64(-1)
    if target < held:
        for t in range(n_topics):
            k = visit.topics[t]
            mass = visit.counts[k] * law.phi[word, k] * slice_ratio(height, law.weights[k], floor)
            chosen = np.int64(k) if mass > 0.0 else chosen
            target -= mass
            if target < 0.0:
                return chosen
        return chosen
    target -= held
    if target < law.big.total[word]:
        return look_up(law.big, word, target / law.big.total[word])
    target -= law.big.total[word]
    for s in range(reach):
        k = law.small[s]
        mass = law.alpha * law.weights[k] * law.phi[word, k]
        mass *= slice_ratio(height, law.weights[k], floor)
        chosen = np.int64(k) if mass > 0.0 else chosen
        target -= mass
        if target < 0.0:
            break
    return chosen if chosen >= 0 else np.int64(visit.topics[n_topics - 1])


@jitted
def _visit_document(corpus, law, document, labels, key, visit, word_counts):
    """Redraw the topics of the tokens of a document in turn; return how many topics it has."""
    first = corpus.first_token[document]
    reach = 0
    while reach < law.small.shape[0] and law.weights[law.small[reach]] > law.slices[document]:
        reach += 1
    n_topics = n_in_small = 0
    for token in range(first, corpus.first_token[document + 1]):
        n_topics = _add(visit, n_topics, np.int64(labels[token]))
        n_in_small += law.weights[labels[token]] < law.floor
    token = first
    for entry in range(corpus.indptr[document], corpus.indptr[document + 1]):
        word = corpus.words[entry]
        for _ in range(corpus.counts[entry]):
            old = np.int64(labels[token])
            n_topics = _remove(visit, n_topics, old)
            n_in_small -= law.weights[old] < law.floor
            u = hash_uniform(key, token)
            if n_in_small == 0:
                new = _choose_without_small(law, visit, n_topics, word, reach, u)
            else:
                new = _choose_with_small(law, visit, n_topics, word, reach, u)
            n_topics = _add(visit, n_topics, new)
            n_in_small += law.weights[new] < law.floor
            labels[token] = new
            word_counts[word, new] += 1
            token += 1
    return n_topics


@jitted
def sweep_documents(corpus, law, labels, keys, counter, word_counts, tables):
    """Redraw topics and numbers of tables of the documents that this thread takes.

    Parameters
    ----------
    corpus : Corpus
    law : SweepLaw
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
    n_documents, n_atoms = corpus.first_token.shape[0] - 1, law.weights.shape[0]
    visit = Visit(
        np.zeros(n_atoms, np.int64),
        np.empty(n_atoms, np.int32),
        np.empty(n_atoms, np.int32),
        np.empty(n_atoms),
    )
    stream = new_stream(keys[1])
    block = take_next(counter)
    while block * DOCUMENTS_AT_A_TIME < n_documents:
        begin = block * DOCUMENTS_AT_A_TIME
        for document in range(begin, min(begin + DOCUMENTS_AT_A_TIME, n_documents)):
            n_topics = _visit_document(corpus, law, document, labels, keys[0], visit, word_counts)
            stream[1] = np.uint64(DRAWS_PER_TOKEN * corpus.first_token[document])
            for t in range(n_topics):
                k = visit.topics[t]
                tables[k] += draw_n_tables(stream, visit.counts[k], law.alpha * law.weights[k])
                visit.counts[k] = 0
        block = take_next(counter)


@jitted
def renumber_labels(labels, renumbered):
    """Replace each label (T,) by the new number of its atom, in place."""
    for token in range(labels.shape[0]):
        labels[token] = renumbered[labels[token]]


@jitted
def log_probability_of_topics(corpus, labels, weights, alpha):
    """Log probability of the topics of all tokens given the global weights, eq. (15.11).

    Parameters
    ----------
    corpus : Corpus
    labels : ndarray of int32, shape (T,)
    weights : ndarray of float64, shape (K,)
    alpha : float

    Returns
    -------
    float
    """
    n_topics = weights.shape[0]
    counts, found = np.zeros(n_topics, np.int64), np.empty(n_topics, np.int64)
    out = 0.0
    for document in range(corpus.first_token.shape[0] - 1):
        first, end = corpus.first_token[document], corpus.first_token[document + 1]
        out -= log_rising(alpha, float(end - first))
        n_found = 0
        for token in range(first, end):
            k = labels[token]
            if counts[k] == 0:
                found[n_found] = k
                n_found += 1
            counts[k] += 1
        for f in range(n_found):
            k = found[f]
            out += log_rising(alpha * weights[k], float(counts[k]))
            counts[k] = 0
    return out
