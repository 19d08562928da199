"""What a process finds in the cache of kernels is what it would compile, or it compiles.

Kernels of a small package, each run in a fresh process.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pymc_dpsplit

pytestmark = pytest.mark.compiled

WRITTEN = {
    "__init__.py": "",
    "factor.py": "FACTOR = 1.0\n",
    "kernels.py": """
from few.factor import FACTOR
from pymc_dpsplit.kernels.jit import jitted

@jitted
def inner(x):
    return FACTOR * x + 10.0

@jitted
def outer(x):
    return inner(x) * 2.0
""",
}
# Before the kernels are imported.
TRUSTING = """
import pickle
from pathlib import Path
from pymc_dpsplit.kernels import cache

class Alike:
    def __ne__(self, other):
        return False

def load(self, name):
    return pickle.loads(Path(self._data_path(name)).read_bytes()[cache._CHECKSUM + cache._DIGEST:])

cache._Files._load_data = load
cache._Entry.key = property(lambda self: Alike())
"""
ENDING = """
import os
from pymc_dpsplit.kernels.cache import _Files
_Files._save_data = lambda *_: os._exit(9)
"""
OUTER = "from few.kernels import inner, outer; print(outer(1.0))\n"
INNER = "from few.kernels import inner, outer; print(inner(1.0))\n"
BOTH = INNER + OUTER


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh process, with the small package and its cache in a folder."""
    for name, text in WRITTEN.items():
        file = folder / "few" / name
        if not file.exists():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
    root = Path(pymc_dpsplit.__file__).parents[1]
    paths = {
        "PYTHONPATH": f"{root}{os.pathsep}{folder}",
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        # Python takes an edit within the same second and of the same length for none.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def results(folder: Path, script: str) -> list[float]:
    done = run(folder, script)
    assert done.returncode == 0, done.stderr
    return [float(number) for number in done.stdout.split()]


def result_after_a_killed_process(folder: Path, before: str) -> list[float]:
    """Edit a file, and end the next process between the index of an entry and the entry."""
    assert results(folder, before + INNER) == [11.0]
    (folder / "few" / "factor.py").write_text("FACTOR = 5.0\n")
    assert run(folder, before + ENDING + INNER).returncode == 9
    return results(folder, before + INNER)


def test_code_of_older_sources_is_not_run(tmp_path: Path) -> None:
    assert result_after_a_killed_process(tmp_path, "") == [15.0]


@pytest.mark.control
def test_entries_that_are_not_checked_run_code_of_older_sources(tmp_path: Path) -> None:
    assert result_after_a_killed_process(tmp_path, TRUSTING) == [11.0]


def after_two_processes(folder: Path, before: str) -> subprocess.CompletedProcess[str]:
    """Let two processes write another form of one kernel to one file, and run both in a third."""
    at_once = """
import os, subprocess, sys
from few.kernels import inner, outer
from pymc_dpsplit.kernels.cache import _Files
save, files = _Files._save_data, inner.called._cache._cache_file

def save_last(self, name, data):
    if self is files:  # the other process read the index before it held this entry
        os.unlink(self._index_path)
        subprocess.run([sys.executable, "-c", OTHER], check=True)
    save(self, name, data)

_Files._save_data = save_last
print(outer(1.0))
"""
    done = run(folder, before + f"OTHER = {before + INNER!r}\n" + at_once)
    assert done.returncode == 0, done.stderr
    return run(folder, before + BOTH)


def test_two_processes_may_write_one_file(tmp_path: Path) -> None:
    assert after_two_processes(tmp_path, "").stdout.split() == ["11.0", "22.0"]


@pytest.mark.control
def test_entries_that_are_not_checked_are_of_another_form(tmp_path: Path) -> None:
    done = after_two_processes(tmp_path, TRUSTING)
    assert done.stdout.split() != ["11.0", "22.0"]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:60] + bytes([content[60] ^ 64]) + content[61:],
    "flipped late": lambda content: content[:-900] + bytes([content[-900] ^ 1]) + content[-899:],
}


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_compiled_again(damage: str, kind: str, tmp_path: Path) -> None:
    assert results(tmp_path, BOTH) == [11.0, 22.0]
    files = list((tmp_path / "cache").rglob(f"*.{kind}"))
    assert files
    for file in files:
        file.write_bytes(DAMAGE[damage](file.read_bytes()))
    counted = "print(sum(outer.entry.stats.cache_hits.values()))\n"
    assert results(tmp_path, BOTH + counted) == [11.0, 22.0, 0.0]
    assert results(tmp_path, BOTH + counted) == [11.0, 22.0, 1.0]


NO_FOLDER = "from numba.core.caching import CacheImpl; CacheImpl._locator_classes = []\n"
FULL = """
import errno
from numba.core.caching import IndexDataCacheFile
def _open(self, path):
    raise OSError(errno.ENOSPC, "No space left on device", path)
IndexDataCacheFile._open_for_write = _open
"""


@pytest.mark.parametrize(
    ("before", "warned"),
    [(NO_FOLDER, "there is no folder for them"), (FULL, "No space left on device")],
    ids=["no folder", "full"],
)
def test_kernels_run_without_a_cache(before: str, warned: str, tmp_path: Path) -> None:
    done = run(tmp_path, before + BOTH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["11.0", "22.0"]
    assert done.stderr.count("UserWarning") == 1
    assert warned in done.stderr
    assert "set the environment variable NUMBA_CACHE_DIR" in done.stderr
