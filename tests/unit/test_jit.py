"""The kernel cache must notice an edit in any file, not only in that of the caller."""

import shutil
import subprocess
import sys
from pathlib import Path

import pymc_dpsplit

_SCRIPT = """
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.tiles import new_rows
import numpy as np
import caller
print(caller.caller(np.ones(3)))
"""
_CALLER = """
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.callee import callee

@kernel
def caller(x):
    return callee(x)
"""
_CALLEE = """
from pymc_dpsplit.kernels.jit import kernel

@kernel
def callee(x):
    return x.sum() + {constant}
"""


def run(folder: Path) -> str:
    """Output of the script in a fresh process that imports the copy of the package."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
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
    return done.stdout.strip()


def test_editing_a_callee_recompiles_its_caller(tmp_path: Path) -> None:
    package = tmp_path / "pymc_dpsplit"
    package.mkdir()
    (package / "__init__.py").touch()
    source = Path(pymc_dpsplit.__file__).parent / "kernels"
    shutil.copytree(source, package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "caller.py").write_text(_CALLER)
    callee = package / "kernels" / "callee.py"
    callee.write_text(_CALLEE.format(constant=1))
    assert run(tmp_path) == "4.0"
    cached = list((tmp_path / "cache").rglob("caller.caller*.nbc"))
    assert cached
    callee.write_text(_CALLEE.format(constant=2))
    assert run(tmp_path) == "5.0"
