"""Iterations of a draw of rows in groups, as tuning chooses them."""

import numpy as np
import pytest

from pymc_dpsplit.hierarchical.state import GroupedTarget, resume_groups
from pymc_dpsplit.hierarchical_model.cost import cost_of_iteration
from pymc_dpsplit.tuning.progress import TuningProgress, before_tuning, planned, with_draw
from tests.support.families import component_of, target_of

N_TUNE = 400
N_ROWS = 60
TARGET = GroupedTarget(
    target_of(component_of("Normal", 1), np.linspace(-2.0, 2.0, N_ROWS)[:, None], 1.0),
    np.arange(N_ROWS) % 5,
    np.full(5, N_ROWS // 5),
    1.0,
)
STATE = resume_groups(TARGET, (np.arange(N_ROWS) % 3).astype(np.int32))


def chain_of(correlation: float, cost: float) -> list[int]:
    """Iterations of all draws of a chain whose statistics are autoregressions."""
    progress, rng, value = before_tuning(N_TUNE), np.random.default_rng(2), 0.0
    chosen = []
    for _ in range(N_TUNE + 3):
        progress = planned(progress, N_ROWS, cost)
        of_draw = correlation ** (progress.n_iterations / progress.least)
        value = of_draw * value + rng.normal()
        stats = dict.fromkeys(("x_occupied", "x_entropy", "x_log_joint"), value)
        progress = with_draw(progress, stats, "x")
        chosen.append(progress.n_iterations)
    return chosen


def test_chain_that_mixes_fast_keeps_its_iterations() -> None:
    assert set(chain_of(0.0, 1e5)) == {4}


def test_chain_that_mixes_slowly_gets_more_from_the_last_quarter_of_tuning_on() -> None:
    chosen = chain_of(0.97, 1e5)
    assert set(chosen[:300]) == {4}
    assert min(chosen[300:]) > 8
    assert len(set(chosen[N_TUNE:])) == 1


def test_a_draw_takes_no_longer_than_fifty_milliseconds() -> None:
    assert chain_of(0.9999, 4e6)[-1] == 12


def test_without_tuning_there_are_as_many_as_cost_little() -> None:
    assert planned(before_tuning(0), N_ROWS, 1e5).n_iterations == 4


def test_nothing_changes_after_tuning() -> None:
    after = TuningProgress(N_TUNE, N_TUNE + 25, 7, 2, np.zeros((100, 3)))
    assert planned(after, N_ROWS, 1e3) is not None
    assert planned(after, N_ROWS, 1e3)[2:4] == (7, 2)


@pytest.mark.parametrize("is_by_slices", [False, True])
def test_cost_grows_with_rows_and_attempts(is_by_slices: bool) -> None:
    cost = cost_of_iteration(TARGET, STATE, 5, is_by_slices)
    assert cost_of_iteration(TARGET, STATE, 0, is_by_slices) < cost
    rows = np.repeat(TARGET.of_rows.data, 10, axis=0)
    many = GroupedTarget(
        target_of(component_of("Normal", 1), rows, 1.0),
        np.repeat(TARGET.group_of_row, 10),
        10 * TARGET.sizes,
        1.0,
    )
    state = resume_groups(many, np.repeat(STATE.labels, 10))
    assert cost_of_iteration(many, state, 0, is_by_slices) > 2 * cost_of_iteration(
        TARGET, STATE, 0, is_by_slices
    )
