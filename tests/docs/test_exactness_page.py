"""docs/exactness.md says what the last run of `make exactness` found."""

import json

from tests.exactness import FINDINGS, PAGE, comparisons, page
from tests.support.statistics import LEVEL


def results():
    return json.loads(FINDINGS.read_text())


def test_page_is_written_from_the_findings():
    assert PAGE.read_text() == page(results())


def test_every_comparison_was_run_and_passed():
    assert list(results()) == list(comparisons())
    assert all(result["p_value"] > LEVEL for result in results().values())
