"""State of a chain of topics."""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.start import MOST_STARTING_CLUSTERS, draw_n_start
from pymc_dpsplit.topics.corpus import Corpus

# Chains start from no fewer topics than one for so many tokens.
_TOKENS_PER_START = 20


class TopicState(NamedTuple):
    """Topics of all tokens, and what the next draw needs besides; see docs/method.md, (15.3).

    Attributes
    ----------
    labels : ndarray of int32, shape (T,)
        Topic of each token.
    word_counts : ndarray of int32, shape (V, K)
        Number of tokens of each word in each topic.
    tables : ndarray of int64, shape (K,)
        Number of tables of each topic, in all documents.
    weights : ndarray of float64, shape (K,)
        Global weights.
    log_rest : float
        Log of the global weight of all topics without tokens.
    """

    labels: np.ndarray
    word_counts: np.ndarray
    tables: np.ndarray
    weights: np.ndarray
    log_rest: float


class Strengths(NamedTuple):
    """Concentrations of the model.

    Attributes
    ----------
    alpha : float
        Of documents.
    gamma : float
        Of the global measure.
    eta : float
        Of topics: each is Dirichlet(eta, .., eta) over the words.
    """

    alpha: float
    gamma: float
    eta: float


def draw_n_topics(n_tokens: int, rng: np.random.Generator) -> int:
    """Draw a number of topics to start from, 50 if there are many tokens.

    Parameters
    ----------
    n_tokens : int
    rng : numpy.random.Generator

    Returns
    -------
    int
        Log-uniform from one for every 20 tokens to one for every token, at most 50.
    """
    fewest = max(1, n_tokens // _TOKENS_PER_START)
    most = min(MOST_STARTING_CLUSTERS, n_tokens)
    return most if fewest >= most else draw_n_start(rng, n_tokens, fewest)


def start_topics(corpus: Corpus, n_topics: int, rng: np.random.Generator) -> TopicState:
    """Start a chain from `n_topics` topics, to which tokens belong at random.

    Parameters
    ----------
    corpus : Corpus
        With at least one token.
    n_topics : int
        At most the number of tokens.
    rng : numpy.random.Generator

    Returns
    -------
    TopicState
        Without topics that have no token.
    """
    labels = rng.integers(n_topics, size=corpus.first_token[-1])
    found, labels = np.unique(labels, return_inverse=True)
    labels = labels.astype(np.int32)
    n_found = len(found)
    counts = count_words(corpus, labels, n_found)
    weights = np.full(n_found, 1.0 / (n_found + 1))
    # Sweeps do not read the numbers of tables.
    tables = np.ones(n_found, np.int64)
    return TopicState(labels, counts, tables, weights, -float(np.log(n_found + 1.0)))


@jitted
def count_words(corpus, labels, n_topics):
    """Count the tokens of each word in each topic.

    Parameters
    ----------
    corpus : Corpus
    labels : ndarray of int32, shape (T,)
    n_topics : int

    Returns
    -------
    ndarray of int32, shape (V, K)
    """
    word_counts = np.zeros((corpus.n_words, n_topics), np.int32)
    token = 0
    for entry in range(corpus.words.shape[0]):
        for _ in range(corpus.counts[entry]):
            word_counts[corpus.words[entry], labels[token]] += 1
            token += 1
    return word_counts
