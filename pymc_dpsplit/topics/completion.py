"""Weights of topics in a document, and probabilities of its second half, given topics of a draw.

The topics and their weights are fixed, and the weights of the document are summed out: the topics
of the tokens that are seen are redrawn in turn, docs/method.md, eq. (15.13) and (15.14).
"""

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.streams import new_stream, next_uniform


@jitted
def _draw_topic(counts, word, weights, phi, alpha, masses, stream):
    """Draw the topic of a token given the counts (K,) of the other tokens."""
    total = 0.0
    for k in range(weights.shape[0]):
        total += (counts[k] + alpha * weights[k]) * phi[word, k]
        masses[k] = total
    target = next_uniform(stream) * total
    k = 0
    while k < weights.shape[0] - 1 and masses[k] <= target:
        k += 1
    return k


@jitted
def _average_counts(words, weights, phi, alpha, sweeps, masses, mean, stream):
    """Fill `mean` (K,) with the average numbers of these tokens in each topic."""
    n_topics, n_tokens = weights.shape[0], words.shape[0]
    n_sweeps, n_early = sweeps
    counts, labels = np.zeros(n_topics), np.empty(n_tokens, np.int64)
    for i in range(n_tokens):
        labels[i] = _draw_topic(counts, words[i], weights, phi, alpha, masses, stream)
        counts[labels[i]] += 1.0
    mean[:] = 0.0
    for sweep in range(n_sweeps):
        for i in range(n_tokens):
            counts[labels[i]] -= 1.0
            labels[i] = _draw_topic(counts, words[i], weights, phi, alpha, masses, stream)
            counts[labels[i]] += 1.0
        if sweep >= n_early:
            for k in range(n_topics):
                mean[k] += counts[k]
    for k in range(n_topics):
        mean[k] /= n_sweeps - n_early


@jitted
def add_completions(halves, weights, phi, alpha, sweeps, key, out):
    """Add the probability of each token of the second halves of documents to `out`.

    Parameters
    ----------
    halves : Halves
    weights : ndarray of float64, shape (K,)
        Global weights of the topics, with sum 1.
    phi : ndarray of float64, shape (V, K)
        Positive in one topic for each word.
    alpha : float
    sweeps : tuple of int
        Number of sweeps over the first half, and how many of them come before the average.
    key : uint64
    out : ndarray of float64, shape (T,)
        One element for each token; those of first halves stay as they are.
    """
    n_topics, stream = weights.shape[0], new_stream(key)
    masses, mean = np.empty(n_topics), np.empty(n_topics)
    for document in range(halves.middle.shape[0]):
        first, middle = halves.first_token[document], halves.middle[document]
        seen = halves.words[first:middle]
        _average_counts(seen, weights, phi, alpha, sweeps, masses, mean, stream)
        for token in range(middle, halves.first_token[document + 1]):
            mass = 0.0
            for k in range(n_topics):
                mass += (mean[k] + alpha * weights[k]) * phi[halves.words[token], k]
            out[token] += mass / (middle - first + alpha)


@jitted
def fill_document_weights(words, first_token, weights, phi, alpha, sweeps, key, out):
    """Fill `out` with the expected weights of topics in documents, eq. (15.14).

    Parameters
    ----------
    words : ndarray of int32, shape (T,)
        Word of each token, document by document.
    first_token : ndarray of int64, shape (J + 1,)
        Document j has the tokens first_token[j] to first_token[j + 1] - 1.
    weights, phi, alpha, sweeps, key
        As in `add_completions`; sweeps are over all tokens.
    out : ndarray of float64, shape (J, K)
    """
    n_topics, stream = weights.shape[0], new_stream(key)
    masses, mean = np.empty(n_topics), np.empty(n_topics)
    for document in range(out.shape[0]):
        seen = words[first_token[document] : first_token[document + 1]]
        _average_counts(seen, weights, phi, alpha, sweeps, masses, mean, stream)
        for k in range(n_topics):
            out[document, k] = (mean[k] + alpha * weights[k]) / (seen.shape[0] + alpha)
