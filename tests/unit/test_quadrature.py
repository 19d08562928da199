"""Are the integrals true against which compositions are tested?"""

from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from tests.reference import families as naive
from tests.support import quadrature
from tests.support.datasets import DATASETS
from tests.support.families import HYPERPARAMETERS
from tests.support.partitions import crp_n_clusters, exact_posterior, n_clusters_law
from tests.support.quadrature import fixed, grid_of

FAMILIES = [("Normal", 1), ("DiagNormal", 2), ("MvNormal", 1), ("MvNormal", 2), ("MvNormal", 3)]
N = 5
NORMAL = naive.Normal(0.2, 0.3, 3.0, 0.6)
Y, NOISE = np.array([-1.2, 0.4, 2.0, 0.1]), np.array([0.3, 1.5, 0.6, 4.0])


def twin_of(family: str, n_features: int) -> Any:
    return getattr(naive, family)(**HYPERPARAMETERS[family](n_features))


def identity(x: np.ndarray) -> np.ndarray:
    return x


@pytest.mark.parametrize("prior", [stats.norm(0.3, 2.0), stats.gamma(2.0), stats.invgamma(3.0)])
def test_grid_integrates_its_prior(prior: stats.rv_continuous) -> None:
    grid = grid_of(prior)
    law = np.exp(grid.log_weights)
    assert law.sum() == pytest.approx(1.0, rel=1e-9)
    assert quadrature.moments(law, grid.nodes)[0][0] == pytest.approx(prior.mean(), rel=1e-6)


@pytest.mark.parametrize(("family", "n_features"), FAMILIES)
def test_one_node_is_plain_enumeration(family: str, n_features: int) -> None:
    twin, rows = twin_of(family, n_features), DATASETS["overlapping"](n_features)[:N]
    table = quadrature.table_of(twin.log_marginal, rows)
    found = quadrature.posterior(table[None], np.zeros(1), fixed(1.3))
    np.testing.assert_allclose(found.partitions, exact_posterior(twin, rows, 1.3), rtol=1e-10)


def test_without_data_the_law_is_the_prior() -> None:
    alpha = grid_of(stats.gamma(2.0))
    found = quadrature.posterior(np.zeros((1, 2**N)), np.zeros(1), alpha)
    law = n_clusters_law(found.partitions, N)
    prior = np.exp(alpha.log_weights) @ [crp_n_clusters(a, N) for a in alpha.nodes]
    np.testing.assert_allclose(law, prior, atol=1e-9)
    np.testing.assert_allclose(found.alpha, np.exp(alpha.log_weights), atol=1e-9)


def test_mixtures_without_data_are_tied_by_alpha_alone() -> None:
    alpha = grid_of(stats.gamma(2.0))
    tables = [np.zeros((1, 2**3)), np.zeros((1, 2**N))]
    for found, n in zip(
        quadrature.shared_posterior(tables, np.zeros(1), alpha), (3, N), strict=True
    ):
        prior = np.exp(alpha.log_weights) @ [crp_n_clusters(a, n) for a in alpha.nodes]
        np.testing.assert_allclose(n_clusters_law(found.partitions, n), prior, atol=1e-9)


def test_averages_over_blocks_are_those_over_partitions() -> None:
    values = np.arange(2.0 * 2**3 * 3).reshape(2, 2**3, 3)
    joint = np.zeros((2, 5))
    joint[0, 0], joint[1, 4] = 0.25, 0.75  # all together at one node, all apart at the other
    found = quadrature.block_average(joint, values)
    exact = [0.25 * values[0, 7, i] + 0.75 * values[1, 1 << i, i] for i in range(3)]
    np.testing.assert_allclose(found, exact)


