"""Parts of the sampler of topics, and what its tests must catch."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from pymc_dpsplit.kernels.jit import COMPILES, jitted
from pymc_dpsplit.kernels.product_choice import TOGETHER, choose_by_products
from pymc_dpsplit.kernels.random import hash_uniform
from pymc_dpsplit.kernels.streams import new_stream
from pymc_dpsplit.kernels.uniforms import fill_uniforms
from pymc_dpsplit.moves.tables import draw_n_tables
from pymc_dpsplit.topics import dense_documents, documents, gamma_rows, sweep, turns
from pymc_dpsplit.topics.alias_tables import look_up, make_alias_tables
from pymc_dpsplit.topics.corpus import expected_tables
from pymc_dpsplit.topics.cost import cost_of_sweep
from pymc_dpsplit.topics.documents import log_probability_of_topics
from pymc_dpsplit.topics.gamma_rows import draw_large
from pymc_dpsplit.topics.state import (
    Strengths,
    TopicState,
    count_words,
    draw_n_topics,
    start_topics,
)
from pymc_dpsplit.topics.sweep import redraw_weights, sweep_topics
from pymc_dpsplit.topics.word_law import draw_topics
from tests.reference.franchise import (
    all_tables,
    counts_of,
    log_law_of_tables,
    seatings,
    stirling,
)
from tests.support.corpora import CASES, corpus_from, p_value_of, run_chains, tokens_of, truth_of
from tests.support.statistics import LEVEL, count_test

# --- the truth ----------------------------------------------------------------------------


@pytest.mark.parametrize("where", [(0, 0, 1, 1, 1), (0, 1, 2, 0, 1)])
@pytest.mark.parametrize("concentrations", [(1.0, 1.0), (0.3, 2.5)])
def test_law_of_tables_adds_up_all_seatings(where, concentrations):
    prior = seatings(where, *concentrations)
    assert np.isclose(sum(prior.values()), 1.0)
    for labels, probability in prior.items():
        counts = counts_of(np.array(labels), np.array(where))
        logs = [log_law_of_tables(m, counts, *concentrations) for m in all_tables(counts)]
        assert np.isclose(np.exp(logs).sum(), probability, rtol=1e-12)


# --- parts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "strength"), [(1, 0.3), (2, 0.3), (5, 2.0), (12, 1e-12), (12, 0.4), (30, 1.5), (20, 30.0)]
)
def test_number_of_tables_has_its_law(n, strength):
    m = np.arange(n + 1)
    log_law = np.array([np.log(float(stirling(n, int(k))) or np.nan) for k in m])
    log_law = log_law + m * np.log(strength) + gammaln(strength) - gammaln(strength + n)
    law = np.where(np.isnan(log_law), 0.0, np.exp(log_law))
    assert np.isclose(law.sum(), 1.0)
    stream = new_stream(np.uint64(11 * n))
    draws = np.array([draw_n_tables(stream, n, strength) for _ in range(2560)]).reshape(64, -1)
    if law.max() > 1.0 - 1e-9:
        assert np.all(draws == law.argmax())
    else:
        assert count_test(draws, law) > LEVEL


@pytest.mark.parametrize("alpha", [1e-300, 0.3, 9.9e5, 1.1e6, 1e15, 1e300])
def test_expected_tables_of_any_alpha(alpha: float) -> None:
    """Token i + 1 of a document opens a table with probability alpha / (alpha + i)."""
    lengths = np.array([0, 1, 7, 40])
    expected = sum((alpha / (alpha + np.arange(n))).sum() for n in lengths)
    np.testing.assert_allclose(expected_tables(lengths, alpha), expected, rtol=1e-9)


def test_cost_of_a_sweep_grows_with_tokens_and_topics() -> None:
    few, many = (
        TopicState(np.zeros(n, np.int32), np.zeros((10, k), np.int32), np.ones(k), np.ones(k), 0.0)
        for n, k in ((100, 2), (10_000, 20))
    )
    assert cost_of_sweep(few) < 0.5 * cost_of_sweep(many)


def test_chains_of_a_small_corpus_start_apart() -> None:
    """With few tokens splits and merges of topics are rare, so that chains have to tell."""
    rng = np.random.default_rng(1)
    starts = [draw_n_topics(12, rng) for _ in range(200)]
    assert set(starts) == set(range(1, 13))
    assert {draw_n_topics(600, rng) for _ in range(300)} == set(range(30, 51))
    assert {draw_n_topics(5000, rng) for _ in range(20)} == {50}
    assert draw_n_topics(1, rng) == 1


def test_jumps_need_few_random_numbers():
    stream = new_stream(np.uint64(3))
    assert draw_n_tables(stream, 10**9, 0.5) < 60
    assert stream[1] < 200


def test_alias_tables_hold_the_masses():
    rng = np.random.default_rng(2)
    phi = rng.dirichlet(np.full(6, 0.1), size=7).T.copy()
    phi[2] = 0.0
    prior_counts = rng.gamma(0.5, size=7)
    topics = np.array([5, 0, 3, 6], np.int32)
    tables = make_alias_tables(topics, prior_counts, phi)
    masses = prior_counts[topics] * phi[:, topics]
    assert np.allclose(tables.total, masses.sum(axis=1))
    for word in (0, 1, 3, 4, 5):
        held = np.zeros(7)
        np.add.at(held, topics, tables.keep[word] / 4.0)
        np.add.at(held, tables.other[word], (1.0 - tables.keep[word]) / 4.0)
        assert np.allclose(held[topics], masses[word] / masses[word].sum())
        assert look_up(tables, word, 1.0) in topics


@jitted
def _choices(left, right, rows, uniforms):
    """TOGETHER choices for each row of uniforms."""
    chosen = np.empty(uniforms.shape, np.int64)
    for i in range(uniforms.shape[0]):
        choose_by_products(left, right, rows, left.shape[1], uniforms[i], chosen[i])
    return chosen


@pytest.mark.parametrize("width", [8, 24])
def test_choice_by_products_has_its_law(width):
    rng = np.random.default_rng(width)
    left, right = rng.gamma(0.3, size=(TOGETHER, width)), rng.gamma(0.3, size=(3, width))
    left[:, [1, width - 1]] = 0.0
    rows = np.array([2, 0, 1, 2])
    # Each choice sees evenly spaced uniforms, in an order of its own.
    evenly = (np.arange(6400) + 0.5) / 6400.0
    uniforms = np.column_stack([rng.permutation(evenly) for _ in range(TOGETHER)])
    chosen = _choices(left, right, rows, uniforms)
    for i in range(TOGETHER):
        law = left[i] * right[rows[i]] / (left[i] @ right[rows[i]])
        # They miss a probability by one in 6400 per interval.
        found = np.bincount(chosen[:, i], minlength=width) / 6400.0
        assert np.abs(found - law).max() < 2.0 / 6400.0


@jitted
def _uniforms(key, first, n):
    out = np.zeros(n)
    fill_uniforms(out, n, key, first)
    return out


def test_uniforms_are_those_of_their_indices():
    key = np.uint64(2**63 + 5)
    assert np.array_equal(_uniforms(key, 7, 21), [hash_uniform(key, 7 + i) for i in range(21)])


@jitted
def _large(shape, n):
    out = np.empty(n)
    for i in range(n):
        out[i] = draw_large(shape, np.uint64(3), i, n)
    return out


@pytest.mark.parametrize("shape", [1.0, 7.0, 400.0])
def test_large_gamma_variables_have_their_law(shape):
    drawn = _large(shape, 20_000 if COMPILES else 3000)
    assert stats.kstest(drawn, stats.gamma(shape).cdf).pvalue > LEVEL


@pytest.mark.parametrize("eta", [0.02, 0.4, 0.9, 1.0, 1.5, 7.3])
def test_drawn_topics_are_dirichlet(eta):
    rng = np.random.default_rng(17)
    counts = np.array([[0, 3], [9, 0], [0, 1]], np.int32)
    phi = np.array([draw_topics(rng, counts, eta, 4) for _ in range(1500 if COMPILES else 400)])
    assert np.all(phi[:, :, 4:] == 0.0)
    assert np.allclose(phi[:, :, :4].sum(axis=1), 1.0)
    for k in range(4):
        shapes = eta + (counts[:, k] if k < 2 else np.zeros(3))
        for word, shape in enumerate(shapes):
            law = stats.beta(shape, shapes.sum() - shape)
            # Those close to 1 are rounded.
            below, share = phi[phi[:, word, k] < 0.5, word, k], law.cdf(0.5)
            assert stats.binomtest(len(below), len(phi), share).pvalue > LEVEL
            if len(below):
                assert stats.kstest(law.cdf(below) / share, "uniform").pvalue > LEVEL


def test_topics_with_tiny_eta_are_finite():
    phi = draw_topics(np.random.default_rng(3), np.ones((5, 1), np.int32), 1e-9, 3)
    assert np.allclose(phi[:, :3].sum(axis=0), 1.0)


@pytest.mark.control
@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the functions that they call")
def test_gamma_variables_as_proposed_are_caught(monkeypatch):
    monkeypatch.setattr(gamma_rows, "is_accepted", _accept_all)
    rng, counts = np.random.default_rng(17), np.ones((3, 1), np.int32)
    phi = np.array([draw_topics(rng, counts, 0.9, 2)[0, 1] for _ in range(3000)])
    assert stats.kstest(phi, stats.beta(0.9, 1.8).cdf).pvalue < LEVEL


def example(n_documents: int, seed: int):
    rng = np.random.default_rng(seed)
    return corpus_from(rng.poisson(0.7, (n_documents, 9)) * (rng.random((n_documents, 1)) < 0.9))


def swept(n_threads: int, floor: float = 0.05):
    """A state after three sweeps."""
    corpus, rng = example(40, 5), np.random.default_rng(1)
    state, strengths = start_topics(corpus, 6, rng), Strengths(1.2, 2.0, 0.3)
    with ThreadPoolExecutor(n_threads) as threads:
        for _ in range(3):
            pool = threads if n_threads > 1 else None
            state = sweep_topics(corpus, state, strengths, floor, rng, pool)
            state = redraw_weights(state, strengths.gamma, rng)
    return corpus, state


def test_draws_do_not_depend_on_threads():
    (_, one), (_, two) = swept(1), swept(2)
    for alone, shared in zip(one, two, strict=True):
        assert np.array_equal(alone, shared)


def long_documents():
    """A state of documents that are prepared in several chunks, after a sweep."""
    rng = np.random.default_rng(2)
    corpus = corpus_from(rng.poisson([[90.0], [0.0], [1.0], [200.0], [0.0]], (5, 9)))
    state = start_topics(corpus, 3, rng)
    return corpus, sweep_topics(corpus, state, Strengths(1.0, 2.0, 0.3), 0.05, rng)


def test_long_documents_are_visited_whole():
    corpus, state = long_documents()
    assert np.diff(corpus.first_token).max() > 3 * turns.CHUNK
    assert np.array_equal(state.word_counts, count_words(corpus, state.labels, len(state.tables)))


@pytest.mark.skipif(COMPILES, reason="compiled kernels hold the length")
def test_draws_do_not_depend_on_the_length_of_chunks(monkeypatch):
    _, expected = long_documents()
    monkeypatch.setattr(turns, "CHUNK", 7)
    _, state = long_documents()
    assert np.array_equal(state.labels, expected.labels)
    assert np.array_equal(state.tables, expected.tables)


def test_state_agrees_with_its_labels():
    corpus, state = swept(1)
    n_topics = len(state.weights)
    assert set(state.labels) == set(range(n_topics))
    assert np.array_equal(state.word_counts, count_words(corpus, state.labels, n_topics))
    assert np.all(state.tables >= 1)
    assert np.all(state.tables <= state.word_counts.sum(axis=0))
    assert np.isclose(state.weights.sum() + np.exp(state.log_rest), 1.0)


def test_log_probability_of_topics_follows_its_formula():
    corpus, state = swept(1)
    where, _ = tokens_of(corpus)
    counts = np.zeros((len(corpus.indptr) - 1, len(state.weights)), int)
    np.add.at(counts, (where, state.labels), 1)
    lengths, alpha = counts.sum(axis=1), 1.2
    strengths = alpha * state.weights
    expected = np.sum(gammaln(alpha) - gammaln(alpha + lengths))
    expected += np.sum(gammaln(strengths + counts) - gammaln(strengths))
    found = log_probability_of_topics(corpus, state.labels, state.weights, alpha)
    assert np.isclose(found, expected)


@pytest.mark.parametrize("strengths", [(1e-3, 1e-3, 1e-3), (50.0, 30.0, 20.0), (1.0, 1e-8, 0.1)])
def test_extreme_concentrations(strengths):
    corpus, rng = example(8, 3), np.random.default_rng(4)
    state = start_topics(corpus, 3, rng)
    for _ in range(3):
        state = sweep_topics(corpus, state, Strengths(*strengths), 0.01, rng)
        state = redraw_weights(state, strengths[1], rng)
    assert np.all(np.isfinite(state.weights))
    assert np.isfinite(state.log_rest)
    assert state.word_counts.sum() == corpus.first_token[-1]


# --- sweeps that are wrong on purpose -----------------------------------------------------


def _one_table_for_each(stream, n, strength):
    return 1


def _as_many_tables_as_tokens(stream, n, strength):
    return n


def _mean_weights(rng, n_tables, gamma):
    total = n_tables.sum() + gamma
    return n_tables / total, float(np.log(gamma / total))


def _no_sticks(rng, law, log_rest, log_floor):
    return np.empty(0), log_rest


def _tables_of_other_topics(topics, prior_counts, phi):
    return make_alias_tables(topics, prior_counts, np.full_like(phi, 1.0 / len(phi)))


def _no_factor(height, weight, floor):
    return 1.0


def _accept_all(drawn, eta, u):
    return True


# Names that are replaced in each kernel of documents, and by what.
BROKEN = {
    "one table for each document and topic": ("draw_n_tables", _one_table_for_each),
    "as many tables as tokens": ("draw_n_tables", _as_many_tables_as_tokens),
    "weights at their mean": ("draw_global_weights", _mean_weights),
    "no new topics": ("break_global_remainder", _no_sticks),
    "stale alias tables": ("make_alias_tables", _tables_of_other_topics),
    "slices without their factor": ("slice_ratio", _no_factor),
}
ALWAYS = {"weights at their mean", "no new topics", "stale alias tables"}  # called from Python
OF_ALIAS_TABLES = {"stale alias tables"}


def p_value(floor: float) -> float:
    return p_value_of(run_chains(CASES["c33"], floor, (8, 300), 7), truth_of(CASES["c33"]))


def choose_kernel(monkeypatch, kernel: str) -> None:
    monkeypatch.setattr(sweep, "MOST_DENSE", {"all atoms": 256, "alias tables": 0}[kernel])


KERNELS = pytest.mark.parametrize("kernel", ["all atoms", "alias tables"])


@KERNELS
def test_correct_sweep_passes(kernel, monkeypatch):
    choose_kernel(monkeypatch, kernel)
    assert p_value(0.3) > LEVEL


@pytest.mark.control
@KERNELS
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sweep_is_caught(name, kernel, monkeypatch):
    if COMPILES and name not in ALWAYS:
        pytest.skip("compiled kernels hold the functions that they call")
    if name in OF_ALIAS_TABLES and kernel == "all atoms":
        pytest.skip("this kernel has none")
    choose_kernel(monkeypatch, kernel)
    attribute, broken = BROKEN[name]
    for module in (dense_documents, documents, sweep, turns):
        if hasattr(module, attribute):
            monkeypatch.setattr(module, attribute, broken)
    assert p_value(0.3) < LEVEL
