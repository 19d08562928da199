"""Latent rows under a mixture of finite mixtures, by sweeps.

The joint law of the partition and of what determines its law is enumerated, through `pm.sample`;
level 1e-5 each.  Rows are integrated out by quadrature.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from tests.exact.test_laws_through_pymc import CASES, Case, declared, joint_of, joint_test
from tests.reference import families as naive
from tests.support.datasets import DATASETS
from tests.support.quadrature import noisy_table
from tests.support.runs import run
from tests.support.statistics import LEVEL

pytestmark = pytest.mark.slow

HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
ROWS = DATASETS["overlapping"](1)[:5, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 3.0, 0.5])


def p_value(name: str, n_draws: int = 1500, **options: Any) -> float:
    case: Case = CASES[name]
    table = noisy_table(naive.Normal(**HYPERPARAMETERS), ROWS, NOISE).table
    with pm.Model():
        numbers = [declared(*number) for number in (case.first, case.second)]
        normal = dps.Normal(**HYPERPARAMETERS)
        x = case.declare(*numbers, normal, shape=5)
        pm.Normal("y", x, NOISE, observed=ROWS)
        idata = run(n_draws, **options)
    return joint_test(idata, case, joint_of(case, table, 5))


def test_law_is_exact_by_sweeps_with_latent_rows() -> None:
    assert p_value("MFM", kernel="exact", iterations=1) > LEVEL
