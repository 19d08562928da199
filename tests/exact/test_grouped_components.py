"""Components of any density in groups against enumeration, marginals by quadrature."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical import iteration, kept_parameters, slices, split_merge
from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.state import GroupedTarget, start_groups
from pymc_dpsplit.hierarchical.tables import redraw_weights
from pymc_dpsplit.moves.nonconjugate import joint_split
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.target import Target
from tests.reference.franchise import (
    Truth,
    averages_of_groups,
    log_likelihood_by_blocks,
    posterior_of_groups,
)
from tests.reference.generic import FAMILIES
from tests.support.corpora import Draws, p_value_of
from tests.support.kernels import with_another
from tests.support.partitions import partition_index
from tests.support.statistics import LEVEL, combine, count_test, mean_test

# Densities are called by address.
pytestmark = [pytest.mark.compiled, pytest.mark.slow]

ALPHA, GAMMA = 1.2, 0.9
GROUPS = np.array([0, 2, 0, 2, 2, 0])
N_GROUPS = 3
NAMES = ("StudentT", "NegativeBinomial", "Product")
SHAPE = (16, 1500)


def rows_of(name: str) -> np.ndarray:
    """Rows (n, D), of which there are at most six."""
    rows = FAMILIES[name].rows
    return rows.reshape(len(rows), -1)[: len(GROUPS)]


def target_of(name: str) -> GroupedTarget:
    rows = rows_of(name)
    component = FAMILIES[name].component().validate_rows(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = component.prior(values, np.zeros(rows.shape[1]))
    of_rows = Target(prior, component.arranged(rows), dirichlet_process(GAMMA))
    groups = GROUPS[: len(rows)]
    return GroupedTarget(of_rows, groups, np.bincount(groups, minlength=N_GROUPS), ALPHA)


def log_likelihood_of(name: str) -> Callable[[np.ndarray], float]:
    return log_likelihood_by_blocks(FAMILIES[name], rows_of(name))


@cache
def truth_of(name: str) -> Truth:
    groups = np.unique(GROUPS[: len(rows_of(name))], return_inverse=True)[1]
    return posterior_of_groups(groups, log_likelihood_of(name), ALPHA, GAMMA)


def p_value(name: str, n_attempts: int, seed: int) -> float:
    """P-value of partitions, numbers of clusters and tables, and the remainder."""
    target = target_of(name)
    labels = np.empty((*SHAPE, len(target.group_of_row)), np.int64)
    n_tables, rest = np.empty(SHAPE, np.int64), np.empty(SHAPE)
    for c in range(SHAPE[0]):
        rng = np.random.default_rng([seed, c])
        state = start_groups(target, 1 + c % labels.shape[2], rng)
        for s in range(-50, SHAPE[1]):
            state, tables, _ = advance_groups(target, state, rng, 2, n_attempts)
            state = redraw_weights(target, state, tables, rng)
            if s >= 0:
                labels[c, s], n_tables[c, s] = state.labels, tables.sum()
                rest[c, s] = np.exp(state.log_rest)
    draws = Draws(partition_index(labels), labels.max(axis=2) + 1, n_tables, rest)
    return p_value_of(draws, truth_of(name))


@pytest.mark.parametrize("n_attempts", [0, 1])
@pytest.mark.parametrize("name", NAMES)
def test_posterior_of_a_few_rows(name: str, n_attempts: int) -> None:
    assert p_value(name, n_attempts, 20261127) > LEVEL


@pytest.mark.control
def test_update_of_parameters_without_a_prior_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    pointer = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.void(pointer, pointer, pointer))
    def flat(theta, shared, out):
        out[0] = 0.0 if -50.0 < theta[0] < 50.0 and -5.0 < theta[1] < 5.0 else -np.inf

    target = target_of("StudentT")
    of_rows = target.of_rows
    prior = of_rows.prior._replace(log_prior=flat.address)
    broken = target._replace(of_rows=of_rows._replace(prior=prior))
    monkeypatch.setitem(globals(), "target_of", lambda name: broken)
    assert p_value("StudentT", 0, 20261128) < LEVEL


@pytest.mark.control
def test_parameters_that_a_sweep_mixes_up_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters get the parameters of the next atom."""

    def mixed_up(prior, measure, renumbered, stats):
        measure = measure._replace(params=np.roll(measure.params, 1, axis=0))
        return slices.end_slices.py_func(prior, measure, renumbered, stats)

    monkeypatch.setattr(iteration, "sweep_groups", sweeping_with(mixed_up))
    assert p_value("StudentT", 0, 20261129) < LEVEL


def sweeping_with(end: Any) -> Any:
    """Return the sweep with another end."""
    honest = slices.sweep_groups
    return type(honest)(honest.__code__, {**honest.__globals__, "end_slices": end})


@pytest.mark.control
def test_split_without_density_of_parameters_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    @numba.njit
    def nothing(mode, factor, theta):
        return 0.0

    proposed = with_another(joint_split.propose_jointly, "log_density_around", nothing)
    attempt = with_another(kept_parameters.attempt_jointly, "propose_jointly", proposed)
    moves = kept_parameters.move_parameters_and_clusters
    broken = with_another(moves, "attempt_jointly", attempt)
    monkeypatch.setattr(iteration, "move_parameters_and_clusters", broken)
    assert p_value("StudentT", 1, 20261130) < LEVEL


@pytest.mark.control
def test_split_without_density_of_the_share_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    @numba.njit
    def nothing(shapes, log_shares):
        return 0.0

    shares = with_another(split_merge.propose_shares, "log_density_of_share", nothing)
    attempt = with_another(kept_parameters.attempt_jointly, "propose_shares", shares)
    moves = kept_parameters.move_parameters_and_clusters
    broken = with_another(moves, "attempt_jointly", attempt)
    monkeypatch.setattr(iteration, "move_parameters_and_clusters", broken)
    assert p_value("StudentT", 4, 20261201) < LEVEL


# --- through pm.sample, with concentrations that are sampled -------------------------------

SHAPES, RATES = (4.0, 4.0, 4.0), (2.0, 3.0, 2.0)


def test_pm_sample_has_the_posterior() -> None:
    name = "StudentT"
    rows, groups = rows_of(name)[:5], np.unique(GROUPS[:5], return_inverse=True)[1]
    log_likelihood = log_likelihood_of(name)
    priors = [stats.gamma(a, scale=1.0 / b) for a, b in zip(SHAPES, RATES, strict=True)]
    truth = averages_of_groups(groups, lambda labels, _: log_likelihood(labels), priors)
    with pm.Model():
        alpha, gamma = (
            pm.Gamma(of, a, b) for of, a, b in zip(("alpha", "gamma"), SHAPES, RATES, strict=False)
        )
        component = FAMILIES[name].component()
        dps.HDPMixture("x", alpha, gamma, component, groups=groups, observed=rows[:, 0])
        drawn = pm.sample(
            draws=2000, tune=300, chains=4, cores=1, random_seed=5, progressbar=False,
            compute_convergence_checks=False,
        ).posterior  # fmt: skip
    logs = np.log(np.stack([drawn[of].to_numpy() for of in ("alpha", "gamma")], axis=-1))
    assert (
        combine(
            mean_test(logs, truth.logarithms[:2]),
            count_test(drawn["x_n_clusters"].to_numpy(), truth.n_topics),
            count_test(drawn["x_n_tables"].to_numpy(), truth.n_tables),
        )
        > LEVEL
    )
