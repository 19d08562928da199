"""docs/sample_stats.md lists exactly the statistics that the sampler records, with their types."""

import re
from pathlib import Path

import numpy as np
import pytest

from pymc_dpsplit.step.sampler_stats import stats_types

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sample_stats.md"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]+?) \| ([^|]*?) ?\| ([^|]+?) \|$", re.MULTILINE)


def recorded() -> dict[str, str]:
    """Names and types, as the page writes them."""
    types = {
        name: np.dtype(of).name for name, (of, shape) in stats_types("x", 100).items() if not shape
    }
    smallest, largest = (stats_types("x", n)["x_labels"][0].base.name for n in (1, 2**17))
    return {**types, "x_labels": f"{smallest} to {largest}, (N,)"}


def listed(page: str) -> dict[str, str]:
    return {name: of for name, of, _, _ in ROW.findall(page)}


def test_page_lists_what_is_recorded() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert list(listed(page).items()) == list(recorded().items())
    # Every row of the table is read, and says what it means.
    assert len(listed(page)) == page.count("\n| `")


@pytest.mark.control
def test_statistic_left_out_is_seen() -> None:
    page = PAGE.read_text(encoding="utf-8").replace("| `x_entropy` | float64", "| `x_gone` | int64")
    assert listed(page) != recorded()
