"""Docstrings of the families name the variables of the trace, and `from_data`."""

import re
from typing import Any

import pytest

import pymc_dpsplit as dps
from pymc_dpsplit.components.component_family import ComponentFamily

PUBLIC: list[Any] = [getattr(dps, name) for name in dps.__all__]
FAMILIES = [of for of in PUBLIC if isinstance(of, type) and issubclass(of, ComponentFamily)]
TRACE = "In the trace of a mixture ``x`` are "


def faults_of(family: Any, text: str) -> list[str]:
    """What a docstring lacks."""
    flat = " ".join(text.split())
    # The parts of a product, and the arguments of a `Component`, name the parameters.
    names = getattr(family, "parameters", {})
    wanted = {TRACE: TRACE, "from_data": "`from_data`"}
    wanted |= {f"x_{name}": rf"``x_{name}`` \(K," for name in names}
    return sorted(what for what, pattern in wanted.items() if not re.search(pattern, flat))


@pytest.mark.parametrize("family", FAMILIES)
def test_docstring_names_the_trace_and_from_data(family: Any) -> None:
    assert faults_of(family, family.__doc__) == []


def test_most_families_have_declared_parameters() -> None:
    assert sum(bool(getattr(family, "parameters", None)) for family in FAMILIES) == 16


def test_what_is_left_out_is_found() -> None:
    text = (dps.MvNormal.__doc__ or "").replace("x_cov", "x_mu").replace("`from_data`", "")
    assert faults_of(dps.MvNormal, text) == ["from_data", "x_cov"]
