"""Probabilities of the second half of a document, given the first half and topics of a draw.

The topics and their weights are fixed, and the weights of the document are summed out: the topics
of the tokens of the first half are redrawn in turn, docs/method.md, eq. (15.13).
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
    n_sweeps, n_early = sweeps
    masses, mean = np.empty(n_topics), np.empty(n_topics)
    for document in range(halves.middle.shape[0]):
        first, middle = halves.first_token[document], halves.middle[document]
        counts, labels = np.zeros(n_topics), np.empty(middle - first, np.int64)
        for i in range(middle - first):
            word = halves.words[first + i]
            labels[i] = _draw_topic(counts, word, weights, phi, alpha, masses, stream)
            counts[labels[i]] += 1.0
        mean[:] = 0.0
        for sweep in range(n_sweeps):
            for i in range(middle - first):
                counts[labels[i]] -= 1.0
                word = halves.words[first + i]
                labels[i] = _draw_topic(counts, word, weights, phi, alpha, masses, stream)
                counts[labels[i]] += 1.0
            if sweep >= n_early:
                for k in range(n_topics):
                    mean[k] += counts[k]
        for k in range(n_topics):
            mean[k] = mean[k] / (n_sweeps - n_early) + alpha * weights[k]
        for token in range(middle, halves.first_token[document + 1]):
            mass = 0.0
            for k in range(n_topics):
                mass += mean[k] * phi[halves.words[token], k]
            out[token] += mass / (middle - first + alpha)
