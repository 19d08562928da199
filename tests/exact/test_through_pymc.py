"""`pm.sample` as a user calls it, alpha unknown, against the truth.

Short: the joint posterior of partition and alpha for enumerable data, alpha integrated by
quadrature.  Long: simulation-based calibration over data sets drawn from the prior.
"""

from typing import Any

import numpy as np
import pymc as pm
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

import pymc_dpsplit as dps
from pymc_dpsplit.moves.forward import draw_seating
from pymc_dpsplit.moves.partition_law import PartitionLaw, log_number_factor
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from tests.support import controls
from tests.support.datasets import DATASETS
from tests.support.families import component_of, twin_of
from tests.support.moves import Move
from tests.support.partitions import (
    exact_posterior,
    n_clusters_law,
    n_clusters_of,
    partition_index,
)
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL, count_test, mean_test, partition_test, uniform_rank_test

SHAPE, RATE = 2.0, 1.0
_GRID = np.exp(np.linspace(np.log(1e-4), np.log(40.0), 4000))
_SAMPLING: dict[str, Any] = {
    "chains": 4,
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def exact_joint(family: str, n_features: int, rows: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Posterior of the partition with alpha integrated out; mean and variance of alpha."""
    n_obs = len(rows)
    # At alpha = 1 the prior of a partition has no factor alpha^K: put it back for every alpha.
    log_at_one = np.log(exact_posterior(twin_of(family, n_features), rows, 1.0))
    log_alpha = np.log(_GRID)
    log_weight = stats.gamma(SHAPE, scale=1.0 / RATE).logpdf(_GRID) + np.log(np.gradient(_GRID))
    log_weight += gammaln(_GRID) - gammaln(_GRID + n_obs)
    log_by_k = logsumexp(log_weight[:, None] + log_alpha[:, None] * np.arange(n_obs + 1), axis=0)
    joint = log_at_one + log_by_k[n_clusters_of(n_obs)]
    probabilities = np.exp(joint - logsumexp(joint))
    law = n_clusters_law(probabilities, n_obs)
    given_k = np.exp(
        log_weight[:, None] + log_alpha[:, None] * np.arange(n_obs + 1) - log_by_k[None]
    )
    first, second = (_GRID @ given_k) @ law, (_GRID**2 @ given_k) @ law
    return probabilities, float(first), float(second - first**2)


def draws_of(
    family: str, n_features: int, rows: np.ndarray, n_draws: int, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Partition indices and alpha, each (chains, draws)."""
    with pm.Model():
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        observed = rows[:, 0] if family == "Normal" else rows
        dps.DPMixture("x", alpha, component_of(family, n_features), observed=observed)
        idata = pm.sample(
            draws=n_draws, tune=300, dpsplit={"keep_labels": True, **options},
            random_seed=11, **_SAMPLING,
        )  # fmt: skip
    labels = idata["sample_stats"]["x_labels"].to_numpy()
    return partition_index(labels), idata["posterior"]["alpha"].to_numpy()


_RUNS: list[tuple[str, int, dict[str, Any]]] = [
    (family, n_features, {"kernel": kernel})
    for family, n_features in (("Normal", 1), ("DiagNormal", 2), ("MvNormal", 2))
    for kernel in ("exact", "collapsed")
]
_RUNS += [("MvNormal", 2, {"kernel": "auto"})]
_RUNS += [("Normal", 1, {"kernel": name}) for name, row in SAMPLERS.items() if row.is_exact]
_RUNS += [
    ("Normal", 1, {"kernel": "chang-fisher", "repaired": True}),
    ("Normal", 1, {"kernel": "av-parallel", "shares": (0.6, 0.3, 0.1)}),
]
_QUICK = (("MvNormal", 2, {"kernel": "exact"}),)


@pytest.mark.parametrize(
    ("family", "n_features", "options"), slow_unless(_QUICK.__contains__, _RUNS), ids=str
)
def test_partition_and_alpha_are_exact(
    family: str, n_features: int, options: dict[str, Any]
) -> None:
    rows = DATASETS["overlapping"](n_features)
    probabilities, mean, variance = exact_joint(family, n_features, rows)
    index, alpha = draws_of(family, n_features, rows, 2500, **options)
    assert partition_test(index, probabilities) > LEVEL
    assert (
        count_test(n_clusters_of(len(rows))[index], n_clusters_law(probabilities, len(rows)))
        > LEVEL
    )
    assert mean_test(alpha, mean, variance) > LEVEL


@pytest.mark.control
@pytest.mark.parametrize(
    "name",
    slow_unless(
        "uncompensated split".__eq__, ["emptying sweep", "uncompensated split", "shifted slice"]
    ),
)
def test_broken_kernel_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken: Move = controls.CONTROLS[name]

    def advance(form: Any, target: Any, state: Any, rng: Any, schedule: Any, pool: Any) -> Any:
        return broken(target, state, rng), np.zeros(4, np.int64)

    monkeypatch.setattr("pymc_dpsplit.step.dp_split_merge.sampler.advance", advance)
    # A broken move makes one draw.
    monkeypatch.setattr("pymc_dpsplit.step.draws_ahead.draw_ahead", lambda *_: None)
    rows = DATASETS["overlapping"](2)
    probabilities, _, _ = exact_joint("MvNormal", 2, rows)
    index, _ = draws_of("MvNormal", 2, rows, 2500, iterations=1)
    assert partition_test(index, probabilities) < LEVEL


def moves_alpha_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the log density of alpha has no compiled form."""
    monkeypatch.setattr("pymc_dpsplit.variables.concentration.density_by_address", lambda *_: None)


@pytest.mark.slow
def test_move_of_alpha_in_python_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    moves_alpha_in_python(monkeypatch)
    rows = DATASETS["overlapping"](2)
    probabilities, mean, variance = exact_joint("MvNormal", 2, rows)
    index, alpha = draws_of("MvNormal", 2, rows, 2500)
    assert partition_test(index, probabilities) > LEVEL
    assert mean_test(alpha, mean, variance) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_wrong_move_of_alpha_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(law: PartitionLaw, n_clusters: int, n_obs: int) -> float:
        return log_number_factor(law, n_clusters, 2 * n_obs)

    moves_alpha_in_python(monkeypatch)
    monkeypatch.setattr("pymc_dpsplit.step.concentration_move.log_number_factor", doubled)
    rows = DATASETS["overlapping"](2)
    _, mean, variance = exact_joint("MvNormal", 2, rows)
    _, alpha = draws_of("MvNormal", 2, rows, 2500)
    assert mean_test(alpha, mean, variance) < LEVEL


# The step makes several iterations per draw, so that every fifth draw is nearly independent.
N_SBC, _THIN = 40, 5


def sbc_ranks(n_replicates: int, rng: np.random.Generator, bias: float = 1.0) -> np.ndarray:
    """Ranks of alpha, K and co-clustering counts among thinned draws, (replicates, 3).

    `bias` multiplies the concentration from which data are drawn: 1 for a valid test.
    """
    component = component_of("MvNormal", 2)
    values = component.check(component.hyperparameters, 2)
    ranks = []
    with pm.Model():
        data = pm.Data("data", np.zeros((N_SBC, 2)))
        alpha = pm.Gamma("alpha", SHAPE, RATE)
        dps.DPMixture("x", alpha, component, observed=data)
        for _ in range(n_replicates):
            truth = rng.gamma(SHAPE, 1.0 / RATE)
            labels = draw_seating(rng, bias * truth, N_SBC)
            parameters = component.draw_base(rng, values, int(labels.max()) + 1)
            pm.set_data({"data": component.draw_rows(rng, parameters, labels)})
            idata = pm.sample(
                draws=50 * _THIN, tune=150, dpsplit={"keep_labels": True},
                random_seed=int(rng.integers(2**31)), **_SAMPLING | {"chains": 2},
            )  # fmt: skip
            ranks.append(_ranks_of(idata, truth, labels, rng))
    return np.array(ranks)


def _ranks_of(idata: Any, alpha: float, labels: np.ndarray, rng: np.random.Generator) -> list[int]:
    def thinned(values: np.ndarray) -> np.ndarray:
        return values[:, ::_THIN].reshape(-1, *values.shape[2:])

    drawn = thinned(idata["sample_stats"]["x_labels"].to_numpy())
    pairs = {
        "alpha": (thinned(idata["posterior"]["alpha"].to_numpy()), alpha),
        "K": (thinned(idata["posterior"]["x_n_clusters"].to_numpy()), labels.max() + 1),
        "together": (_pairs_together(drawn), _pairs_together(labels[None])[0]),
    }
    # Ties are broken at random, as ranks of discrete quantities must be.
    return [
        int((values < truth).sum() + rng.integers((values == truth).sum() + 1))
        for values, truth in pairs.values()
    ]


def _pairs_together(labels: np.ndarray) -> np.ndarray:
    """Number of pairs in a common cluster, for each row of labels."""
    return np.array([(np.bincount(row) ** 2).sum() for row in labels])


@pytest.mark.slow
def test_calibration(rng: np.random.Generator) -> None:
    assert uniform_rank_test(sbc_ranks(300, rng), 101) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_calibration_catches_a_wrong_prior(rng: np.random.Generator) -> None:
    assert uniform_rank_test(sbc_ranks(100, rng, bias=2.5), 101) < LEVEL
