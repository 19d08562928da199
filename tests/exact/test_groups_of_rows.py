"""Rows that share a label, and rows that stand for several, against enumeration over groups."""

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.components import base, dispatch
from pymc_dpsplit.components.shared_labels import kernels
from pymc_dpsplit.components.shared_labels.items import SharedLabels
from tests.support.families import as_observed, component_of, target_of, twin_of
from tests.support.families import dataset_of as rows_of
from tests.support.moves import MOVES, PUBLISHED, Move
from tests.support.operations import marginal_of
from tests.support.partitions import (
    coclustering,
    enumerate_partitions,
    exact_posterior,
    n_clusters_law,
    n_clusters_of,
    partition_index,
)
from tests.support.shared_labels import MarginalOfGroups, shared_labels, target_of_groups
from tests.support.statistics import (
    LEVEL,
    coclustering_test,
    combine,
    count_test,
    partition_test,
)

ALPHA, N_GROUPS, _CHAINS, _DRAWS = 1.3, 5, 64, 150
FAMILIES = (("Normal", 1), ("MvNormal", 2), ("Poisson", 2))
CASES = [(of, move) for of in FAMILIES for move in ("exact kernel", "collapsed", "slice")]
CASES += [(of, move) for of in FAMILIES for move in PUBLISHED]
_SAMPLING: dict[str, Any] = {
    "chains": 4,
    "cores": 1,
    "random_seed": 11,
    "progressbar": False,
    "compute_convergence_checks": False,
}


def law_of(name: str, n_features: int, shared: SharedLabels) -> np.ndarray:
    """Posterior of every partition of the groups, by the marginals of all their rows."""
    rows = rows_of(name, "overlapping", n_features)
    marginals = MarginalOfGroups(twin_of(name, n_features), rows, shared)
    return exact_posterior(marginals, np.arange(shared.n_groups), ALPHA)


def p_value(labels: np.ndarray, probabilities: np.ndarray) -> float:
    index = partition_index(labels)
    return combine(
        partition_test(index, probabilities),
        count_test(n_clusters_of(N_GROUPS)[index], n_clusters_law(probabilities, N_GROUPS)),
        coclustering_test(labels, coclustering(probabilities, N_GROUPS)),
    )


def p_value_of_move(
    move: Move, target: sampler.Target, probabilities: np.ndarray, rng: np.random.Generator
) -> float:
    """P-value of draws (chains, draws, G) of chains that start from the law itself."""
    starts = rng.choice(len(probabilities), _CHAINS, p=probabilities)
    drawn = np.empty((_CHAINS, _DRAWS, N_GROUPS), np.int8)
    for chain, start in enumerate(enumerate_partitions(N_GROUPS)[starts]):
        state = sampler.resume(target, start)
        for draw in range(_DRAWS):
            state = move(target, state, rng)
            drawn[chain, draw] = state.labels
    return p_value(drawn, probabilities)


def target_for(name: str, n_features: int, shared: SharedLabels) -> sampler.Target:
    rows = rows_of(name, "overlapping", n_features)
    return target_of_groups(component_of(name, n_features), rows, shared, ALPHA)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "move"), CASES)
def test_moves_leave_the_law_of_groups(
    family: tuple[str, int], move: str, rng: np.random.Generator
) -> None:
    shared = shared_labels(8)
    assert shared.n_groups == N_GROUPS
    target = target_for(*family, shared)
    assert p_value_of_move(MOVES[move], target, law_of(*family, shared), rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("move", ["exact kernel", *PUBLISHED])
def test_statistics_without_counts_are_caught(move: str, rng: np.random.Generator) -> None:
    uncounted = shared_labels(8, counted=False)
    target = target_for(*FAMILIES[0], uncounted)
    probabilities = law_of(*FAMILIES[0], shared_labels(8))
    assert p_value_of_move(MOVES[move], target, probabilities, rng) < LEVEL


class WeightOfEveryRow(NamedTuple):
    """A prior whose kernels add the log weight of a cluster once for each row of a group."""

    shift: np.ndarray
    rows: Any


def _register_wrong_kernels() -> None:
    right = kernels.SharedLabelsPrior
    for operation, prior in list(dispatch._implementations):
        # Compiled calls take the first implementation that was registered.
        if prior is right and operation is not base.fill_log_density:
            dispatch.implements(operation, WeightOfEveryRow)(
                dispatch._implementations[operation, prior]
            )

    def fill_log_density(prior, tile, params, out, scratch):
        base.fill_log_density(right(prior.shift, prior.rows), tile, params, out, scratch)
        data = tile.data
        for t in range(out.shape[0]):
            g = tile.groups[t]
            out[t] += (data.bounds[g + 1] - data.bounds[g] - 1) * params[0]

    dispatch.implements(base.fill_log_density, WeightOfEveryRow)(fill_log_density)


@pytest.mark.slow
@pytest.mark.control
def test_weights_of_every_row_are_caught(rng: np.random.Generator) -> None:
    _register_wrong_kernels()
    shared = shared_labels(8)
    target = target_for(*FAMILIES[0], shared)
    wrong = target._replace(prior=WeightOfEveryRow(*target.prior))
    probabilities = law_of(*FAMILIES[0], shared)
    assert p_value_of_move(MOVES["slice"], wrong, probabilities, rng) < LEVEL


def test_groups_of_one_row_are_rows() -> None:
    """Every partition has the same marginal likelihood.

    Draws differ: moves sort clusters by their statistics, of which groups have one more.
    """
    rows = rows_of("Normal", "overlapping", 1)[:N_GROUPS]
    component = component_of("Normal", 1)
    single = SharedLabels(np.arange(len(rows)), np.ones(len(rows)))
    found = []
    for target in (
        target_of(component, rows, ALPHA),
        target_of_groups(component, rows, single, ALPHA),
    ):
        states = [sampler.resume(target, labels) for labels in enumerate_partitions(N_GROUPS)]
        found.append([sum(marginal_of(target.prior, of) for of in state.stats) for state in states])
        assert [len(state.stats) for state in states] == list(n_clusters_of(N_GROUPS))
    np.testing.assert_allclose(*found, rtol=1e-12)


# --- through the public interface ---------------------------------------------------------


def labels_by_pymc(family: tuple[str, int], shared: SharedLabels, **options: Any) -> np.ndarray:
    name, n_features = family
    rows = as_observed(name, rows_of(name, "overlapping", n_features))
    with pm.Model():
        dps.DPMixture(
            "x", ALPHA, component_of(name, n_features), observed=rows,
            groups=[f"subject {g}" for g in shared.group_of_row], counts=shared.counts,
        )  # fmt: skip
        idata = pm.sample(
            draws=2000, tune=300, dpsplit={"keep_labels": True, **options}, **_SAMPLING
        )
    labels: np.ndarray = idata["sample_stats"]["x_labels"].to_numpy()
    return labels


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["exact", "collapsed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_draws_of_pymc_follow_the_law_of_groups(family: tuple[str, int], kernel: str) -> None:
    shared = shared_labels(8)
    labels = labels_by_pymc(family, shared, kernel=kernel)
    assert p_value(labels, law_of(*family, shared)) > LEVEL
    # A negative control: of rows that stand for one row, and of rows with labels of their own.
    assert p_value(labels, law_of(*family, shared_labels(8, counted=False))) < LEVEL
