"""What the concentrations of a topic model depend on.

Each factor is the probability of the state as a function of one concentration, with everything
summed out that the next draw makes anew.
"""

import numpy as np

from pymc_dpsplit.moves.franchise import (
    LogFactor,
    factor_of_alpha,
    factor_of_gamma,
    log_rising,
)
from pymc_dpsplit.topics.corpus import Corpus, document_lengths
from pymc_dpsplit.topics.state import TopicState


def alpha_factor(corpus: Corpus, state: TopicState) -> LogFactor:
    """Return the log probability of the numbers of tables as a function of alpha, eq. (15.7)."""
    return factor_of_alpha(document_lengths(corpus), int(state.tables.sum()))


def gamma_factor(state: TopicState) -> LogFactor:
    """Return the log probability of K topics of all tables as a function of gamma, eq. (15.7)."""
    return factor_of_gamma(len(state.tables), int(state.tables.sum()))


def eta_factor(state: TopicState) -> LogFactor:
    """Return log p(words | topics), eq. (15.12), as a function of eta."""
    n_words = state.word_counts.shape[0]
    sizes = state.word_counts.sum(axis=0)
    times = np.bincount(state.word_counts.ravel())
    counts = np.flatnonzero(times[1:]) + 1
    times = times[counts]

    def log_factor(eta: float) -> float:
        of_words = times @ log_rising(eta, counts)
        return float(of_words - np.sum(log_rising(n_words * eta, sizes)))

    return log_factor


def log_joint(log_topics: float, state: TopicState, eta: float) -> float:
    """Return the log probability of words and topics given the global weights, eq. (15.11).

    Parameters
    ----------
    log_topics : float
        Log probability of the topics, `log_probability_of_topics`.
    state : TopicState
    eta : float

    Returns
    -------
    float
    """
    return log_topics + eta_factor(state)(eta)
