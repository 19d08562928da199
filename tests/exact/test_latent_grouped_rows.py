"""Latent rows in groups under a likelihood, against enumeration and from exact starts."""

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dpsplit as dps
from pymc_dpsplit.hierarchical import group_weights, latent_rows
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, resume_groups
from pymc_dpsplit.hierarchical.summaries import log_joint
from pymc_dpsplit.hierarchical_model.latent_rows import LatentGroupedRows
from pymc_dpsplit.kernels.jit import COMPILES
from pymc_dpsplit.moves.franchise import seat_in_franchise
from pymc_dpsplit.moves.likely_rows import LikelyRows
from tests.reference import families as naive
from tests.reference.franchise import (
    averages_of_groups,
    posterior_of_groups,
    seat_franchise,
)
from tests.support.datasets import DATASETS
from tests.support.families import component_of, target_of, twin_of
from tests.support.partitions import n_clusters_law, partition_index
from tests.support.quadrature import block_average, block_masks, noisy_table
from tests.support.statistics import (
    LEVEL,
    combine,
    count_test,
    mean_test,
    partition_test,
    two_sample_test,
)

pytestmark = pytest.mark.slow

HYPERPARAMETERS = {"mu0": 0.2, "kappa0": 0.3, "a0": 3.0, "b0": 0.8}
ALPHA, GAMMA = 1.2, 0.9
GROUPS = np.array([0, 2, 1, 0, 1, 2])
Y = DATASETS["overlapping"](1)[:6, 0] * 1.5
NOISE = np.array([0.3, 1.5, 0.4, 3.0, 0.5, 0.8])
MIXING = np.eye(6) + 0.3 * np.tri(6, k=-1)

SAMPLING: dict[str, Any] = {
    "tune": 300,
    "chains": 4,
    "cores": 1,
    "progressbar": False,
    "compute_convergence_checks": False,
    "random_seed": 11,
}


# --- through pm.sample, against enumeration and quadrature ----------------------------------


def each(b: Any) -> None:
    pm.Normal("y", b, NOISE, observed=Y)


def coupled(b: Any) -> None:
    """Each observation depends on several rows, and so does the noise, which undoes it."""
    cov = MIXING @ np.diag(NOISE**2) @ MIXING.T
    pm.MvNormal("y", MIXING @ b, cov, observed=MIXING @ Y)


def log_likelihood_of(table: np.ndarray) -> Any:
    """Log likelihood of labels, from the table of all sets of rows."""
    n = int(np.log2(len(table)))

    def log_likelihood(labels: np.ndarray) -> float:
        blocks = (np.flatnonzero(labels == k) for k in range(labels.max() + 1))
        return float(sum(table[np.sum(2**block)] for block in blocks))

    assert block_masks(n).max() == len(table) - 1
    return log_likelihood


def p_value(likelihood: Any, n_draws: int = 1000, **options: Any) -> float:
    """P-value of partitions, numbers of tables and rows, with known concentrations."""
    latent = noisy_table(naive.Normal(**HYPERPARAMETERS), Y, NOISE)
    truth = posterior_of_groups(GROUPS, log_likelihood_of(latent.table), ALPHA, GAMMA)
    found = block_average(truth.partitions[None], latent.values[None])
    with pm.Model(coords={"subject": range(6)}):
        component = dps.Normal(**HYPERPARAMETERS)
        b = dps.HDPMixture("b", ALPHA, GAMMA, component, groups=GROUPS, dims="subject")
        likelihood(b)
        drawn = pm.sample(draws=n_draws, hdp=options, **SAMPLING).posterior
    index = partition_index(drawn["b_labels"].to_numpy())
    first, second = found[..., 0].ravel(), found[..., 1].ravel()
    return combine(
        partition_test(index, truth.partitions),
        count_test(drawn["b_n_clusters"].to_numpy(), n_clusters_law(truth.partitions, 6)),
        count_test(drawn["b_n_tables"].to_numpy(), truth.n_tables),
        mean_test(drawn["b"].to_numpy(), first, second - first**2),
    )


@pytest.mark.parametrize("kernel", ["collapsed", "slices"])
def test_latent_rows_are_exact(kernel: str) -> None:
    assert p_value(each, 1500, kernel=kernel) > LEVEL


