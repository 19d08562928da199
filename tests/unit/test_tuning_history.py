"""When the iterations of a draw are chosen, and from what."""

from functools import partial

import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.step.schedule import adapted_iterations, make_schedule
from pymc_dpsplit.tuning.history import (
    RECORDED,
    autocorrelation_time,
    draws_with_one_schedule,
    empty_history,
    record,
    review,
)
from tests.support.families import component_of, target_of

N_TUNE = 400


def walk(n_draws: int, correlation: float) -> np.ndarray:
    """Statistics of so many draws, each an autoregression of order one."""
    noise = np.random.default_rng(3).normal(size=(n_draws, len(RECORDED)))
    for row in range(1, n_draws):
        noise[row] += correlation * noise[row - 1]
    return noise


def reviewed(history: np.ndarray, n_iterations: int, n_done: int) -> tuple[int, np.ndarray]:
    target = target_of(component_of("Normal", 1), np.linspace(-2.0, 2.0, 40)[:, None], 1.0)
    state = sampler.resume(target, np.arange(40) % 3)
    schedule = make_schedule("exact", target, state)._replace(n_iterations=n_iterations)
    adapted = partial(adapted_iterations, schedule, 2, "exact", target, state)
    return review(n_iterations, adapted, history, N_TUNE, n_done)


def test_second_half_of_tuning_is_recorded() -> None:
    history = empty_history(9)
    history[:] = np.nan
    for n_done in range(1, 12):
        stats = {"x_log_joint": 3.0, "x_entropy": 2.0, "x_occupied": n_done, "x_attempts": 7.0}
        record(history, 9, n_done, stats, "x")
    np.testing.assert_array_equal(history[:, 0], [6, 7, 8, 9])
    np.testing.assert_array_equal(history[:, 1:], [[2.0, 3.0]] * 4)


@pytest.mark.parametrize(
    ("n_history", "n_done", "expected"),
    [
        (200, 130, 20),
        (200, 199, 1),
        (200, 200, 100),
        (200, 299, 1),
        (200, 300, 100),
        (100, 301, 49),
        (100, 399, 1),
        (200, 400, np.inf),
    ],
)
def test_draws_until_the_schedule_may_change(n_history: int, n_done: int, expected: float) -> None:
    """Every 25 draws, after half of tuning, half of the history, and the whole of it."""
    assert draws_with_one_schedule(walk(n_history, 0.0), N_TUNE, n_done) == expected


@pytest.mark.parametrize("n_done", [0, 199, 200, 299, 301, 399, 401])
def test_nothing_changes_at_other_times(n_done: int) -> None:
    history = walk(200, 0.95)
    n_iterations, rest = reviewed(history, 3, n_done)
    assert n_iterations == 3
    assert rest is history


def test_slow_chain_gets_more_after_three_quarters() -> None:
    history = walk(200, 0.95)
    history[100:] = np.nan  # not yet made
    n_iterations, rest = reviewed(history, 3, 300)
    assert n_iterations >= 6
    assert len(rest) == 100
    assert np.isnan(rest).all()


def test_fast_chain_goes_on_as_before() -> None:
    history = walk(200, 0.0)
    n_iterations, rest = reviewed(history, 3, 300)
    assert n_iterations == 3
    assert rest is history


def test_last_quarter_goes_on_with_fewer_if_its_draws_are_independent() -> None:
    """Here 100 draws are left of tuning, of which 50 are done; 30 iterations become 8."""
    history = walk(100, 0.0)
    history[50:] = np.nan  # not yet made
    n_iterations, rest = reviewed(history, 30, 350)
    assert 2 < n_iterations <= 15
    assert len(rest) == 50
    assert np.isnan(rest).all()


def test_last_quarter_goes_on_as_before_if_its_draws_depend() -> None:
    history = walk(100, 0.95)
    n_iterations, rest = reviewed(history, 30, 350)
    assert n_iterations == 30
    assert rest is history


def test_few_draws_do_not_show_that_fewer_iterations_do() -> None:
    history = walk(98, 0.0)
    n_iterations, rest = reviewed(history, 30, 351)
    assert n_iterations == 30
    assert rest is history


def test_iterations_that_have_fallen_do_not_rise_again() -> None:
    assert reviewed(walk(60, 0.95), 8, N_TUNE)[0] == 8
    assert reviewed(walk(60, 0.0), 8, N_TUNE)[0] < 8
    assert reviewed(walk(100, 0.95), 8, N_TUNE)[0] > 8  # these had not fallen


def test_end_of_tuning_is_judged_by_what_is_left() -> None:
    fast, slow = walk(100, 0.0), walk(200, 0.95)
    assert reviewed(fast, 30, N_TUNE)[0] < 30
    assert reviewed(slow, 3, N_TUNE)[0] > 3
    assert reviewed(fast, 1, N_TUNE)[0] == 2  # those of a chain that mixes fast


def test_autocorrelation_time_is_that_of_an_autoregression() -> None:
    """It is (1 + r) / (1 - r), here 9, and 1 where there are few draws or none differ."""
    assert autocorrelation_time(walk(20_000, 0.8)) == pytest.approx(9.0, rel=0.2)
    assert autocorrelation_time(walk(49, 0.8)) == 1.0
    assert autocorrelation_time(np.ones((200, 3))) == 1.0
