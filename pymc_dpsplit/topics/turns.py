"""Documents that a thread visits in turns, one token of each at a time.

Documents are independent given the law of a sweep, so the choice of a topic in one does not wait
for that in another.  What a token needs is prepared when its document has settled the one before.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import (
    jitted,
    jitted_copied,
    jitted_inlined_uncounted,
    jitted_uncounted,
)
from pymc_dpsplit.kernels.prefetch import prefetch_element, prefetch_row
from pymc_dpsplit.kernels.product_choice import TOGETHER
from pymc_dpsplit.kernels.uniforms import fill_uniforms
from pymc_dpsplit.topics.documents import slice_ratio

# Tokens of a document that are prepared at a time; a long document would fill the cache.
CHUNK = 512


class Turns(NamedTuple):
    """The documents that a thread visits, one row for each of N.

    Attributes
    ----------
    document : ndarray of int64, shape (N,)
        Number of the document; -1 if there is none.
    token : ndarray of int64, shape (N,)
        Token whose topic is chosen next.
    begin, end : ndarray of int64, shape (N,)
        First token of the chunk of tokens that are prepared, and the end of the chunk.
    entry, left : ndarray of int64, shape (N,)
        Entry of the first token after the chunk, and how many tokens of it are left.
    reach : ndarray of int64, shape (N,)
        How many small atoms the document may choose.
    counts : ndarray of float64, shape (N, P)
        Number of its tokens in each atom, the one whose topic is chosen next left out.
    masses : ndarray of float64, shape (N, P)
        Factor of phi in the mass of each atom for that token.
    words : ndarray of uint32, shape (N, C + 1)
        Word of each token of the chunk; what follows is a word, but means nothing.
    uniforms : ndarray of float64, shape (N, C)
        Random number of each token of the chunk.
    word : ndarray of int64, shape (N,)
        Word of the token whose topic is chosen next.
    u : ndarray of float64, shape (N,)
        Its random number.
    chosen : ndarray of int64, shape (N,)
        The topic that is chosen.
    """

    document: np.ndarray
    token: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    entry: np.ndarray
    left: np.ndarray
    reach: np.ndarray
    counts: np.ndarray
    masses: np.ndarray
    words: np.ndarray
    uniforms: np.ndarray
    word: np.ndarray
    u: np.ndarray
    chosen: np.ndarray


@jitted
def no_documents(width):
    """Return turns without documents.

    Parameters
    ----------
    width : int
        Number of columns P.

    Returns
    -------
    Turns
    """
    n = TOGETHER
    document, token, begin = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64)
    end, entry, left = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    reach, word, chosen = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    counts, masses = np.zeros((n, width)), np.zeros((n, width))
    words, uniforms = np.zeros((n, CHUNK + 1), np.uint32), np.zeros((n, CHUNK))
    return Turns(
        document,
        token,
        begin,
        end,
        entry,
        left,
        reach,
        counts,
        masses,
        words,
        uniforms,
        word,
        np.zeros(n),
        chosen,
    )


@jitted_copied
def _set_small_masses(law, turns, t):
    """Set the masses of the small atoms in reach; all of them depend on those that have tokens."""
    height = law.floor
    for s in range(turns.reach[t]):
        if turns.counts[t, law.small[s]] > 0.0:
            height = min(height, law.weights[law.small[s]])
    for s in range(turns.reach[t]):
        k = law.small[s]
        ratio = slice_ratio(height, law.weights[k], law.floor)
        turns.masses[t, k] = (turns.counts[t, k] + law.prior[k]) * ratio


@jitted_inlined_uncounted
def _change_count(law, turns, t, k, change):
    """Add `change` to the tokens of an atom."""
    # An unsigned index needs no test of its sign.
    k = np.uint64(k)
    count = turns.counts[t, k] + change
    turns.counts[t, k] = count
    turns.masses[t, k] = count + law.prior[k]
    if law.weights[k] < law.floor:
        _set_small_masses(law, turns, t)


@jitted_uncounted
def _set_masses(law, turns, t):
    """Set which small atoms are in reach, and the masses of all atoms."""
    slice_of_document = law.slices[turns.document[t]]
    reach = 0
    while reach < law.small.shape[0] and law.weights[law.small[reach]] > slice_of_document:
        reach += 1
    turns.reach[t] = reach
    for k in range(law.prior.shape[0]):
        turns.masses[t, k] = turns.counts[t, k] + law.prior[k]
    for s in range(reach, law.small.shape[0]):
        turns.masses[t, law.small[s]] = 0.0
    _set_small_masses(law, turns, t)


@jitted_inlined_uncounted
def _prepare_token(law, labels, turns, t):
    """Take a token out of the counts, and ask for the probabilities of the word after it."""
    token = np.uint64(turns.token[t])
    place = token - np.uint64(turns.begin[t])
    turns.word[t] = turns.words[t, place]
    turns.u[t] = turns.uniforms[t, place]
    following = np.int64(turns.words[t, place + np.uint64(1)])
    prefetch_row(law.phi, following, law.prior.shape[0])
    _change_count(law, turns, t, labels[token], -1.0)


@jitted_uncounted
def prepare_chunk(corpus, law, labels, key, turns, t):
    """Prepare the next tokens of a document, of which there is at least one.

    Parameters
    ----------
    corpus : Corpus
    law : DenseLaw
    labels : ndarray of int32, shape (T,)
    key : uint64
        Of the random numbers of tokens.
    turns : Turns
    t : int
        Row of the document.
    """
    begin, entry, left = turns.token[t], turns.entry[t], turns.left[t]
    end = min(begin + CHUNK, corpus.first_token[turns.document[t] + 1])
    place = 0
    while place < end - begin:
        n = min(left, end - begin - place)
        for _ in range(n):
            turns.words[t, place] = corpus.words[entry]
            place += 1
        left -= n
        if left == 0:
            entry += 1
            left = corpus.counts[min(entry, corpus.counts.shape[0] - 1)]
    turns.begin[t], turns.end[t], turns.entry[t], turns.left[t] = begin, end, entry, left
    fill_uniforms(turns.uniforms[t], end - begin, key, begin)
    _prepare_token(law, labels, turns, t)


@jitted_uncounted
def begin_document(corpus, law, document, labels, key, turns, t):
    """Give a row of `turns`, whose counts are 0, to a document.

    Parameters
    ----------
    corpus : Corpus
    law : DenseLaw
    document : int
        It has at least one token.
    labels : ndarray of int32, shape (T,)
    key : uint64
        Of the random numbers of tokens.
    turns : Turns
    t : int
    """
    first = corpus.first_token[document]
    for token in range(first, corpus.first_token[document + 1]):
        turns.counts[t, np.uint64(labels[token])] += 1.0
    turns.document[t], turns.token[t] = document, first
    turns.entry[t] = corpus.indptr[document]
    turns.left[t] = corpus.counts[corpus.indptr[document]]
    _set_masses(law, turns, t)
    prepare_chunk(corpus, law, labels, key, turns, t)


@jitted_uncounted
def _last_with_mass(law, turns, t, word, otherwise):
    """Return the last atom with mass, where rounding led beyond it."""
    for k in range(law.weights.shape[0] - 1, -1, -1):
        if turns.masses[t, k] * law.phi[word, k] > 0.0:
            return np.int64(k)
    return otherwise


@jitted_inlined_uncounted
def settle_token(law, labels, turns, t, word_counts):
    """Give a token the topic that was chosen, and prepare the next one of the chunk.

    Parameters
    ----------
    law : DenseLaw
    labels : ndarray of int32, shape (T,)
        Modified.
    turns : Turns
    t : int
        Row of the document.
    word_counts : ndarray of int32, shape (V, A)
        Not read; `count_chunk` will add the token.

    Returns
    -------
    bool
        Whether the chunk is over.
    """
    token = np.uint64(turns.token[t])
    word, new = np.uint64(turns.word[t]), np.uint64(turns.chosen[t])
    if not turns.masses[t, new] * law.phi[word, new] > 0.0:
        old = np.int64(labels[token])
        new = np.uint64(_last_with_mass(law, turns, t, np.int64(word), old))
    labels[token] = new
    prefetch_element(word_counts, np.int64(word), np.int64(new))
    _change_count(law, turns, t, new, 1.0)
    turns.token[t] += 1
    if turns.token[t] == turns.end[t]:
        return True
    _prepare_token(law, labels, turns, t)
    return False


@jitted_uncounted
def count_chunk(labels, turns, t, word_counts):
    """Add the tokens of a chunk that is over to the counts of words.

    Parameters
    ----------
    labels : ndarray of int32, shape (T,)
    turns : Turns
    t : int
    word_counts : ndarray of int32, shape (V, A)
        Modified.
    """
    begin = turns.begin[t]
    for place in range(turns.end[t] - begin):
        word_counts[turns.words[t, place], np.uint64(labels[begin + place])] += 1
