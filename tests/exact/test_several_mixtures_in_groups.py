"""Two mixtures of rows in groups and one of rows, with shared concentrations, by enumeration."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import gammaln

import pymc_dpsplit as dps
from tests.reference.discrete import Poisson
from tests.reference.franchise import all_tables, counts_of, log_law_of_tables
from tests.support.partitions import enumerate_partitions
from tests.support.statistics import LEVEL, combine, count_test, mean_test

FAMILY = Poisson(2.0, 0.5)
FIRST = np.array([0, 1, 0, 1]), np.array([[0.0], [1.0], [6.0], [7.0]])
SECOND = np.array([0, 0, 1, 2]), np.array([[3.0], [3.0], [2.0], [9.0]])
ALONE = np.array([[1.0], [2.0], [8.0]])
PRIORS = {"alpha": (4.0, 2.0), "gamma": (4.0, 3.0)}
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def likelihood(labels: np.ndarray, rows: np.ndarray) -> float:
    return float(
        np.exp(sum(FAMILY.log_marginal(rows[labels == k]) for k in range(labels.max() + 1)))
    )


def table_of_groups(
    groups: np.ndarray, rows: np.ndarray, alphas: np.ndarray, gammas: np.ndarray
) -> np.ndarray:
    """Density of the rows with each number of clusters, at each alpha and gamma, (A, G, n + 1)."""
    table = np.zeros((len(alphas), len(gammas), len(rows) + 1))
    for labels in enumerate_partitions(len(rows)).astype(int):
        counts = counts_of(labels, groups)
        for a, alpha in enumerate(alphas):
            for g, gamma in enumerate(gammas):
                laws = [log_law_of_tables(t, counts, alpha, gamma) for t in all_tables(counts)]
                mass = np.exp(laws).sum() * likelihood(labels, rows)
                table[a, g, labels.max() + 1] += mass
    return table


def density_of_rows(alphas: np.ndarray) -> np.ndarray:
    """Density of the rows of the mixture without groups at each alpha, (A,)."""
    total, n = np.zeros(len(alphas)), len(ALONE)
    for labels in enumerate_partitions(n).astype(int):
        sizes = np.bincount(labels)
        log_law = len(sizes) * np.log(alphas) + gammaln(sizes).sum()
        log_law += gammaln(alphas) - gammaln(alphas + n)
        total += np.exp(log_law) * likelihood(labels, ALONE)
    return total


def p_value(**options: int) -> float:
    """P-value of the concentrations, and of the numbers of clusters in both groupings."""
    with pm.Model():
        alpha, gamma = (pm.Gamma(name, a, b) for name, (a, b) in PRIORS.items())
        component = dps.Poisson(2.0, 0.5)
        for name, (groups, rows) in {"x": FIRST, "y": SECOND}.items():
            dps.HDPMixture(name, alpha, gamma, component, groups=groups, observed=rows)
        dps.DPMixture("z", alpha, component, observed=ALONE)
        trace = pm.sample(
            draws=800,
            tune=200,
            chains=4,
            cores=1,
            random_seed=5,
            progressbar=False,
            compute_convergence_checks=False,
            hdp=options,
        ).posterior
    alphas, gammas = (
        stats.gamma(a, scale=1.0 / b).ppf((NODES + 1.0) / 2.0) for a, b in PRIORS.values()
    )
    first, second = (table_of_groups(*data, alphas, gammas) for data in (FIRST, SECOND))
    of_both = np.einsum("agk,agl->agkl", first, second)
    of_both *= (np.outer(WEIGHTS * density_of_rows(alphas), WEIGHTS))[..., None, None]
    of_both /= of_both.sum()
    means = [
        of_both.sum(axis=(1, 2, 3)) @ np.log(alphas),
        of_both.sum(axis=(0, 2, 3)) @ np.log(gammas),
    ]
    logs = np.log(np.stack([trace[name].to_numpy() for name in PRIORS], axis=-1))
    return combine(
        mean_test(logs, np.array(means)),
        count_test(trace["x_n_clusters"].to_numpy(), of_both.sum(axis=(0, 1, 3))),
        count_test(trace["y_n_clusters"].to_numpy(), of_both.sum(axis=(0, 1, 2))),
    )


@pytest.mark.slow
def test_shared_concentrations_are_exact() -> None:
    assert p_value() > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_step_that_reads_half_the_alpha_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from pymc_dpsplit.hierarchical_model.step import HDPMixtureStep

    read = HDPMixtureStep._target_at

    def broken(self, point):
        target, values = read(self, point)
        if self.mixture.name == "y":
            target = target._replace(alpha=0.2 * target.alpha)
        return target, values

    monkeypatch.setattr(HDPMixtureStep, "_target_at", broken)
    assert p_value() < LEVEL
