"""The experiment on mixtures drawn from their prior: its diagnostic, its data and its measures."""

import numpy as np
import pytest

from benchmarks import crp_mixtures
from benchmarks.raftery_lewis import least_need, need_of


def test_independent_draws_need_what_the_formula_says():
    assert least_need() == pytest.approx(936.4, abs=0.1)
    need = need_of(np.random.default_rng(1).standard_normal(50_000))
    assert need.kept == pytest.approx(least_need(), rel=0.1)
    assert need.burn_in <= 3


def test_chain_with_memory_needs_more():
    rng, trace = np.random.default_rng(1), np.zeros(50_000)
    for draw in range(1, len(trace)):
        trace[draw] = 0.95 * trace[draw - 1] + rng.standard_normal()
    assert need_of(trace).kept > 5 * least_need()


def test_chain_that_never_returns_needs_more_than_there_is():
    need = need_of(np.arange(1000.0))
    assert sum(need) > 1000


def test_samples_have_clusters_of_their_own():
    sample = crp_mixtures.draw_sample(np.random.default_rng(1), 200)
    assert sample.rows.shape == sample.new_rows.shape == (200, 2)
    # Numbers in order of appearance, as in the process.
    first = np.unique(sample.truth, return_index=True)[1]
    assert (np.diff(first) > 0).all()
    assert sample.truth[0] == 0


@pytest.mark.compiled
def test_both_methods_find_clusters_of_a_sample():
    sample = crp_mixtures.draw_sample(np.random.default_rng(2), 200)
    for method in ("Gibbs, from one cluster", "MAP-DPM, from random labels"):
        fit = crp_mixtures._METHODS[method](sample)
        assert fit.nmi > 0.4
        assert fit.new_nmi > 0.4
        assert fit.nmi_max <= fit.nmi
        assert np.isfinite(fit.new_nll)


@pytest.mark.compiled
def test_gibbs_makes_the_least_number_of_iterations():
    sample = crp_mixtures.draw_sample(np.random.default_rng(2), 50)
    assert crp_mixtures.gibbs(sample).iterations >= 939
