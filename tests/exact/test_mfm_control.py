"""The control of mixtures of finite mixtures, which sums M out, has the enumerated posterior.

`benchmarks/mfm_control.py` has Miller & Harrison's coefficients V_N(K) in the place of our move of
M, and its own predictive densities.
"""

import numpy as np
import pytest
from scipy import stats

from benchmarks.mfm_control import coefficients, draw_numbers
from tests.reference.families import Normal
from tests.support.components_move import given_k, joint_law, prior_of_k
from tests.support.families import dataset_of
from tests.support.partitions import n_clusters_law
from tests.support.statistics import LEVEL, count_test

_PRIOR = stats.randint(1, 31).pmf(np.arange(31))


def test_coefficients_are_those_of_the_law() -> None:
    terms = coefficients(_PRIOR, 0.7, 6)
    for k in (1, 4, 6):
        found = np.exp(terms[:, k] - np.logaddexp.reduce(terms[:, k]))
        np.testing.assert_allclose(found, given_k(_PRIOR, 0.7, k, 6), atol=1e-14)
    assert prior_of_k(_PRIOR, 0.7, 6)[7:].sum() == 0


@pytest.mark.slow
def test_control_has_the_enumerated_posterior() -> None:
    rows = dataset_of("Normal", "overlapping", 1)[:6]
    exact = joint_law(_PRIOR, 1.2, Normal(0.5, 0.1, 2.0, 1.0), rows)
    found = [draw_numbers(rows[:, 0], (0.5, 0.1, 2.0, 1.0), 1.2, _PRIOR, 400, s) for s in range(8)]
    n_clusters, n_components = np.stack(found, axis=1)
    assert count_test(n_clusters, n_clusters_law(exact.sum(0), 6)) > LEVEL
    assert count_test(n_components, exact.sum(1)) > LEVEL