def test_noisy_rows_have_the_density_of_a_convolution() -> None:
    found = quadrature.noisy_table(NORMAL, Y, NOISE, 240)
    law = stats.t(2 * NORMAL.a0, NORMAL.mu0, np.sqrt(NORMAL.b0 / NORMAL.a0 * (1 + 1 / 0.3)))
    for i, (y, noise) in enumerate(zip(Y, NOISE, strict=True)):

        def moment(power: int, y: float = y, noise: float = noise) -> float:
            def density(b: float) -> float:
                return b**power * law.pdf(b) * stats.norm.pdf(y, b, noise)

            return integrate.quad(density, -60.0, 60.0, points=[y, 0.2], limit=400)[0]

        assert found.table[1 << i] == pytest.approx(np.log(moment(0)), rel=1e-6)
        assert found.values[1 << i, i, 0] == pytest.approx(moment(1) / moment(0), rel=1e-5)
        assert found.values[1 << i, i, 1] == pytest.approx(moment(2) / moment(0), rel=1e-3)


def test_noisy_rows_without_noise_are_the_rows() -> None:
    found = quadrature.noisy_table(NORMAL, Y, np.full(len(Y), 1e-4), 240)
    exact = quadrature.table_of(NORMAL.log_marginal, Y[:, None])
    np.testing.assert_allclose(found.table, exact, atol=1e-5)
    np.testing.assert_allclose(found.values[-1, :, 0], Y, atol=1e-5)


def test_noisy_table_is_converged() -> None:
    coarse, fine = (quadrature.noisy_table(NORMAL, Y, NOISE, n) for n in (120, 240))
    for before, after in zip(coarse, fine, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-9)


@pytest.mark.parametrize(("family", "n_features"), FAMILIES)
def test_many_marginals_are_those_of_the_twin(family: str, n_features: int) -> None:
    twin, rows = twin_of(family, n_features), DATASETS["overlapping"](n_features)
    found = quadrature.log_marginals(twin, np.stack([rows, 2.0 * rows + 1.0]))
    exact = [twin.log_marginal(rows), twin.log_marginal(2.0 * rows + 1.0)]
    np.testing.assert_allclose(found, exact, rtol=1e-11)


def test_holes_of_independent_features_drop_out() -> None:
    twin, rows = twin_of("DiagNormal", 2), DATASETS["overlapping"](2)[:N]
    rows[1, 0] = rows[3, 1] = np.nan
    found = quadrature.holes_table(twin, rows, identity)

    def present(chosen: np.ndarray) -> float:
        pairs = zip(twin.features, chosen.T, strict=True)
        return sum(feature.log_marginal(x[~np.isnan(x)]) for feature, x in pairs)

    np.testing.assert_allclose(found.table, quadrature.table_of(present, rows), atol=1e-9)
    mean = twin.features[0].posterior(rows[[0, 2], 0])[0]
    assert found.values[0b111, 1, 0, 0] == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("missing", [[1], [0, 2]])
def test_holes_of_a_full_covariance_leave_students_law(missing: list[int]) -> None:
    n_features, hole = 3, 2
    twin, rows = twin_of("MvNormal", n_features), DATASETS["overlapping"](n_features)[:N]
    rows[hole, missing] = np.nan
    found = quadrature.holes_table(twin, rows, identity)
    others = rows[[0, 1, 4]]
    mu, kappa, nu, psi = twin.posterior(others)
    df = nu - n_features + 1
    kept = np.setdiff1d(range(n_features), missing)
    shape = (psi * (kappa + 1) / (kappa * df))[np.ix_(kept, kept)]
    law = stats.multivariate_t(mu[kept], shape, df=df)
    exact = twin.log_marginal(others) + law.logpdf(rows[hole, kept])
    assert found.table[0b10111] == pytest.approx(exact, rel=1e-9)


def test_holes_in_two_rows_are_converged() -> None:
    twin, rows = twin_of("MvNormal", 2), DATASETS["overlapping"](2)[:4]
    rows[1, 0] = rows[3, 1] = np.nan
    coarse, fine = (quadrature.holes_table(twin, rows, np.tanh, n) for n in (120, 240))
    for before, after in zip(coarse, fine, strict=True):
        np.testing.assert_allclose(before, after, atol=1e-8)
