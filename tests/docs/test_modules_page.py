"""docs/modules.md lists the modules as they are; docs/architecture.md has a row for each folder."""

import re

import pytest

from tests.modules_page import PACKAGE, PAGE, page

ARCHITECTURE = PAGE.with_name("architecture.md")
FOLDERS = {
    path.parent.relative_to(PACKAGE).as_posix() + "/" for path in PACKAGE.rglob("__init__.py")
} - {"./"}


def unlisted_folders(text: str) -> set[str]:
    """Folders of modules that begin no row of the tables of a page."""
    return FOLDERS - set(re.findall(r"^\| `([\w/]+/)`", text, re.MULTILINE))


def test_page_is_written_from_the_docstrings():
    stale = PAGE.read_text(encoding="utf-8") != page(PACKAGE)
    assert not stale, "docs/modules.md is stale; run make architecture"


def test_every_folder_has_a_row():
    assert unlisted_folders(ARCHITECTURE.read_text(encoding="utf-8")) == set()


@pytest.mark.control
def test_new_docstring_changes_the_page(tmp_path):
    package = tmp_path / "mixtures"
    package.mkdir()
    for name in ("tally.py", "slice.py"):
        (package / name).write_text('"""Counts."""\n', encoding="utf-8")
    before = page(package)
    (package / "tally.py").write_text('"""Counts.\n\nOf attempts.\n"""\n', encoding="utf-8")
    assert page(package) == before
    (package / "tally.py").write_text('"""Numbers.\n\nOf attempts.\n"""\n', encoding="utf-8")
    assert page(package) == before.replace("tally.py): Counts.", "tally.py): Numbers.")
    assert page(package) != before


@pytest.mark.control
def test_folder_without_a_row_is_reported():
    assert "moves/" in unlisted_folders("| `kernels/` | moves/ |\n`moves/`")
    assert "kernels/" not in unlisted_folders("| `kernels/` | moves/ |\n`moves/`")