@pytest.mark.parametrize("kernel", ["collapsed", "slices"])
def test_latent_rows_are_exact_without_exchanges(kernel: str) -> None:
    assert p_value(each, 12_000, kernel=kernel, exchanges=0) > LEVEL


def test_rows_that_a_likelihood_couples_are_exact() -> None:
    assert p_value(coupled, 12_000) > LEVEL


@pytest.mark.control
def test_rows_given_the_labels_of_others_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    make_node = LatentGroupedRows.make_node

    def rolled(op: LatentGroupedRows, rng: Any, n_rows: Any, labels: Any, *rest: Any) -> Any:
        return make_node(op, rng, n_rows, pm.math.concatenate([labels[1:], labels[:1]]), *rest)

    monkeypatch.setattr(LatentGroupedRows, "make_node", rolled)
    assert p_value(each, 1500, exchanges=0) < LEVEL


@pytest.mark.control
def test_exchange_that_accepts_everything_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(present: Any, proposed: Any, rng: np.random.Generator) -> Any:
        return proposed, np.ones(len(present.rows), bool)

    monkeypatch.setattr(latent_rows, "accept_rows", broken)
    assert p_value(each, 1000) < LEVEL


# --- through pm.sample, with concentrations and a hyperparameter ---------------------------

FEW, SHAPES, RATES = 5, (4.0, 4.0, 6.0), (2.0, 3.0, 7.0)


def p_value_with_priors(is_tied: bool, n_draws: int = 1500) -> float:
    """P-value of concentrations, a hyperparameter and the sizes; see `averages_of_groups`."""
    y, noise, groups, names = Y[:FEW], NOISE[:FEW], GROUPS[:FEW], ("alpha", "gamma", "b0")
    tables: dict[float, Any] = {}

    def log_likelihood(labels: np.ndarray, b0: float) -> float:
        if b0 not in tables:
            family = naive.Normal(**{**HYPERPARAMETERS, "b0": b0})
            tables[b0] = log_likelihood_of(noisy_table(family, y, noise).table)
        return tables[b0](labels)

    priors = [stats.gamma(a, scale=1.0 / b) for a, b in zip(SHAPES, RATES, strict=True)]
    truth = averages_of_groups(groups, log_likelihood, priors, is_tied)
    with pm.Model():
        alpha, gamma, b0 = (
            pm.Gamma(name, a, b) for name, a, b in zip(names, SHAPES, RATES, strict=True)
        )
        component = dps.Normal(**{**HYPERPARAMETERS, "b0": b0})
        concentrations = alpha, alpha if is_tied else gamma
        b = dps.HDPMixture("b", *concentrations, component, groups=groups, shape=FEW)
        pm.Normal("y", b, noise, observed=y)
        drawn = pm.sample(draws=n_draws, **SAMPLING).posterior
    read = ("alpha", "alpha", "b0") if is_tied else names
    logs = np.log(np.stack([drawn[name].to_numpy() for name in read], axis=-1))
    return combine(
        mean_test(logs, truth.logarithms),
        count_test(drawn["b_n_clusters"].to_numpy(), truth.n_topics),
        count_test(drawn["b_n_tables"].to_numpy(), truth.n_tables),
    )


@pytest.mark.parametrize("is_tied", [False, True])
def test_variables_beside_latent_rows_have_their_posterior(is_tied: bool) -> None:
    assert p_value_with_priors(is_tied) > LEVEL


@pytest.mark.control
def test_density_that_forgets_the_sizes_of_groups_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "pymc_dpsplit.hierarchical_model.measure.unique_sizes",
        lambda groups: (np.zeros(1), np.zeros(1)),
    )
    assert p_value_with_priors(is_tied=True, n_draws=800) < LEVEL


# --- exchanges from exact starts ---------------------------------------------------------

SIZES = np.array([4, 0, 7, 1, 5])
N_REPLICATES = 4000 if COMPILES else 1500
N_EXCHANGES = 8
SEEN = 2.0


class Start(NamedTuple):
    """A draw of labels, weights, rows and observations from the model."""

    target: GroupedTarget
    state: GroupedState
    rows: np.ndarray
    observed: np.ndarray


