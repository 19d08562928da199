"""What the pages say of the project is so: files, links, the example of the README, docstrings.

Each rule is a function of text that returns the faults it finds; each is also run on a specimen
that breaks it.
"""

import doctest
import re
from pathlib import Path

import pytest

import pymc_dpsplit
from tests.support.quick import slow_unless

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pymc_dpsplit"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *PACKAGE.rglob("*.md"),
        *(ROOT / "notebooks").glob("*.ipynb"),
    ]
)

# --- the architecture page ----------------------------------------------------------------

NAMED = re.compile(r"`([\w./-]+\.(?:py|md))`")


def named_files(text: str) -> list[str]:
    """Files that a page names, in backticks."""
    return NAMED.findall(text)


def absent_files(text: str) -> list[str]:
    """Files that a page names and that are neither in the package nor in the project."""
    named = named_files(text)
    return [name for name in named if not ((PACKAGE / name).exists() or (ROOT / name).exists())]


def test_every_file_named_exists():
    assert absent_files(ARCHITECTURE) == []


@pytest.mark.control
def test_page_out_of_date_is_reported():
    assert absent_files("`moves/target.py` and `moves/gone.py`") == ["moves/gone.py"]


# --- links --------------------------------------------------------------------------------

LINK = re.compile(r"\]\(([^)\s]+)\)")


def broken_links(text: str, folder: Path) -> list[str]:
    """Relative links of a page in `folder` that lead nowhere."""
    targets = [link.split("#")[0] for link in LINK.findall(text) if "://" not in link]
    return [target for target in targets if target and not (folder / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert broken_links(page.read_text(encoding="utf-8"), page.parent) == []


@pytest.mark.control
def test_broken_link_is_reported():
    text = "[a](README.md#top), [b](gone.md), [c](https://example.org/gone.md), [d](#here)"
    assert broken_links(text, ROOT) == ["gone.md"]


# --- code in pages and docstrings ---------------------------------------------------------

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_example_of_the_readme_runs():
    (example,) = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    made = {}
    exec(compile(example, "README.md", "exec"), made)
    assert made["dps"].diagnose(made["idata"]).converged
    assert made["labels"].dims == ("chain", "draw", "obs_id")
    # The two groups of the example do not share a cluster.
    similarity = made["similarity"].values
    assert similarity[:100, 100:].max() < 0.5 < similarity[:100, :100].mean()


def doctest_faults(public: object, name: str) -> tuple[int, str]:
    """Number of examples in a public object that were run, and what failed."""
    output: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    names = {name: public}
    for test in doctest.DocTestFinder(exclude_empty=True).find(public, name, globs=names):
        runner.run(test, out=output.append)
    return runner.summarize(verbose=False).attempted, "".join(output)


# Each of the others compiles kernels of its own.
_QUICK_EXAMPLES = ("DPMixture", "MvNormal", "Normal", "diagnose", "elicit_alpha", "point_partition")


@pytest.mark.parametrize("name", slow_unless(_QUICK_EXAMPLES.__contains__, pymc_dpsplit.__all__))
def test_examples_of_docstrings_run(name):
    attempted, faults = doctest_faults(getattr(pymc_dpsplit, name), name)
    assert attempted > 0
    assert faults == ""


def outdated():
    """Claim what is not so.

    >>> outdated()
    1
    """
    return 2


@pytest.mark.control
def test_wrong_example_is_reported():
    attempted, faults = doctest_faults(outdated, "outdated")
    assert attempted == 1
    assert "Expected:\n    1\nGot:\n    2" in faults
