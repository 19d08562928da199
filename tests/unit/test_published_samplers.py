"""The catalogue of samplers of the literature, and what the step reads of it."""

from pathlib import Path

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.moves.partition_law import PartitionLaw, dirichlet_process, finite_mixture
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from pymc_dpsplit.step.options import check_published, refuse_kernel
from pymc_dpsplit.step.sampler_stats import plan_of
from pymc_dpsplit.step.schedule import make_schedule
from tests.support.families import target_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "samplers.md").read_text(encoding="utf-8")
over_samplers = pytest.mark.parametrize("name", SAMPLERS)


@over_samplers
def test_page_describes_it(name: str) -> None:
    authors = SAMPLERS[name].source.split(" (")[0]
    exact = "yes" if SAMPLERS[name].is_exact else "no"
    families = "conjugate" if SAMPLERS[name].nonconjugate is None else "all"
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f'| `"{name}"` |')]
    source, *rest = [cell.strip() for cell in row.split("|")[2:-1]]
    assert source.startswith(authors)
    assert rest == [exact, families]
    assert f'\n## `"{name}"`: ' in PAGE


@over_samplers
def test_families_that_are_not_conjugate_are_refused_if_need_be(name: str) -> None:
    if SAMPLERS[name].nonconjugate is not None:
        refuse_kernel(name, "x", is_conjugate=False)
        return
    with pytest.raises(ValueError, match=f"kernel='{name}' needs a family whose parameters can"):
        refuse_kernel(name, "x", is_conjugate=False)


@pytest.mark.filterwarnings("ignore:kernel=.* is here for comparison:UserWarning")
@over_samplers
def test_other_laws_are_refused_if_need_be(name: str) -> None:
    laws = PartitionLaw(0.3, 1.0), finite_mixture(0.5, 4)
    row = SAMPLERS[name]
    for law in laws:
        if row.takes_any_law:
            check_published(name, "x", law)
            continue
        with pytest.raises(ValueError, match=f"kernel='{name}' samples Dirichlet processes, and x"):
            check_published(name, "x", law)


@over_samplers
def test_inexact_ones_warn(name: str, recwarn: pytest.WarningsRecorder) -> None:
    check_published(name, "x", dirichlet_process(1.0))
    assert [str(found.message).split(":")[0] for found in recwarn] == (
        [] if SAMPLERS[name].is_exact else [f"kernel='{name}' is here for comparison"]
    )


def test_options_are_read_in_their_order() -> None:
    for row in SAMPLERS.values():
        assert row.is_exact_with({}) == row.is_exact
        numbers = [option for option in row.options if not option.is_sequence]
        assert list(row.options[: len(numbers)]) == numbers
        assert list(row.settings({})) == [option.default for option in numbers]
        for option in row.options[len(numbers) :]:
            settings = row.settings({option.name: [7, 0.5]})
            assert list(settings) == [*row.settings({}), 7.0, 0.5]
            assert f"`{option.name}=" in PAGE
        for i, option in enumerate(numbers):
            option.check(option.default)
            settings = row.settings({option.name: 7})
            assert [settings[i], *np.delete(settings, i)] == [7, *np.delete(row.settings({}), i)]
            assert f"`{option.name}=" in PAGE


def test_options_of_work_change_the_cost(rng: np.random.Generator) -> None:
    target = target_of(dps.DiagNormal(0, 0.1, 2, 1), rng.standard_normal((400, 2)), 1.0)
    for name, option in {"truncated": "truncation", "ics": "m"}.items():
        few, many = (SAMPLERS[name].settings({option: n}) for n in (5, 50))
        assert SAMPLERS[name].cost(target, 4, 0.0, many) > SAMPLERS[name].cost(target, 4, 0.0, few)
        state = sampler.start(target, rng, 5)
        costly = make_schedule(name, target, state, settings=many)
        assert costly.n_iterations <= make_schedule(name, target, state, settings=few).n_iterations


def test_options_that_are_not_exact_warn(recwarn: pytest.WarningsRecorder) -> None:
    check_published("av-parallel", "x", dirichlet_process(1.0), {"processors": 2})
    assert len(recwarn) == 0
    check_published("av-parallel", "x", dirichlet_process(1.0), {"published": True})
    assert len(recwarn) == 1


@over_samplers
def test_plan_says_what_an_iteration_visits(name: str, rng: np.random.Generator) -> None:
    target = target_of(dps.Normal(0, 0.1, 2, 1), rng.standard_normal((30, 1)), 1.0)
    schedule = make_schedule(name, target, sampler.start(target, rng, 3))
    plan = plan_of(name, target, schedule)
    assert plan["scanned"] == (30 if SAMPLERS[name].is_collapsed else 0)
    assert plan["attempts"] == SAMPLERS[name].attempts


@over_samplers
def test_schedule_is_as_published(name: str, rng: np.random.Generator) -> None:
    target = target_of(dps.DiagNormal(0, 0.1, 2, 1), rng.standard_normal((400, 6)), 1.0)
    state = sampler.start(target, rng, 5)
    schedule = make_schedule(name, target, state)
    assert schedule.attempts == SAMPLERS[name].attempts
    assert len(schedule.scan_list) == 0
    assert schedule.n_iterations >= 1
    assert make_schedule(name, target, state, 7).attempts == 7.0


@over_samplers
def test_cost_grows_with_the_work(name: str, rng: np.random.Generator) -> None:
    small, large = (
        target_of(dps.DiagNormal(0, 0.1, 2, 1), rng.standard_normal((n, 2)), 1.0)
        for n in (100, 1000)
    )
    cost, settings = SAMPLERS[name].cost, SAMPLERS[name].settings({})
    assert cost(large, 4, 1.0, settings) > cost(small, 4, 1.0, settings) > 0.0
    assert cost(small, 8, 1.0, settings) > cost(small, 4, 0.0, settings)
