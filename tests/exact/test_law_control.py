"""The control of laws of the partition has the enumerated posterior.

`benchmarks/law_control.py` is collapsed Gibbs with its own predictive rules and densities; of
mixtures of finite mixtures it sums M out by Miller & Harrison's coefficients V_N(K).
"""

import numpy as np
import pytest
from scipy import stats

from benchmarks.law_control import coefficients, draw_finite_mixtures, draw_pitman_yor
from tests.exact.test_laws_through_pymc import CASES, joint_of
from tests.reference.families import Normal
from tests.support.components_move import given_k, joint_law, prior_of_k
from tests.support.families import dataset_of
from tests.support.partitions import n_clusters_law
from tests.support.quadrature import table_of
from tests.support.statistics import LEVEL, count_test

_PRIOR = stats.randint(1, 31).pmf(np.arange(31))


def test_coefficients_are_those_of_the_law() -> None:
    terms = coefficients(_PRIOR, 0.7, 6)
    for k in (1, 4, 6):
        found = np.exp(terms[:, k] - np.logaddexp.reduce(terms[:, k]))
        np.testing.assert_allclose(found, given_k(_PRIOR, 0.7, k, 6), atol=1e-14)
    assert prior_of_k(_PRIOR, 0.7, 6)[7:].sum() == 0


@pytest.mark.slow
def test_control_of_finite_mixtures_has_the_enumerated_posterior() -> None:
    rows = dataset_of("Normal", "overlapping", 1)[:6]
    exact = joint_law(_PRIOR, 1.2, Normal(0.5, 0.1, 2.0, 1.0), rows)
    found = [
        draw_finite_mixtures(rows[:, 0], (0.5, 0.1, 2.0, 1.0), 1.2, _PRIOR, 400, s)
        for s in range(8)
    ]
    n_clusters, n_components = np.stack(found, axis=1)
    assert count_test(n_clusters, n_clusters_law(exact.sum(0), 6)) > LEVEL
    assert count_test(n_components, exact.sum(1)) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("discount", [0.3, pytest.param(0.2, marks=pytest.mark.control)])
def test_control_of_pitman_yor_has_the_enumerated_posterior(discount: float) -> None:
    rows = dataset_of("Normal", "overlapping", 1)[:6]
    table = table_of(Normal(0.5, 0.1, 2.0, 1.0).log_marginal, rows)
    joint = joint_of(CASES["negative strength"], table, 6)[0, 0]
    found = [
        draw_pitman_yor(rows[:, 0], (0.5, 0.1, 2.0, 1.0), -0.15, discount, 4000, s)
        for s in range(8)
    ]
    assert (count_test(np.stack(found), n_clusters_law(joint, 6)) > LEVEL) == (discount == 0.3)
