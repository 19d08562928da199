"""Probabilities of words in topics, drawn given the tokens of the topics.

Most words have no token in most topics, so most of the gamma variables that a Dirichlet variable is
made of have the shape eta.  Where eta is below 1 they are drawn by vector code.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.kernels.product_choice import WIDE
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.topics.gamma_rows import add_whole, fill_fractional, new_gamma_row

# Number of words that a thread takes at a time.
_WORDS_AT_A_TIME = 64
# Variables below it, and topics whose variables add up to less, are as good as 0.
_NOTHING, _TOO_LITTLE = 1e-300, 1e-280


def draw_topics(
    rng: np.random.Generator,
    word_counts: np.ndarray,
    eta: float,
    n_atoms: int,
    pool: ThreadPoolExecutor | None = None,
) -> np.ndarray:
    """Draw topics, Dirichlet(eta + n_k1, .., eta + n_kV) each.

    Parameters
    ----------
    rng : numpy.random.Generator
    word_counts : ndarray of int32, shape (V, K)
        Of the first K atoms, which all have tokens.
    eta : float
    n_atoms : int
        Number A of atoms; those from the K-th on have no token.
    pool : ThreadPoolExecutor, optional

    Returns
    -------
    ndarray of float64, shape (V, P)
        Probability of each word in each atom.  P is a multiple of 8; columns from the A-th on are
        zero.  Each row begins with a cache line.
    """
    width = -(-n_atoms // WIDE) * WIDE
    phi = _aligned(len(word_counts), width)
    keys = np.uint64(draw_key(rng)), np.uint64(draw_key(rng)), np.uint64(draw_key(rng))
    _fill_on_threads(word_counts, eta, n_atoms, keys, phi, pool)
    _normalise(rng, word_counts.shape[1], n_atoms, eta, phi)
    return phi


def _aligned(n_words: int, width: int) -> np.ndarray:
    """Return zeros whose rows begin with cache lines, if they have a multiple of 8 columns."""
    roomy = np.zeros(n_words * width + WIDE)
    skipped = -(roomy.ctypes.data // roomy.itemsize) % WIDE
    return roomy[skipped : skipped + n_words * width].reshape(n_words, width)


def _fill_on_threads(
    word_counts: np.ndarray,
    eta: float,
    n_atoms: int,
    keys: tuple[Any, Any, Any],
    phi: np.ndarray,
    pool: ThreadPoolExecutor | None,
) -> None:
    counter = np.zeros(1, np.int64)
    arguments: Any = (word_counts, eta, n_atoms, keys, counter, phi)
    if pool is None:
        fill_gammas(*arguments)
        return
    for thread in [pool.submit(fill_gammas, *arguments) for _ in range(pool._max_workers)]:
        thread.result()


@jitted
def fill_gammas(word_counts, eta, n_atoms, keys, counter, phi):
    """Draw the gamma variables of the words that this thread takes.

    Parameters
    ----------
    word_counts : ndarray of int32, shape (V, K)
    eta : float
    n_atoms : int
    keys : tuple of uint64
        For `fill_fractional` and for `add_whole`.
    counter : ndarray of int64, shape (1,)
        Of blocks of words, which all threads share.
    phi : ndarray of float64, shape (V, P)
        Modified.
    """
    n_words, width = phi.shape
    whole = math.floor(eta)
    row, step = new_gamma_row(width), n_words * width
    block = take_next(counter)
    while block * _WORDS_AT_A_TIME < n_words:
        begin = block * _WORDS_AT_A_TIME
        for word in range(begin, min(begin + _WORDS_AT_A_TIME, n_words)):
            at = word * width
            if eta > whole:
                fill_fractional(row, n_atoms, eta - whole, keys[:2], at, step)
            add_whole(row, word_counts, word, n_atoms, whole, keys[2], at, step)
            for k in range(n_atoms):
                phi[word, k] = row.drawn[k] if row.drawn[k] > _NOTHING else 0.0
                row.drawn[k] = 0.0
        block = take_next(counter)


@jitted
def _normalise(rng, n_topics, n_atoms, eta, phi):
    """Divide gamma variables by their sums.

    The sum does not depend on the proportions.  So a topic with an underflowing sum, which has no
    token, may be drawn again.
    """
    n_words = phi.shape[0]
    totals = np.zeros(n_atoms)
    for word in range(n_words):
        for k in range(n_atoms):
            totals[k] += phi[word, k]
    for k in range(n_topics, n_atoms):
        if totals[k] < _TOO_LITTLE:
            totals[k] = fill_by_logarithms(rng, eta, k, phi)
    for k in range(n_atoms):
        totals[k] = 1.0 / totals[k]
    for word in range(n_words):
        for k in range(n_atoms):
            phi[word, k] *= totals[k]


@jitted
def fill_by_logarithms(rng, eta, k, phi):
    """Draw a topic without tokens up to a factor, however small eta is.

    Parameters
    ----------
    rng : numpy.random.Generator
    eta : float
    k : int
        Column to write.
    phi : ndarray of float64, shape (V, P)

    Returns
    -------
    float
        Sum of the column.
    """
    highest = -math.inf
    for word in range(phi.shape[0]):
        phi[word, k] = draw_log_gamma(rng, eta)
        highest = max(highest, phi[word, k])
    total = 0.0
    for word in range(phi.shape[0]):
        phi[word, k] = math.exp(phi[word, k] - highest)
        total += phi[word, k]
    return total


@jitted
def draw_log_topics(rng, word_counts, eta):
    """Draw topics like `draw_topics`, as logarithms, which are finite however small eta is.

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
