"""Whole draws, as `pm.sample` makes them, against the truth: not moves one by one.

The schedule's iterations of linked sweeps, scan and attempts, alpha by slice, alpha and a
hyperparameter by NUTS.  The long tests are those of the table in docs/exactness.md, which
`make exactness` writes.  Level 1e-5 each; controls are mistakes that no single move shows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pymc_dpsplit.samplers.catalogue import SAMPLERS
from tests.support.compositions import (
    SETTINGS,
    Kernels,
    chain_of,
    enumeration,
    geweke,
    one_step,
    two_kernels,
)
from tests.support.families import FAMILIES
from tests.support.quick import over_cases
from tests.support.statistics import LEVEL
from tests.support.whole_draws import MUTANTS, with_long_window, with_window

CASES = [(name, row.n_features[-1]) for name, row in FAMILIES.items()]
_SEED = 20261122
NORMAL = ("Normal", 1)
EXACT_SAMPLERS: list[tuple[str, dict[str, Any]]] = [
    (name, {}) for name, row in SAMPLERS.items() if row.is_exact
]
EXACT_SAMPLERS += [
    ("chang-fisher", {"repaired": True}),
    ("av-parallel", {"shares": (0.6, 0.3, 0.1)}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [NORMAL, *over_cases(case for case in CASES if case != NORMAL)], ids=str
)
def test_a_draw_keeps_the_joint_law(case: tuple[str, int]) -> None:
    assert one_step(case, 40, 1500 if case == NORMAL else 250, _SEED).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "options"), EXACT_SAMPLERS, ids=str)
def test_a_draw_of_a_published_sampler_keeps_the_joint_law(
    kernel: str, options: dict[str, Any]
) -> None:
    assert one_step(NORMAL, 40, 600, _SEED, kernel=kernel, **options).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("case", [NORMAL, ("MvNormal", 5), ("Multinomial", 4)], ids=str)
@pytest.mark.parametrize("window", [with_window, with_long_window], ids=["part", "passes"])
def test_a_draw_with_a_window_keeps_the_joint_law(
    case: tuple[str, int], window: Callable[..., None]
) -> None:
    n_replicates = 1500 if case == NORMAL else 250
    assert one_step(case, 40, n_replicates, _SEED, window).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.parametrize("window", [with_window, with_long_window], ids=["part", "passes"])
def test_draws_with_a_window_have_the_enumerated_posterior(window: Callable[..., None]) -> None:
    assert enumeration(NORMAL, 6000, _SEED, window).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_draws_with_a_window_chosen_by_the_partition_do_not() -> None:
    assert enumeration(NORMAL, 6000, _SEED, MUTANTS["window by state"]).p_value < LEVEL


SMALL_DATA = "collapsed-split-merge"


@pytest.mark.slow
def test_a_draw_of_the_kernel_for_small_data_keeps_the_joint_law() -> None:
    assert one_step(NORMAL, 40, 1500, _SEED, kernel=SMALL_DATA).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", ["stale measure", "attempts by state"])
def test_broken_draws_of_the_kernel_for_small_data_do_not(name: str) -> None:
    assert one_step(NORMAL, 40, 2500, _SEED, MUTANTS[name], SMALL_DATA).p_value < LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", ["stale measure", "atoms by number"])
def test_broken_draws_do_not_keep_it(name: str) -> None:
    assert one_step(NORMAL, 40, 2500, _SEED, MUTANTS[name]).p_value < LEVEL


@pytest.mark.slow
def test_draws_have_the_enumerated_posterior() -> None:
    assert enumeration(NORMAL, 1500, _SEED).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_broken_draws_do_not_have_it() -> None:
    assert enumeration(NORMAL, 1500, _SEED, MUTANTS["schedule by state"]).p_value < LEVEL


@pytest.mark.slow
def test_draws_pass_geweke() -> None:
    assert geweke(NORMAL, 50, 800, _SEED).p_value > LEVEL


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("name", ["stale measure", "schedule by state"])
def test_broken_draws_do_not_pass_geweke(name: str) -> None:
    assert geweke(NORMAL, 50, 2000, _SEED, MUTANTS[name]).p_value < LEVEL


def p_value(setting: Kernels, n_draws: int, mutant: str | None = None) -> float:
    """P-value that both kernels have one law."""
    mutants = {"exact": MUTANTS.get(mutant or ""), "collapsed": None}
    exact, collapsed = (
        np.stack([chain_of(setting, kernel, n_draws, seed, mutants[kernel]) for seed in (1, 2)])
        for kernel in mutants
    )
    return two_kernels(setting, exact, collapsed).p_value


@pytest.mark.slow
def test_kernels_agree() -> None:
    assert p_value(SETTINGS[1], 1500) > LEVEL


@pytest.mark.slow
@pytest.mark.control
def test_broken_draws_do_not_agree() -> None:
    assert p_value(SETTINGS[1], 3000, "schedule by state") < LEVEL
