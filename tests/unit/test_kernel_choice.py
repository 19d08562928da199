"""The kernel that `kernel="auto"` stands for."""

import numpy as np
import pytest
import scipy.sparse

import pymc_dpsplit as dps
from benchmarks.subject import make_sparse_target
from pymc_dpsplit.sampler import KERNELS
from pymc_dpsplit.step.kernel_choice import COLLAPSED, SLICES, choose_kernel
from tests.support.families import target_of

NORMAL = dps.DiagNormal(0, 0.1, 2, 1)


def chosen(component: object, rows: np.ndarray, alpha: float = 1.0) -> str:
    return choose_kernel(target_of(component, rows, alpha))


def test_kernels_exist() -> None:
    assert {COLLAPSED, SLICES} <= set(KERNELS)


@pytest.mark.parametrize(
    ("n_obs", "n_features", "kernel"),
    [(1, 1, COLLAPSED), (82, 1, COLLAPSED), (272, 2, COLLAPSED), (1000, 2, SLICES)],
)
def test_few_rows_get_collapsed_sweeps(n_obs: int, n_features: int, kernel: str) -> None:
    assert chosen(NORMAL, np.zeros((n_obs, n_features))) == kernel


@pytest.mark.parametrize(("n_features", "kernel"), [(4, COLLAPSED), (5, SLICES)])
def test_five_features_get_slices_and_greedy_moves(n_features: int, kernel: str) -> None:
    assert chosen(NORMAL, np.zeros((50, n_features))) == kernel


def test_rows_may_be_the_fewer_the_more_a_visit_costs(rng: np.random.Generator) -> None:
    rows = rng.standard_normal((272, 2))
    covariance = dps.MvNormal(np.zeros(2), 0.1, 4.0, np.eye(2))
    assert chosen(covariance, rows) == COLLAPSED
    assert chosen(dps.Poisson(1.0, 1.0), rng.poisson(2.0, rows.shape).astype(float)) == SLICES


def test_choice_reads_neither_the_values_nor_alpha(rng: np.random.Generator) -> None:
    """Chains that choose each for itself choose the same, and the choice outlives every draw."""
    for n_obs in (50, 2000):
        kernels = {
            chosen(NORMAL, scale * rng.standard_normal((n_obs, 2)), alpha)
            for scale in (0.0, 1.0, 1e6)
            for alpha in (1e-3, 1.0, 1e6)
        }
        assert len(kernels) == 1


def test_sparse_rows_get_slices() -> None:
    """A collapsed sweep would hold the statistics of every cluster twice."""
    rows = scipy.sparse.random(20, 5, 0.2, format="csr", random_state=1)
    rows.data = np.ceil(rows.data)
    assert choose_kernel(make_sparse_target(rows, dps.Multinomial(1.0))) == SLICES
