"""The catalogue of samplers of the literature, and what the step reads of it."""

from pathlib import Path

import numpy as np
import pytest

import pymc_dpsplit as dps
from pymc_dpsplit import sampler
from pymc_dpsplit.samplers.catalogue import SAMPLERS
from pymc_dpsplit.step.options import refuse_kernel
from pymc_dpsplit.step.schedule import make_schedule
from tests.support.families import target_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "samplers.md").read_text(encoding="utf-8")
over_samplers = pytest.mark.parametrize("name", SAMPLERS)


@over_samplers
def test_page_describes_it(name: str) -> None:
    authors = SAMPLERS[name].source.split(" (")[0]
    exact = "yes" if SAMPLERS[name].is_exact else "no"
    families = "conjugate" if SAMPLERS[name].nonconjugate is None else "all"
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f'| `"{name}"`')]
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
    cost = SAMPLERS[name].cost
    assert cost(large, 4, 1.0) > cost(small, 4, 1.0) > 0.0
    assert cost(small, 8, 1.0) > cost(small, 4, 0.0)
