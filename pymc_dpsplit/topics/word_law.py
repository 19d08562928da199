"""Probabilities of words in topics, drawn given the tokens of the topics.

Most words have no token in most topics, so most of the gamma variables that a Dirichlet variable is
made of have the shape eta.  Where eta is below 1 they are drawn by vector code.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_copied
from pymc_dpsplit.kernels.powers import raise_to
from pymc_dpsplit.kernels.product_choice import WIDE
from pymc_dpsplit.kernels.random import draw_key, draw_log_gamma, hash_uniform
from pymc_dpsplit.kernels.sharing import take_next

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
    _fill_counted(rng, word_counts, eta, n_atoms, phi)
    if eta < 1.0:
        keys = np.uint64(draw_key(rng)), np.uint64(draw_key(rng))
        _fill_others_on_threads(word_counts, eta, n_atoms, keys, phi, pool)
    _normalise(rng, word_counts.shape[1], n_atoms, eta, phi)
    return phi


def _aligned(n_words: int, width: int) -> np.ndarray:
    """Return zeros whose rows begin with cache lines, if they have a multiple of 8 columns."""
    roomy = np.zeros(n_words * width + WIDE)
    skipped = -(roomy.ctypes.data // roomy.itemsize) % WIDE
    return roomy[skipped : skipped + n_words * width].reshape(n_words, width)


def _fill_others_on_threads(
    word_counts: np.ndarray,
    eta: float,
    n_atoms: int,
    keys: tuple[Any, Any],
    phi: np.ndarray,
    pool: ThreadPoolExecutor | None,
) -> None:
    counter = np.zeros(1, np.int64)
    arguments: Any = (word_counts, eta, n_atoms, keys, counter, phi)
    if pool is None:
        fill_others(*arguments)
        return
    for thread in [pool.submit(fill_others, *arguments) for _ in range(pool._max_workers)]:
        thread.result()


@jitted
def _fill_counted(rng, word_counts, eta, n_atoms, phi):
    """Draw the gamma variables of words with tokens; of all words where eta is 1 or more."""
    n_words, n_topics = word_counts.shape
    for word in range(n_words):
        for k in range(n_topics):
            n = word_counts[word, k]
            if n > 0 or eta >= 1.0:
                phi[word, k] = rng.standard_gamma(eta + n)
        if eta >= 1.0:
            for k in range(n_topics, n_atoms):
                phi[word, k] = rng.standard_gamma(eta)


@jitted_copied
def is_accepted(drawn, eta, u):
    """Whether a proposal for a gamma variable is accepted, given a uniform."""
    if drawn < 1.0:
        return u < 1.0 - drawn or u < math.exp(-drawn)
    return u < drawn ** (eta - 1.0)


@jitted
def fill_others(word_counts, eta, n_atoms, keys, counter, phi):
    """Draw the gamma variables of words without tokens, for the words that this thread takes.

    A proposal has the density of x^(eta - 1) below 1 and exp(-x) above, up to constants; it is
    accepted with probability exp(-x) below 1 and x^(eta - 1) above.

    Parameters
    ----------
    word_counts : ndarray of int32, shape (V, K)
    eta : float
        Less than 1.
    n_atoms : int
    keys : tuple of uint64
        For proposals, and for their acceptance.
    counter : ndarray of int64, shape (1,)
        Of blocks of words, which all threads share.
    phi : ndarray of float64, shape (V, P)
        Modified.

    References
    ----------
    .. [1] Ahrens and Dieter (1974), Computer methods for sampling from gamma, beta, Poisson and
       binomial distributions, Computing 12, algorithm GS.
    """
    n_words, width = phi.shape
    n_topics = word_counts.shape[1]
    mass = 1.0 + eta / math.e
    drawn = np.ones(width)
    block = take_next(counter)
    while block * _WORDS_AT_A_TIME < n_words:
        begin = block * _WORDS_AT_A_TIME
        for word in range(begin, min(begin + _WORDS_AT_A_TIME, n_words)):
            for k in range(n_atoms):
                drawn[k] = mass * hash_uniform(keys[0], word * width + k)
            raise_to(drawn, width, 1.0 / eta)
            for k in range(n_atoms):
                if k >= n_topics or word_counts[word, k] == 0:
                    at = word * width + k
                    x = _accepted(drawn[k], eta, keys, at, n_words * width)
                    phi[word, k] = x if x > _NOTHING else 0.0
        block = take_next(counter)


@jitted
def _accepted(power, eta, keys, at, size):
    """Return a proposal, or if it is not accepted, those after it until one is."""
    mass = 1.0 + eta / math.e
    while True:
        x = power
        if power >= 1.0:
            x = -math.log(mass * (1.0 - hash_uniform(keys[0], at)) / eta)
        if is_accepted(x, eta, hash_uniform(keys[1], at)):
            return x
        at += size
        power = (mass * hash_uniform(keys[0], at)) ** (1.0 / eta)


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
