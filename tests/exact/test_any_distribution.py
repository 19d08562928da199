"""Components of any density against the posterior enumerated, marginals by quadrature."""

from typing import Any

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.family_moves import KernelForm
from pymc_dpsplit.moves.nonconjugate import joint_split
from pymc_dpsplit.moves.nonconjugate.iterations import NONCONJUGATE
from pymc_dpsplit.moves.nonconjugate.parameters import update_parameters
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.sweep.assignment import slice_sweep
from pymc_dpsplit.pymc_component import free_part
from pymc_dpsplit.pymc_component.compiled import kernel_of
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from tests.reference.generic import FAMILIES
from tests.support.kernels import with_another
from tests.support.partitions import (
    coclustering,
    exact_posterior,
    n_clusters_law,
    partition_index,
)
from tests.support.runs import labels_test, run
from tests.support.statistics import (
    LEVEL,
    coclustering_test,
    combine,
    count_test,
    partition_test,
)

pytestmark = pytest.mark.compiled  # densities are called by address

_CHAINS, _BURN_IN, _QUICK = 16, 100, 1000
# A draw of several parts costs more than that of one, which has most of the tests.
_PRODUCTS = ("Product", "ProductOfVectors")
_DRAWS = dict.fromkeys(FAMILIES, _QUICK) | dict.fromkeys(_PRODUCTS, 300)
_ALPHA = 1.0
_NO_FOCUS = np.empty(0, np.int64)


def target_of(name: str) -> sampler.Target:
    rows = table_of(name)
    component = FAMILIES[name].component().validate_rows(rows)
    values = component.check(component.hyperparameters, rows.shape[1])
    prior = component.prior(values, np.zeros(rows.shape[1]))
    return sampler.Target(prior, component.arranged(rows), dirichlet_process(_ALPHA))


def table_of(name: str) -> np.ndarray:
    """Rows (n, D)."""
    return FAMILIES[name].rows.reshape(len(FAMILIES[name].rows), -1)


def exact_of(name: str) -> np.ndarray:
    return exact_posterior(FAMILIES[name], table_of(name), _ALPHA)


def labels_drawn(
    target: sampler.Target,
    attempts: float,
    rng: np.random.Generator,
    kernel: str,
    n_draws: int = _QUICK,
) -> np.ndarray:
    """Labels (chains, draws, N) of chains from anywhere."""
    labels = np.empty((_CHAINS, n_draws, len(target.data)), np.int8)
    schedule = sampler.Schedule(2, attempts, _NO_FOCUS)
    for chain in range(_CHAINS):
        state = sampler.start(target, rng)
        for draw in range(-_BURN_IN, n_draws):
            state, _ = sampler.advance(kernel, target, state, rng, schedule)
            if draw >= 0:
                labels[chain, draw] = state.labels
    return labels


def p_value(
    name: str,
    target: sampler.Target,
    attempts: float,
    rng: np.random.Generator,
    kernel: str = "exact",
) -> float:
    """P-value over partitions, number of clusters and co-clustering."""
    exact, n_obs = exact_of(name), len(target.data)
    labels = labels_drawn(target, attempts, rng, kernel, _DRAWS[name])
    return combine(
        partition_test(partition_index(labels), exact),
        count_test((labels.max(axis=2) + 1).astype(np.int64), n_clusters_law(exact, n_obs)),
        coclustering_test(labels, coclustering(exact, n_obs)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [0.0, 1.0])
@pytest.mark.parametrize("name", FAMILIES)
def test_sampler_keeps_the_posterior(name: str, attempts: float, rng: np.random.Generator) -> None:
    assert p_value(name, target_of(name), attempts, rng) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [name for name, row in SAMPLERS.items() if row.nonconjugate and row.is_exact]
)
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in _PRODUCTS])
def test_published_samplers_keep_the_posterior(
    name: str, kernel: str, rng: np.random.Generator
) -> None:
    assert p_value(name, target_of(name), 0.0, rng, kernel) > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", [name for name, row in SAMPLERS.items() if row.nonconjugate and not row.is_exact]
)
def test_inexact_samplers_are_near_with_a_small_alpha(
    kernel: str, rng: np.random.Generator
) -> None:
    name = next(iter(FAMILIES))
    labels = labels_drawn(target_of(name), 0.0, rng, kernel)
    n_obs = labels.shape[-1]
    exact = n_clusters_law(exact_of(name), n_obs) @ np.arange(n_obs + 1)
    assert abs((labels.max(axis=2) + 1).mean() / exact - 1.0) < 0.05


def without(target: sampler.Target, address: Any) -> sampler.Target:
    """Target with another density of the base measure."""
    return target._replace(prior=target.prior._replace(log_prior=address.address))


@pytest.mark.slow
@pytest.mark.control
def test_update_without_prior_is_caught(rng: np.random.Generator) -> None:
    pointer = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.void(pointer, pointer, pointer))
    def flat(theta, shared, out):
        out[0] = 0.0 if -50.0 < theta[0] < 50.0 and -5.0 < theta[1] < 5.0 else -np.inf

    assert p_value("StudentT", without(target_of("StudentT"), flat), 0.0, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_base_without_jacobian_is_caught(rng: np.random.Generator) -> None:
    graphs = FAMILIES["NegativeBinomial"].component().graphs
    whole = kernel_of([graphs.theta, graphs.shared], graphs.log_prior())
    pointer = numba.types.CPointer(numba.types.float64)

    @numba.cfunc(numba.types.void(pointer, pointer, pointer))
    def broken(theta, shared, out):
        (found,) = whole(numba.carray(theta, (2,)), numba.carray(shared, (0,)))
        out[0] = found.item() - theta[0] - theta[1]

    target = without(target_of("NegativeBinomial"), broken)
    assert p_value("NegativeBinomial", target, 1.0, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_conjugate_part_without_jacobian_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = free_part.POSITIVE._replace(log_derivative=pt.zeros_like)
    monkeypatch.setattr(free_part, "POSITIVE", broken)
    assert p_value("Product", target_of("Product"), 1.0, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_covariances_without_jacobian_are_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_part.Covariances, "log_jacobian", lambda self, free, shape: 0.0)
    assert p_value("ProductOfVectors", target_of("ProductOfVectors"), 1.0, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_split_without_density_of_parameters_is_caught(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    @numba.njit
    def nothing(mode, factor, theta):
        return 0.0

    proposed = with_another(joint_split.propose_jointly, "log_density_around", nothing)
    broken = with_another(joint_split.joint_attempt, "propose_jointly", proposed)

    def finish(target, labels, stats, rng, schedule, acceptance_counts):
        stats = update_parameters(target, labels, stats, rng)
        return broken(target, labels, stats, rng, acceptance_counts)

    def iterate(target, labels, stats, address, schedule, acceptance_counts):
        # The generator that this is the address of is that of the test.
        for _ in range(schedule.n_iterations):
            stats = slice_sweep(target, labels, stats, rng)
            stats = finish(target, labels, stats, rng, schedule, acceptance_counts)
        return stats

    monkeypatch.setitem(NONCONJUGATE.kernels, "exact", KernelForm(iterate, finish))
    assert p_value("Laplace", target_of("Laplace"), 1.0, rng) < LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("name", ["StudentT", "NegativeBinomial"])
def test_pm_sample_has_the_posterior(name: str) -> None:
    family = FAMILIES[name]
    with pm.Model():
        dps.DPMixture("x", _ALPHA, family.component(), observed=family.rows)
        idata = run(n_draws=1000)
    assert labels_test(idata, "x", exact_of(name)) > LEVEL
