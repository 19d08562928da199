"""One step from an exact forward draw of labels and data leaves their joint law as it was.

Each replicate draws labels from the Chinese restaurant process, parameters from the base measure
and data from the clusters: an exact draw of (labels, data).  One application of a move must give
another.  Data sets are larger than those that can be enumerated.  Level 1e-5 each.
"""

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.moves.forward import draw_seating
from pymc_dpsplit.moves.partition import entropy, log_joint
from tests.support.controls import CONTROLS, wrong_by
from tests.support.families import FAMILIES, component_of, target_of
from tests.support.moves import MOVES, Move
from tests.support.quick import COMPILED_FAMILY, QUICK_MOVES, slow_unless
from tests.support.statistics import LEVEL, two_sample_test

N_OBS = 40
# Long runs find a concentration that is wrong by a tenth, see
# `test_a_small_error_is_caught_by_long_runs`.
_SHORT, _LONG = 1500, 5000
CASES = [(family, n) for family, row in FAMILIES.items() for n in row.n_features[-1:]]
_FIRST = ("Normal", "DiagNormal", "MvNormal")
_BROKEN_MERGES = (
    "transfer by any anchors",
    "unselected merge",
    "launch from the division",
    "merge without its reverse",
)
SHORT_CASES = [
    (name, case, alpha)
    for name in MOVES
    for case in CASES
    if case[0] in _FIRST
    for alpha in (0.5, 3.0)
]
# Of other families the moves that are not among the short runs by enumeration.
SHORT_CASES += [
    (name, case, 3.0)
    for name in ("anchored", "informed", "partial scan", "threaded sweep")
    for case in CASES
    if case[0] not in _FIRST
]


def statistics(target: sampler.Target, state: sampler.ChainState) -> list[float]:
    """Functions of partition and data that do not depend on how clusters are numbered."""
    sizes = state.stats[:, 0]
    return [
        len(sizes),
        sizes.max(),
        (sizes == 1).sum(),
        state.labels[0] == state.labels[1],
        entropy(state.stats),
        log_joint(target, state.stats),
    ]


def p_value(
    move: Move,
    case: tuple[str, int],
    alpha: float,
    n_replicates: int,
    rng: np.random.Generator,
    n_steps: int = 1,
) -> float:
    """P-value that the step leaves the law of the statistics as it was."""
    component = component_of(*case)
    return p_value_of(move, component, case[1], alpha, n_replicates, rng, n_steps)


def p_value_of(
    move: Move,
    component: ComponentFamily,
    n_features: int,
    alpha: float,
    n_replicates: int,
    rng: np.random.Generator,
    n_steps: int = 1,
    n_obs: int = N_OBS,
) -> float:
    """As `p_value`, for any hyperparameters."""
    values = component.check(component.hyperparameters, n_features)
    before, after = [], []
    for _ in range(n_replicates):
        labels = draw_seating(rng, alpha, n_obs)
        parameters = component.draw_base(rng, values, int(labels.max()) + 1)
        rows = component.draw_rows(rng, parameters, labels).reshape(n_obs, -1)
        target = target_of(component, rows, alpha)
        state = sampler.resume(target, labels)
        before.append(statistics(target, state))
        for _ in range(n_steps):
            state = move(target, state, rng)
        after.append(statistics(target, state))
    return two_sample_test(np.array(before, float), np.array(after, float))


def is_quick(row: tuple[str, tuple[str, int], float]) -> bool:
    name, (family, _), alpha = row
    return name in QUICK_MOVES and family == COMPILED_FAMILY and alpha == 3.0


@pytest.mark.parametrize(("name", "case", "alpha"), slow_unless(is_quick, SHORT_CASES), ids=str)
def test_move_is_invariant(
    name: str, case: tuple[str, int], alpha: float, rng: np.random.Generator
) -> None:
    assert p_value(MOVES[name], case, alpha, _SHORT, rng) > LEVEL


# One alpha each: neighbours in the table have another.
LONG_CASES = [
    (name, case, (0.5, 3.0)[(i + j) % 2])
    for i, name in enumerate(MOVES)
    for j, case in enumerate(CASES)
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case", "alpha"), LONG_CASES, ids=str)
def test_move_is_invariant_long(
    name: str, case: tuple[str, int], alpha: float, rng: np.random.Generator
) -> None:
    assert p_value(MOVES[name], case, alpha, _LONG, rng) > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_small_error_is_caught_by_long_runs(factor: float, rng: np.random.Generator) -> None:
    assert p_value(wrong_by(factor), ("DiagNormal", 2), 3.0, _LONG, rng) < LEVEL


@pytest.mark.control
# The other kinds are quick in the test by enumeration.
@pytest.mark.parametrize("name", slow_unless("uncompensated split".__eq__, CONTROLS))
def test_broken_move_is_caught(name: str, rng: np.random.Generator) -> None:
    # One attempt to merge seldom changes anything, so that it errs little: it is given several.
    n_steps = 10 if name in _BROKEN_MERGES else 1
    assert p_value(CONTROLS[name], ("MvNormal", 3), 3.0, _SHORT, rng, n_steps) < LEVEL