def forward(rng: np.random.Generator) -> Start:
    alpha, gamma = float(rng.gamma(4.0, 0.4)), float(rng.gamma(4.0, 0.3))
    labels, tables = seat_franchise(SIZES, alpha, gamma, rng)
    *weights, rest = rng.dirichlet([*tables, gamma])
    family, rows = twin_of("Normal", 1), np.empty((len(labels), 1))
    for k in range(len(tables)):
        parameters = family.draw_parameters(rng, rows[:0], 1)
        own = {key: value[0] for key, value in parameters.items()}
        rows[labels == k] = family.draw_rows(rng, own, int((labels == k).sum()))
    of_rows = target_of(component_of("Normal", 1), rows, gamma)
    target = GroupedTarget(of_rows, np.repeat(np.arange(len(SIZES)), SIZES), SIZES, alpha)
    state = resume_groups(target, labels.astype(np.int32))
    state = state._replace(weights=np.array(weights), log_rest=float(np.log(rest)))
    return Start(target, state, rows, rows + rng.normal(0.0, SEEN, rows.shape))


def exchanged(start: Start, rng: np.random.Generator) -> Start:
    """Some joint updates of labels and rows."""

    def log_likelihood(rows: np.ndarray) -> np.ndarray:
        return -0.5 * ((rows - start.observed)[:, 0] / SEEN) ** 2

    component, shift = component_of("Normal", 1), start.target.of_rows.prior.shift
    values = component.check(component.hyperparameters, 1)
    present = LikelyRows(start.rows, log_likelihood(start.rows))
    target, state = start.target, start.state
    for _ in range(N_EXCHANGES):
        target, state, present, _ = latent_rows.exchange_rows(
            component, values, shift, target, state, present, log_likelihood, rng
        )
    return start._replace(target=target, state=state, rows=present.rows)


def statistics_of(start: Start) -> list[float]:
    """Numbers that do not depend on the numbering of clusters."""
    target, state, rows, observed = start
    labels, groups = state.labels, target.group_of_row
    together = labels[:, None] == labels
    near = groups[:, None] == groups
    return [
        len(state.weights),
        state.log_rest,
        np.sum(state.weights**2),
        np.sum(np.log(state.weights)),
        np.sum(together & near),
        np.sum(together & ~near),
        log_joint(target, state),
        rows.mean(),
        rows.std(),
        np.mean(rows * observed),
        target.alpha * len(state.weights),
        target.of_rows.law.strength * state.log_rest,
    ]


def p_value_of_exchanges(seed: int) -> float:
    rng = np.random.default_rng(seed)
    starts = [forward(rng) for _ in range(N_REPLICATES)]
    before = np.array([statistics_of(start) for start in starts])
    after = np.array([statistics_of(exchanged(start, rng)) for start in starts])
    return two_sample_test(before, after)


def test_exchanges_leave_the_joint_law_as_it_was() -> None:
    assert p_value_of_exchanges(20261125) > LEVEL


def seated_apart(groups: Any, alpha: float, gamma: float, rng: Any) -> Any:
    """Groups that share no new cluster."""
    seated = seat_in_franchise(groups, alpha, gamma, rng)
    cells, labels = np.unique([groups, seated.labels], axis=1, return_inverse=True)
    share = np.full(cells.shape[1], 1.0 / (cells.shape[1] + gamma))
    return seated._replace(labels=labels, weights=share, log_rest=np.log(1.0 - share.sum()))


def without_return(target: Any, labels: Any, weights: Any, log_rest: float) -> Any:
    state = latent_rows.occupied_state(target, labels, weights, log_rest)
    return state._replace(log_rest=log_rest)


def of_the_first_group(target: Any, state: Any, rng: Any) -> Any:
    weights = group_weights.draw_group_weights(target, state, rng)
    return np.tile(weights[:1], (len(weights), 1))


BROKEN = {
    "new clusters of one group each": (group_weights, "seat_in_franchise", seated_apart),
    "weights of empty clusters are lost": (latent_rows, "occupied_state", without_return),
    "weights of another group": (group_weights, "draw_group_weights", of_the_first_group),
}


@pytest.mark.control
@pytest.mark.parametrize("broken", BROKEN)
def test_broken_exchange_is_caught(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, stand_in = BROKEN[broken]
    honest = getattr(module, name)

    def stood_in(*arguments: Any) -> Any:
        with monkeypatch.context() as within:
            within.setattr(module, name, honest)
            return stand_in(*arguments)

    monkeypatch.setattr(module, name, stood_in)
    assert p_value_of_exchanges(20261126) < LEVEL
