"""Sweeps over topics against the posterior by enumeration, and from exact starts."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit.kernels.jit import COMPILES
from pymc_dpsplit.moves.slice import slice_draw
from pymc_dpsplit.topics import sweep
from pymc_dpsplit.topics.concentrations import alpha_factor, eta_factor, gamma_factor
from pymc_dpsplit.topics.corpus import Corpus, document_lengths, expected_tables
from pymc_dpsplit.topics.documents import log_probability_of_topics
from pymc_dpsplit.topics.state import Strengths, TopicState, count_words
from pymc_dpsplit.topics.sweep import redraw_weights, sweep_topics
from tests.reference.franchise import seat_franchise
from tests.support.corpora import CASES, FLOORS, corpus_from, p_value_of, run_chains, truth_of
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL, two_sample_test

# Chains, and their length; kernels take a thousand times as long as plain Python.
SHAPE = (8, 1500) if COMPILES else (8, 200)
N_REPLICATES = 2000 if COMPILES else 300
PRIORS = {"alpha": stats.gamma(4.0, scale=0.4), "gamma": stats.gamma(4.0, scale=0.3)}
PRIORS["eta"] = stats.gamma(6.0, scale=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "floor"), slow_unless(("c2022", "default").__eq__, product(CASES, FLOORS))
)
def test_posterior_of_tiny_corpus(case, floor):
    draws = run_chains(CASES[case], FLOORS[floor], SHAPE, 20261123)
    assert p_value_of(draws, truth_of(CASES[case])) > LEVEL


# --- one step from exact starts -----------------------------------------------------------

LENGTHS, N_WORDS = (4, 0, 7, 1, 5), 3


class Start(NamedTuple):
    """A draw of everything from the model."""

    corpus: Corpus
    state: TopicState
    strengths: Strengths


def forward(rng: np.random.Generator) -> Start:
    """Draw concentrations, seats, weights, topics and words."""
    strengths = Strengths(*(float(PRIORS[key].rvs(random_state=rng)) for key in PRIORS))
    labels, tables = seat_franchise(LENGTHS, strengths.alpha, strengths.gamma, rng)
    shares = rng.dirichlet([*tables, strengths.gamma])
    topics = rng.dirichlet(np.full(N_WORDS, strengths.eta), size=len(tables))
    words = np.array([rng.choice(N_WORDS, p=topics[k]) for k in labels])
    documents = np.repeat(np.arange(len(LENGTHS)), LENGTHS)
    counts = np.zeros((len(LENGTHS), N_WORDS), int)
    np.add.at(counts, (documents, words), 1)
    corpus = corpus_from(counts)
    # Tokens of one word and document are exchangeable.
    labels = labels[np.lexsort((words, documents))].astype(np.int32)
    word_counts = count_words(corpus, labels, len(tables))
    state = TopicState(labels, word_counts, tables, shares[:-1], float(np.log(shares[-1])))
    return Start(corpus, state, strengths)


def one_draw(start: Start, rng: np.random.Generator) -> Start:
    """Sweep, move the concentrations, and redraw the weights."""
    corpus, state, strengths = start
    state = state._replace(labels=state.labels.copy())
    floor = 1.0 / expected_tables(document_lengths(corpus), strengths.alpha)
    state = sweep_topics(corpus, state, strengths, floor, rng)
    factors = alpha_factor(corpus, state), gamma_factor(state), eta_factor(state)
    moved = [
        move(value, PRIORS[key].logpdf, factor, rng)
        for key, value, factor in zip(PRIORS, strengths, factors, strict=True)
    ]
    strengths = Strengths(*moved)
    return Start(corpus, redraw_weights(state, strengths.gamma, rng), strengths)


def move(
    value: float,
    log_prior: Callable[[float], float],
    log_factor: Callable[[float], float],
    rng: np.random.Generator,
) -> float:
    """Slice-sample a positive number on the log scale."""

    def log_density(log_value: float) -> float:
        number = float(np.exp(log_value))
        return log_prior(number) + log_factor(number) + log_value

    return float(np.exp(slice_draw(log_density, float(np.log(value)), 1.0, rng)))


def statistics_of(start: Start) -> list[float]:
    """Numbers that do not depend on the numbering of topics."""
    corpus, state, strengths = start
    log_topics = log_probability_of_topics(corpus, state.labels, state.weights, strengths.alpha)
    sizes = state.word_counts.sum(axis=0)
    return [
        *strengths,
        len(state.tables),
        state.tables.sum(),
        state.tables.max(),
        state.log_rest,
        np.sum(state.weights**2),
        np.sum(sizes**2),
        log_topics,
        eta_factor(state)(strengths.eta),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "floor"), list(product(CASES, FLOORS)))
def test_posterior_with_alias_tables(case, floor, monkeypatch):
    monkeypatch.setattr(sweep, "MOST_DENSE", 0)
    draws = run_chains(CASES[case], FLOORS[floor], SHAPE, 20261129)
    assert p_value_of(draws, truth_of(CASES[case])) > LEVEL


@pytest.mark.slow
def test_one_draw_leaves_the_joint_law_as_it_was():
    rng = np.random.default_rng(20261124)
    starts = [forward(rng) for _ in range(N_REPLICATES)]
    before = np.array([statistics_of(start) for start in starts])
    after = np.array([statistics_of(one_draw(start, rng)) for start in starts])
    assert two_sample_test(before, after) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_move_of_alpha_without_its_tables_is_caught(monkeypatch):
    rng = np.random.default_rng(20261125)

    def without_documents(corpus: Corpus, state: TopicState):
        n_tables = state.tables.sum()
        return lambda alpha: n_tables * np.log(alpha) - alpha

    monkeypatch.setitem(globals(), "alpha_factor", without_documents)
    starts = [forward(rng) for _ in range(N_REPLICATES)]
    before = np.array([statistics_of(start) for start in starts])
    after = np.array([statistics_of(one_draw(start, rng)) for start in starts])
    assert two_sample_test(before, after) < LEVEL
