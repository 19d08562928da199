"""Probabilities of words in topics, drawn given the tokens of the topics."""

import math

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.random import draw_log_gamma


@jitted
def fill_topics(rng, word_counts, eta, phi):
    """Draw occupied topics, Dirichlet(eta + n_k1, .., eta + n_kV) each.

    Parameters
    ----------
    rng : numpy.random.Generator
    word_counts : ndarray of int32, shape (V, K)
        Each topic has tokens.
    eta : float
    phi : ndarray of float64, shape (V, A)
        Probabilities, written in the first K columns.
    """
    n_words, n_topics = word_counts.shape
    totals = np.zeros(n_topics)
    for word in range(n_words):
        for k in range(n_topics):
            n = word_counts[word, k]
            # Only words without tokens may underflow; 0 then stands for less than 1e-308.
            drawn = rng.standard_gamma(eta + n) if n > 0 else math.exp(draw_log_gamma(rng, eta))
            phi[word, k] = drawn
            totals[k] += drawn
    for word in range(n_words):
        for k in range(n_topics):
            phi[word, k] /= totals[k]


@jitted
def fill_new_topics(rng, eta, first, phi):
    """Draw topics without tokens, Dirichlet(eta, .., eta) each.

    Parameters
    ----------
    rng : numpy.random.Generator
    eta : float
    first : int
        First column to write; all columns from it on are written.
    phi : ndarray of float64, shape (V, A)
    """
    n_words, n_atoms = phi.shape
    for k in range(first, n_atoms):
        # In logarithms: all gamma variables may underflow.
        highest = -math.inf
        for word in range(n_words):
            phi[word, k] = draw_log_gamma(rng, eta)
            highest = max(highest, phi[word, k])
        total = 0.0
        for word in range(n_words):
            phi[word, k] = math.exp(phi[word, k] - highest)
            total += phi[word, k]
        for word in range(n_words):
            phi[word, k] /= total


@jitted
def draw_log_topics(rng, word_counts, eta):
    """Draw topics like `fill_topics`, as logarithms, which are finite however small eta is.

    Parameters
    ----------
    rng : numpy.random.Generator
    word_counts : ndarray of int32, shape (V, K)
    eta : float

    Returns
    -------
    ndarray of float64, shape (V, K)
    """
    n_words, n_topics = word_counts.shape
    log_phi = np.empty((n_words, n_topics))
    highest, totals = np.full(n_topics, -math.inf), np.zeros(n_topics)
    for word in range(n_words):
        for k in range(n_topics):
            log_phi[word, k] = draw_log_gamma(rng, eta + word_counts[word, k])
            highest[k] = max(highest[k], log_phi[word, k])
    for word in range(n_words):
        for k in range(n_topics):
            totals[k] += math.exp(log_phi[word, k] - highest[k])
    for word in range(n_words):
        for k in range(n_topics):
            log_phi[word, k] -= highest[k] + math.log(totals[k])
    return log_phi
