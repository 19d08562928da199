"""`pm.sample` of a topic model, with all concentrations sampled, against enumeration."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from tests.reference.franchise import posterior_with_priors
from tests.support.corpora import corpus_from, tokens_of
from tests.support.statistics import LEVEL, combine, count_test, mean_test

COUNTS = np.array([[2, 0, 1], [0, 2, 1]])
SHAPES, RATES = (4.0, 4.0, 6.0), (2.0, 3.0, 10.0)


def sampled_p_value(draws: int) -> float:
    """P-value of means of the concentrations, and of the numbers of topics and tables."""
    with pm.Model():
        named = zip(("alpha", "gamma", "eta"), SHAPES, RATES, strict=True)
        concentrations = [pm.Gamma(name, shape, rate) for name, shape, rate in named]
        dps.HDPTopics("w", *concentrations, observed=COUNTS)
        trace = pm.sample(
            draws=draws,
            tune=200,
            chains=4,
            cores=1,
            random_seed=5,
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior
    documents, words = tokens_of(corpus_from(COUNTS))
    priors = [stats.gamma(a, scale=1.0 / b) for a, b in zip(SHAPES, RATES, strict=True)]
    truth = posterior_with_priors(documents, words, COUNTS.shape[1], priors)
    logs = np.log(np.stack([trace[name].to_numpy() for name in ("alpha", "gamma", "eta")], axis=-1))
    return combine(
        mean_test(logs, truth.logarithms),
        count_test(trace["w_n_topics"].to_numpy(), truth.n_topics),
        count_test(trace["w_n_tables"].to_numpy(), truth.n_tables),
    )


@pytest.mark.slow
def test_concentrations_and_sizes_have_their_posterior():
    assert sampled_p_value(1500) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_step_that_forgets_the_lengths_of_documents_is_caught(monkeypatch):
    def without_lengths(corpus, state):
        return lambda alpha: state.tables.sum() * np.log(alpha)

    monkeypatch.setattr("pymc_dpsplit.topic_model.step.alpha_factor", without_lengths)
    assert sampled_p_value(800) < LEVEL
