"""Moves of rows in groups against the posterior by enumeration, and from exact starts."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from pymc_dpsplit.hierarchical import iteration, processors
from pymc_dpsplit.hierarchical.concentrations import factor_of_alpha_given_weights
from pymc_dpsplit.hierarchical.iteration import advance_groups
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, resume_groups
from pymc_dpsplit.hierarchical.summaries import log_joint, summary_of
from pymc_dpsplit.hierarchical.tables import draw_tables, redraw_weights
from pymc_dpsplit.kernels.jit import COMPILES, jitted
from pymc_dpsplit.moves.franchise import factor_of_alpha, factor_of_gamma
from pymc_dpsplit.moves.partition_law import dirichlet_process
from pymc_dpsplit.moves.slice import slice_draw
from tests.reference.franchise import seat_franchise
from tests.support.corpora import p_value_of
from tests.support.families import component_of, target_of, twin_of
from tests.support.grouped_rows import CASES, MOVES, run_grouped, truth_of_rows
from tests.support.kernels import with_another
from tests.support.quick import slow_unless
from tests.support.statistics import LEVEL, two_sample_test

# Chains, and their length; kernels take a thousand times as long as plain Python.
SHAPE = (8, 2000) if COMPILES else (8, 150)
N_REPLICATES = 2000 if COMPILES else 200
QUICK = ("Poisson", "2202", "all")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "case", "move"),
    slow_unless(QUICK.__eq__, product(("Normal", "Poisson"), CASES, MOVES)),
)
def test_posterior_of_six_rows(family, case, move):
    draws = run_grouped(family, CASES[case], move, SHAPE, 20261123)
    assert p_value_of(draws, truth_of_rows(family, CASES[case])) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.compiled
def test_processors_with_the_whole_gamma_are_caught(monkeypatch):
    """New clusters take shares Beta(1, gamma) in place of Beta(1, gamma / P)."""
    stand_in = jitted(lambda target, n_processors: target)
    broken = with_another(processors.scan_on_processors, "target_on", stand_in)
    monkeypatch.setattr(iteration, "scan_on_processors", broken)
    draws = run_grouped("Normal", CASES["2202"], "processors", SHAPE, 20261123)
    assert p_value_of(draws, truth_of_rows("Normal", CASES["2202"])) < LEVEL


# --- one draw from exact starts -----------------------------------------------------------

SIZES = np.array([4, 0, 7, 1, 5])
PRIORS = {"alpha": stats.gamma(4.0, scale=0.4), "gamma": stats.gamma(4.0, scale=0.3)}


class Start(NamedTuple):
    """A draw of everything from the model, and the number of tables."""

    target: GroupedTarget
    state: GroupedState
    n_tables: int


def forward(rng: np.random.Generator) -> Start:
    """Draw concentrations, seats, weights and rows."""
    alpha, gamma = (float(PRIORS[key].rvs(random_state=rng)) for key in PRIORS)
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
    return Start(target, state, int(tables.sum()))


def moved(key: str, value: float, factor: Callable[[float], float], rng: np.random.Generator):
    """Slice-sample the logarithm of a concentration."""

    def log_density(log_value: float) -> float:
        number = float(np.exp(log_value))
        return float(PRIORS[key].logpdf(number) + factor(number) + log_value)

    return float(np.exp(slice_draw(log_density, float(np.log(value)), 1.0, rng)))


def one_draw(start: Start, rng: np.random.Generator) -> Start:
    """Run two iterations, move the concentrations, and redraw the weights."""
    target, state, _ = start
    state = state._replace(labels=state.labels.copy())
    state, _, _ = advance_groups(target, state, rng, 2, 2)
    factor = factor_of_alpha_given_weights(target, state)
    target = target._replace(alpha=moved("alpha", target.alpha, factor, rng))
    tables = draw_tables(target, state.labels, state.weights, rng)
    factor = factor_of_gamma(len(tables), int(tables.sum()))
    gamma = moved("gamma", target.of_rows.law.strength, factor, rng)
    target = target._replace(of_rows=target.of_rows._replace(law=dirichlet_process(gamma)))
    return Start(target, redraw_weights(target, state, tables, rng), int(tables.sum()))


def statistics_of(start: Start) -> list[float]:
    """Numbers that do not depend on the numbering of clusters."""
    target, state, n_tables = start
    return [
        target.alpha,
        target.of_rows.law.strength,
        n_tables,
        len(state.weights),
        state.log_rest,
        np.sum(state.weights**2),
        log_joint(target, state),
        *summary_of(target, state),
    ]


def p_value_of_one_draw(seed: int) -> float:
    rng = np.random.default_rng(seed)
    starts = [forward(rng) for _ in range(N_REPLICATES)]
    before = np.array([statistics_of(start) for start in starts])
    after = np.array([statistics_of(one_draw(start, rng)) for start in starts])
    return two_sample_test(before, after)


@pytest.mark.slow
def test_one_draw_leaves_the_joint_law_as_it_was():
    assert p_value_of_one_draw(20261124) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_move_of_alpha_without_the_sizes_of_groups_is_caught(monkeypatch):
    exact = factor_of_alpha_given_weights

    def without_sizes(target: GroupedTarget, state: GroupedState) -> Callable[[float], float]:
        factor = exact(target, state)
        of_sizes = factor_of_alpha(SIZES, 0)
        return lambda alpha: factor(alpha) - of_sizes(alpha)

    monkeypatch.setitem(one_draw.__globals__, "factor_of_alpha_given_weights", without_sizes)
    assert p_value_of_one_draw(20261125) < LEVEL
