"""Alias tables: draws from the topics of a word in constant time.

A sweep keeps the probabilities of words and the global weights fixed, so tables that are made at
its start hold until its end, and no draw needs a correction.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted


class AliasTables(NamedTuple):
    """One table for each word, over some topics.

    Attributes
    ----------
    total : ndarray of float64, shape (V,)
        Sum of the masses.
    topics : ndarray of int32, shape (B,)
        Topic of each column.
    keep : ndarray of float64, shape (V, B)
        Probability that a column stands for its own topic.
    other : ndarray of int32, shape (V, B)
        The topic that it stands for otherwise.
    """

    total: np.ndarray
    topics: np.ndarray
    keep: np.ndarray
    other: np.ndarray


@jitted
def make_alias_tables(topics, prior_counts, phi):
    """Make the table of each word.

    Parameters
    ----------
    topics : ndarray of int32, shape (B,)
    prior_counts : ndarray of float64, shape (A,)
    phi : ndarray of float64, shape (V, A)
        The mass of topic k for word w is prior_counts[k] phi[w, k].

    Returns
    -------
    AliasTables

    References
    ----------
    .. [1] Vose (1991), A linear algorithm for generating random numbers with a given distribution,
       IEEE Transactions on Software Engineering 17.
    """
    n_words, n_topics = phi.shape[0], topics.shape[0]
    total = np.zeros(n_words)
    keep = np.ones((n_words, n_topics))
    other = np.empty((n_words, n_topics), np.int32)
    poor, rich = np.empty(n_topics, np.int32), np.empty(n_topics, np.int32)
    for word in range(n_words):
        for b in range(n_topics):
            keep[word, b] = prior_counts[topics[b]] * phi[word, topics[b]]
            other[word, b] = topics[b]
            total[word] += keep[word, b]
        if total[word] > 0.0:
            _divide(topics, keep[word], other[word], total[word], poor, rich)
    return AliasTables(total, topics, keep, other)


@jitted
def _divide(topics, keep, other, total, poor, rich):
    """Turn the masses of one word into a table; columns above the mean fill those below it."""
    n_topics = topics.shape[0]
    scale = n_topics / total
    n_poor = n_rich = 0
    for b in range(n_topics):
        keep[b] *= scale
        if keep[b] < 1.0:
            poor[n_poor] = b
            n_poor += 1
        else:
            rich[n_rich] = b
            n_rich += 1
    while n_poor > 0 and n_rich > 0:
        n_poor -= 1
        taker, giver = poor[n_poor], rich[n_rich - 1]
        other[taker] = topics[giver]
        keep[giver] -= 1.0 - keep[taker]
        if keep[giver] < 1.0:
            n_rich -= 1
            poor[n_poor] = giver
            n_poor += 1
    # Rounding alone leaves these below one.
    for p in range(n_poor):
        keep[poor[p]] = 1.0
    for r in range(n_rich):
        keep[rich[r]] = 1.0


@jitted
def look_up(tables, word, u):
    """Topic that `u`, uniform on [0, 1), selects for a word with a positive total.

    Parameters
    ----------
    tables : AliasTables
    word : int
    u : float

    Returns
    -------
    int
    """
    n_topics = tables.topics.shape[0]
    scaled = u * n_topics
    # Rounding may give u = 1.
    column = min(int(scaled), n_topics - 1)
    if scaled - column < tables.keep[word, column]:
        return np.int64(tables.topics[column])
    return np.int64(tables.other[word, column])
