"""The kernel cache must notice an edit in any file that a kernel inlines, and in no other.

Kernels that are called by a symbol are found by it, whichever of them was in the cache.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import pymc_dpsplit

_COPIED = ("components/base.py", "components/dispatch.py")
_WRITTEN = {
    "__init__.py": "",
    "components/__init__.py": "",
    "components/shared.py": "SHARED = 1.0\n",
    "components/first.py": """
from typing import NamedTuple
from pymc_dpsplit.components import base
from pymc_dpsplit.components.shared import SHARED

class FirstPrior(NamedTuple):
    number: float

class OtherPrior(NamedTuple):
    part: FirstPrior

@base.implements(base.stats_size, FirstPrior)
def _stats_size(prior):
    return prior.number + SHARED
""",
    "components/other.py": """
from pymc_dpsplit.components import base
from pymc_dpsplit.components.first import OtherPrior

@base.implements(base.stats_size, OtherPrior)
def _stats_size(prior):
    return base.stats_size(prior.part)
""",
    "components/second.py": """
from typing import NamedTuple
from pymc_dpsplit.components import base

class SecondPrior(NamedTuple):
    number: float

@base.implements(base.stats_size, SecondPrior)
def _stats_size(prior):
    return prior.number
""",
    "moves/__init__.py": "",
    "moves/callee.py": """
from pymc_dpsplit.kernels.jit import jitted

@jitted
def callee(x):
    return x + 1.0
""",
    "moves/caller.py": """
from pymc_dpsplit.components.base import stats_size
from pymc_dpsplit.kernels.jit import jitted
from pymc_dpsplit.moves.callee import callee

@jitted
def size_of(prior):
    return callee(stats_size(prior))
""",
    "moves/apart.py": """
from pymc_dpsplit.kernels.jit import jitted

@jitted
def apart(x):
    return x
""",
}
_SCRIPT = """
from pymc_dpsplit.components import other
from pymc_dpsplit.components.first import FirstPrior, OtherPrior
from pymc_dpsplit.components.second import SecondPrior
from pymc_dpsplit.moves.apart import apart
from pymc_dpsplit.kernels import linking
from pymc_dpsplit.moves.callee import callee
from pymc_dpsplit.moves.caller import size_of

first = FirstPrior(10.0)
print(size_of(first), size_of(OtherPrior(first)), size_of(SecondPrior(20.0)), apart(30.0))
print(*(kind.instance_class.__name__ for (kind,) in size_of.entry.stats.cache_hits))
print(*("apart" for _ in apart.entry.stats.cache_hits))
print(sum(callee.called.stats.cache_hits.values()), len(linking._linked))
"""


class Edit(NamedTuple):
    """An edit of a file, and what then is in the cache: families, and the kernel without any."""

    file: str
    old: str
    new: str
    results: str
    cached: set[str]


EDITS = (
    Edit("moves/callee.py", "1.0", "2.0", "13.0 13.0 22.0 30.0", {"apart"}),
    Edit("components/second.py", "number\n", "number * 2.0\n", "13.0 13.0 42.0 30.0",
         {"FirstPrior", "OtherPrior", "apart"}),
    Edit("components/other.py", "part)", "part) * 2.0", "13.0 24.0 42.0 30.0",
         {"FirstPrior", "SecondPrior", "apart"}),
    Edit("components/shared.py", "1.0", "3.0", "15.0 28.0 42.0 30.0", {"SecondPrior", "apart"}),
    Edit("components/dispatch.py", "registry", "table", "15.0 28.0 42.0 30.0", {"apart"}),
    Edit("kernels/jit.py", "the only", "the sole", "15.0 28.0 42.0 30.0", set()),
)  # fmt: skip


def small_copy(folder: Path) -> Path:
    """Make a package of the kernels that there are, and a few families and moves.

    All its kernels are called by symbols, as if they were long.
    """
    source, package = Path(pymc_dpsplit.__file__).parent, folder / "pymc_dpsplit"
    shutil.copytree(source / "kernels", package / "kernels", ignore=lambda *_: ["__pycache__"])
    for name, text in _WRITTEN.items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text)
    for name in _COPIED:
        shutil.copy(source / name, package / name)
    linking = package / "kernels" / "linking.py"
    text = linking.read_text()
    assert "_LONG = 400" in text
    linking.write_text(text.replace("_LONG = 400", "_LONG = 1"))
    return package


def run(folder: Path, script: str = _SCRIPT) -> tuple[str, set[str]]:
    """Results of the script in a fresh process, and what it found in the cache."""
    results, *cached, _ = printed(folder, script)
    return results, set(" ".join(cached).split())


def last_line(folder: Path) -> str:
    """How often `callee` was in the cache, and the number of kernels called by symbols."""
    return printed(folder, _SCRIPT)[-1]


def printed(folder: Path, script: str) -> list[str]:
    """Lines that the script prints in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={
            "PYTHONPATH": str(folder),
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PATH": "",
            # Python takes an edit within the same second and of the same length for none.
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.compiled
def test_an_edit_recompiles_what_inlines_it(tmp_path: Path) -> None:
    package = small_copy(tmp_path)
    first = "12.0 12.0 21.0 30.0"
    assert run(tmp_path) == (first, set())
    assert run(tmp_path) == (first, {"FirstPrior", "OtherPrior", "SecondPrior", "apart"})
    for edit in EDITS:
        file = package / edit.file
        text = file.read_text()
        assert edit.old in text
        file.write_text(text.replace(edit.old, edit.new, 1))
        assert run(tmp_path) == (edit.results, edit.cached), edit.file


@pytest.mark.compiled
def test_entries_of_an_older_version_count_as_none(tmp_path: Path) -> None:
    """Types that the package no longer has: their entries cannot be read, and need not be."""
    first, package = "12.0 12.0 21.0 30.0", small_copy(tmp_path)
    assert run(tmp_path) == (first, set())
    for file in package.rglob("*.py"):
        file.write_text(file.read_text().replace("FirstPrior", "RenamedPrior"))
    assert run(tmp_path, _SCRIPT.replace("FirstPrior", "RenamedPrior")) == (first, {"apart"})


@pytest.mark.slow
@pytest.mark.compiled
def test_what_is_called_by_a_symbol_is_compiled_again_if_it_is_gone(tmp_path: Path) -> None:
    first, every = "12.0 12.0 21.0 30.0", {"FirstPrior", "OtherPrior", "SecondPrior", "apart"}
    small_copy(tmp_path)
    assert run(tmp_path) == (first, set())
    assert last_line(tmp_path) == "1 1"
    for file in (tmp_path / "cache").rglob("callee.*"):
        file.unlink()
    assert last_line(tmp_path) == "0 1"
    assert run(tmp_path) == (first, every)
