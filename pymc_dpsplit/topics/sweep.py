"""A sweep over the topics of all tokens, and the global weights given the tables."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from pymc_dpsplit.kernels.random import draw_key
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.tables import break_global_remainder, draw_global_weights
from pymc_dpsplit.topics.alias_tables import make_alias_tables
from pymc_dpsplit.topics.corpus import Corpus
from pymc_dpsplit.topics.dense_documents import DenseLaw, sweep_dense_documents
from pymc_dpsplit.topics.documents import (
    SweepLaw,
    draw_slices,
    renumber_labels,
    sum_small_masses,
    sweep_documents,
)
from pymc_dpsplit.topics.state import Strengths, TopicState
from pymc_dpsplit.topics.word_law import draw_topics

# Up to so many atoms, all of them are looked at for each token.
MOST_DENSE = 256


def sweep_topics(
    corpus: Corpus,
    state: TopicState,
    strengths: Strengths,
    floor: float,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor | None = None,
) -> TopicState:
    """Redraw the topics of all tokens given the global weights, then the tables given both.

    Parameters
    ----------
    corpus : Corpus
    state : TopicState
        Its labels are modified.
    strengths : Strengths
    floor : float
        Slices have weights up to this; any positive number that depends on no label is valid.
    rng : numpy.random.Generator
    pool : ThreadPoolExecutor, optional

    Returns
    -------
    TopicState
        With the global weights as they were; those of topics that lost all their tokens are in the
        remainder.  `redraw_weights` comes next.
    """
    law, log_rest = _draw_law(corpus, state, strengths, floor, rng, pool)
    keys = np.uint64(draw_key(rng)), np.uint64(draw_key(rng))
    word_counts, tables = _sweep_on_threads(corpus, law, state.labels, keys, pool)
    kept = np.flatnonzero(tables)
    if kept[-1] >= len(kept):
        renumbered = np.full(len(tables), -1, np.int32)
        renumbered[kept] = np.arange(len(kept))
        renumber_labels(state.labels, renumbered)
        word_counts = word_counts[:, kept]
    dropped = law.weights[tables == 0].sum()
    log_rest = float(np.logaddexp(log_rest, np.log(dropped))) if dropped > 0.0 else log_rest
    # As a rule the atoms that are dropped are the last ones; a slice is copied fast.
    word_counts = np.ascontiguousarray(word_counts[:, : len(kept)])
    return TopicState(state.labels, word_counts, tables[kept], law.weights[kept], log_rest)


def redraw_weights(state: TopicState, gamma: float, rng: np.random.Generator) -> TopicState:
    """Redraw the global weights given the tables, eq. (15.6).

    Parameters
    ----------
    state : TopicState
        Of `sweep_topics`.
    gamma : float
    rng : numpy.random.Generator

    Returns
    -------
    TopicState
    """
    weights, log_rest = draw_global_weights(rng, state.tables, gamma)
    return state._replace(weights=weights, log_rest=log_rest)


def _draw_law(
    corpus: Corpus,
    state: TopicState,
    strengths: Strengths,
    floor: float,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor | None,
) -> tuple[SweepLaw | DenseLaw, float]:
    """Draw slices, atoms that no token has, and topics; the remainder holds all other atoms."""
    alpha, gamma, eta = strengths
    key = np.uint64(draw_key(rng))
    slices, lowest = draw_slices(corpus, state.labels, state.weights, floor, key)
    sticks, log_rest = break_global_remainder(
        rng, dirichlet_process(gamma), state.log_rest, float(np.log(lowest))
    )
    # No token can choose the others.
    in_reach = sticks > lowest
    out_of_reach = sticks[~in_reach].sum()
    if out_of_reach > 0.0:
        log_rest = float(np.logaddexp(log_rest, np.log(out_of_reach)))
    weights = np.concatenate((state.weights, sticks[in_reach]))
    phi = draw_topics(rng, state.word_counts, eta, len(weights), pool)
    return _law_of(phi, weights, alpha, floor, slices), log_rest


def _law_of(
    phi: np.ndarray, weights: np.ndarray, alpha: float, floor: float, slices: np.ndarray
) -> SweepLaw | DenseLaw:
    """Prepare what the visits of documents read."""
    order = np.argsort(-weights).astype(np.int32)
    n_big = int(np.sum(weights >= floor))
    small = order[n_big:]
    if len(weights) <= MOST_DENSE:
        prior = np.zeros(phi.shape[1])
        prior[: len(weights)] = alpha * weights
        return DenseLaw(phi, prior, weights, floor, small, slices)
    big = make_alias_tables(order[:n_big], alpha * weights, phi)
    running = sum_small_masses(phi, weights, alpha, floor, small)
    return SweepLaw(phi, weights, alpha, floor, big, small, running, slices)


def _sweep_on_threads(
    corpus: Corpus,
    law: SweepLaw | DenseLaw,
    labels: np.ndarray,
    keys: tuple[Any, Any],
    pool: ThreadPoolExecutor | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Sweep over all documents; return the word counts (V, A) and the tables (A,)."""
    n_threads = 1 if pool is None else pool._max_workers
    counter = np.zeros(1, np.int64)
    n_atoms = len(law.weights)
    totals = [
        (np.zeros((corpus.n_words, n_atoms), np.int32), np.zeros(n_atoms, np.int64))
        for _ in range(n_threads)
    ]
    sweep = sweep_dense_documents if isinstance(law, DenseLaw) else sweep_documents
    if pool is None:
        sweep(corpus, law, labels, keys, counter, *totals[0])
        return totals[0]
    done = [
        pool.submit(sweep, corpus, law, labels, keys, counter, words, tables)
        for words, tables in totals
    ]
    for thread in done:
        thread.result()
    word_counts, tables = totals[0]
    for more_words, more_tables in totals[1:]:
        word_counts += more_words
        tables += more_tables
    return word_counts, tables
