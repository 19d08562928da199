"""Completion of documents: halves, probabilities against enumeration, and the perplexity."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.jit import COMPILES
from pymc_dpsplit.topics import completion
from pymc_dpsplit.topics.completion import add_completions, fill_document_weights
from pymc_dpsplit.topics.halves import Halves, divide_documents
from tests.support.corpora import corpus_from
from tests.support.statistics import LEVEL, mean_test
from tests.support.traces_of_topics import trace_of

WEIGHTS = np.array([0.5, 0.3, 0.2])
PHI = np.array([[0.6, 0.1, 0.25], [0.3, 0.1, 0.25], [0.1, 0.2, 0.25], [0.0, 0.6, 0.25]])
ALPHA, SEEN, N_DOCUMENTS = 1.4, (0, 3, 3, 2), 256


def true_probabilities() -> np.ndarray:
    """Probability of each word (V,) after `SEEN`, from all topics of its tokens."""
    n_topics, total, out = len(WEIGHTS), 0.0, np.zeros(len(PHI))
    strengths = ALPHA * WEIGHTS
    for labels in product(range(n_topics), repeat=len(SEEN)):
        counts = np.bincount(labels, minlength=n_topics)
        mass = np.exp(np.sum(gammaln(strengths + counts) - gammaln(strengths)))
        mass *= np.prod(PHI[list(SEEN), list(labels)])
        total += mass
        out += mass * (PHI @ (counts + strengths)) / (len(SEEN) + ALPHA)
    return out / total


def completion_p_value() -> float:
    """P-value of the probabilities that the sampler gives, over many equal documents."""
    tokens = np.tile(np.array([*SEEN, 0, 1, 2, 3], np.int32), N_DOCUMENTS)
    first = 8 * np.arange(N_DOCUMENTS + 1)
    out = np.zeros(len(tokens))
    halves = Halves(tokens, first, first[:-1] + len(SEEN))
    add_completions(halves, WEIGHTS, PHI, ALPHA, (30, 10), np.uint64(5), out)
    of_words = out.reshape(-1, 8)[:, len(SEEN) :]
    assert np.all(out.reshape(-1, 8)[:, : len(SEEN)] == 0.0)
    assert np.allclose(of_words.sum(axis=1), 1.0)
    return mean_test(of_words.reshape(64, -1, 4), true_probabilities())


def test_probabilities_are_those_of_all_topics_of_the_first_half() -> None:
    assert completion_p_value() > LEVEL


def _without_prior(counts, word, weights, phi, alpha, masses, stream):
    masses[:] = np.cumsum((counts + alpha / len(weights)) * phi[word])
    return int(np.searchsorted(masses, stream_uniform(stream) * masses[-1]))


stream_uniform = completion.next_uniform


@pytest.mark.control
@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the functions that they call")
def test_sampler_with_equal_weights_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_draw_topic", _without_prior)
    assert completion_p_value() < LEVEL


def true_document_weights() -> np.ndarray:
    """Expected weight of each topic (K,) in a document `SEEN`, from all topics of its tokens."""
    n_topics, total, out = len(WEIGHTS), 0.0, np.zeros(len(WEIGHTS))
    strengths = ALPHA * WEIGHTS
    for labels in product(range(n_topics), repeat=len(SEEN)):
        counts = np.bincount(labels, minlength=n_topics)
        mass = np.exp(np.sum(gammaln(strengths + counts) - gammaln(strengths)))
        mass *= np.prod(PHI[list(SEEN), list(labels)])
        total += mass
        out += mass * (counts + strengths) / (len(SEEN) + ALPHA)
    return out / total


def document_weights_p_value() -> float:
    """P-value of the weights that the sampler gives, over many equal documents."""
    tokens = np.tile(np.array(SEEN, np.int32), N_DOCUMENTS)
    first = len(SEEN) * np.arange(N_DOCUMENTS + 1)
    out = np.empty((N_DOCUMENTS, len(WEIGHTS)))
    fill_document_weights(tokens, first, WEIGHTS, PHI, ALPHA, (30, 10), np.uint64(7), out)
    assert np.allclose(out.sum(axis=1), 1.0)
    return mean_test(out.reshape(64, -1, 3), true_document_weights())


def test_weights_of_documents_are_those_of_all_topics_of_their_tokens() -> None:
    assert document_weights_p_value() > LEVEL


@pytest.mark.control
@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the functions that they call")
def test_weights_of_documents_with_equal_global_weights_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(completion, "_draw_topic", _without_prior)
    assert document_weights_p_value() < LEVEL


def test_topics_of_documents_follow_their_words() -> None:
    idata = trace_of([[1, 0, 0, 0], [0, 0.5, 0.5, 0]], [0.5, 0.3])
    found = dps.document_topics(idata, [[9, 0, 0, 0], [0, 4, 4, 0], [0, 0, 0, 0]], random_seed=1)
    assert np.allclose(found["weight"].sum("topic") + found["new_weight"], 1.0)
    assert found["weight"].values[0, 0] > 0.9
    assert found["weight"].values[1, 1] > 0.9
    assert np.allclose(found["weight"].values[2], [0.5, 0.3])
    named = pd.DataFrame([[1, 0, 0, 0]], index=["a"])
    assert list(dps.document_topics(idata, named)["document"].values) == ["a"]
    with pytest.raises(ValueError, match="draw=2 is out of range; give an integer from -2 to 1"):
        dps.document_topics(idata, [[1, 0, 0, 0]], draw=2)


def test_documents_are_halved(rng: np.random.Generator) -> None:
    counts = np.array([[3, 0, 4], [0, 0, 0], [1, 0, 0], [0, 6, 2]])
    halves = divide_documents(corpus_from(counts), rng)
    assert list(halves.middle - halves.first_token[:-1]) == [3, 0, 0, 4]
    assert halves.is_second.sum() == 4 + 0 + 1 + 4
    for document, of_words in enumerate(counts):
        own = halves.words[halves.first_token[document] : halves.first_token[document + 1]]
        assert list(np.bincount(own, minlength=3)) == list(of_words)


def test_perplexity_of_uniform_topics_is_the_number_of_words() -> None:
    idata = trace_of([[0.25] * 4] * 2, [0.6, 0.3])
    documents = [[3, 0, 2, 0], [0, 0, 0, 0], [0, 1, 0, 9]]
    assert np.isclose(dps.topic_perplexity(idata, documents, random_seed=1), 4.0)


def test_perplexity_falls_if_the_first_half_says_the_topic() -> None:
    idata = trace_of([[1, 0, 0, 0], [0, 0.5, 0.5, 0]], [0.5, 0.49])
    alone = dps.topic_perplexity(idata, [[20, 0, 0, 0]], random_seed=1)
    pair = dps.topic_perplexity(idata, [[0, 10, 10, 0]], random_seed=1)
    unseen = dps.topic_perplexity(idata, [[0, 0, 0, 6]], random_seed=1)
    assert 1.0 < alone < 1.01 < 1.99 < pair < 2.01 < unseen
    again = dps.topic_perplexity(idata, [[0, 10, 10, 0]], random_seed=1, draws=1)
    assert np.isclose(again, pair, rtol=0.01)


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([[1, 2]], {}, "documents has 2 words, but w has 3; give one column"),
        ([[1, -2, 0]], {}, "documents has -2 in column 1; give counts"),
        ([[1, 0.5, 0]], {}, "documents has 0.5 in column 1; give counts"),
        ([[0, 0, 0]], {}, "documents has no tokens, as all counts are 0; give"),
        (pd.DataFrame([[1, 0, 2]], columns=list("acb")), {}, "has the word 'c' in column 1, where"),
        ([[1, 0, 2]], {"draws": 0}, "draws=0 is out of range"),
        ([[1, 0, 2]], {"sweeps": 1}, "sweeps=1 is out of range"),
        ([[1, 0, 2]], {"random_seed": -1}, "random_seed=-1 is no seed"),
        ([[1, 0, 2]], {"var_name": "x"}, "idata has the topic models w, and var_name='x'"),
    ],
)
def test_what_cannot_be_completed_is_refused(documents: Any, options: Any, message: str) -> None:
    idata = trace_of([[0.2, 0.3, 0.5]], [0.9], list("abc"))
    with pytest.raises(ValueError, match=message):
        dps.topic_perplexity(idata, documents, **options)


def test_figure_of_topics_has_their_words() -> None:
    idata = trace_of([[0.1, 0.3, 0.6], [0.7, 0.2, 0.1]], [0.6, 0.3], list("abc"))
    axes = dps.plot_topics(dps.top_words(idata, n=2))
    assert [ax.get_title() for ax in axes] == ["topic 0: 60 %", "topic 1: 30 %"]
    assert [of.get_text() for of in axes[0].get_yticklabels()] == ["c", "b"]
    assert np.allclose([bar.get_width() for bar in axes[1].patches], [0.7, 0.2])
    with pytest.raises(ValueError, match=r"words is a DataTree; give what top_words\(idata\)"):
        dps.plot_topics(idata)
