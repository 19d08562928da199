"""The import rule: every unit of the package may import the units below it, and no other.

A unit is a folder of the package or a module at its top.  The walk reads the sources, so an
import inside a function or under `TYPE_CHECKING` counts like any other.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "pymc_dpsplit"
ROOT = Path(__file__).resolve().parents[2]

_PARTS = {"data", "kernels", "components", "moves"}
_CORE = _PARTS | {"samplers", "sampler", "variables"}
_FACES = {
    "checkpoint",
    "prior",
    "finite",
    "pymc_hooks",
    "mixture",
    "step",
    "estimates",
    "posterior",
    "topic_model",
    "hierarchical_model",
}
_ALL = _CORE | _FACES | {"pymc_component", "scikit_learn", "demo", "cli", PACKAGE}

# Each unit with the other units it may import.  The package itself, that is its public names,
# is a unit too.
MAY_IMPORT: dict[str, set[str]] = {
    "data": set(),
    "kernels": set(),
    "components": {"data", "kernels"},
    "moves": {"components", "kernels"},
    "samplers": {"components", "kernels", "moves"},
    "sampler": _PARTS | {"samplers"},
    "topics": _PARTS - {"components"},
    "hierarchical": _PARTS | {"samplers"},
    "tuning": set(),
    "variables": _PARTS,
    "pymc_component": _PARTS,
    "pymc_hooks": {"variables"},
    "wrapped_functions": {"pymc_hooks"},
    "checkpoint": set(),
    "prior": set(),
    "finite": {"components", "variables"},
    "mixture": _CORE,
    "step": _CORE | {"pymc_hooks", "tuning"},
    "topic_model": _CORE - {"sampler"} | {"topics", "pymc_hooks", "tuning"},
    "hierarchical_model": _CORE - {"sampler"} | {"hierarchical", "mixture", "tuning"},
    "estimates": _CORE
    # They read a model like the step, and neither knows the other.
    | {"hierarchical", "hierarchical_model", "topic_model"},
    "posterior": _CORE
    | {"pymc_hooks", "mixture", "hierarchical", "hierarchical_model", "topic_model"}
    | {"finite", "prior"},
    "scikit_learn": _CORE | {"mixture", "posterior"},
    PACKAGE: _CORE | _FACES | {"pymc_component", "scikit_learn", "wrapped_functions"},
    "demo": _ALL - {"cli"},
    "cli": _ALL,
    "__main__": _ALL,
}

# Each room of the unit `posterior` with the other rooms it may import.
ROOMS: dict[str, set[str]] = {
    "trace": set(),
    "partitions": {"trace"},
    "diagnostics": {"trace"},
    "prediction": {"trace", "partitions"},
    "description": {"trace", "partitions"},
    "density": {"trace"},
    "plots": {"trace", "partitions", "diagnostics", "description", "density"},
    "comparison": {"trace", "diagnostics", "prediction"},
    "extension": {"trace"},
}

_NUMERICS = {"numpy", "numba", "scipy"}
_FACE = _NUMERICS | {"pymc", "pytensor", "xarray"}
_ARVIZ = {"arviz", "arviz_base", "arviz_plots", "arviz_stats"}

# Each unit with the packages it may import beside the standard library.
THIRD_PARTY: dict[str, set[str]] = {
    "data": {"numpy"},
    "kernels": {"numpy", "numba", "llvmlite"},
    "components": _NUMERICS,
    "moves": _NUMERICS,
    "samplers": {"numpy"},
    "sampler": _NUMERICS,
    "topics": {"numpy", "scipy"},
    "hierarchical": {"numpy"},
    "tuning": {"numpy"} | _ARVIZ,
    "variables": _FACE,
    "pymc_component": _NUMERICS | {"pymc", "pytensor"},
    "pymc_hooks": _FACE | _ARVIZ,
    "checkpoint": {"numpy", "pymc", "pytensor"},
    "prior": {"numpy", "scipy", "xarray"},
    "finite": {"numpy", "pymc", "pytensor"},
    "mixture": _FACE | _ARVIZ,
    "topic_model": _FACE - {"numba"},
    "hierarchical_model": _FACE - {"numba"},
    "step": _FACE | _ARVIZ | {"rich"},  # rich lays out the columns of the progress bar
    "estimates": _NUMERICS | {"pymc"},
    "posterior": _FACE | _ARVIZ | {"matplotlib"},
    "scikit_learn": {"numpy", "pymc", "xarray", "sklearn"},
    "wrapped_functions": {"pymc"},
    PACKAGE: set(),
    "demo": _FACE | _ARVIZ | {"matplotlib"},
    "cli": set(),
    "__main__": set(),
}

UNINFORMATIVE = {"utils", "util", "core", "common", "misc", "helpers"}


class Import(NamedTuple):
    """One imported name: the module it comes from, the name, and the dots before it."""

    line: int
    module: str
    name: str
    dots: int


def imports_of(tree: ast.Module) -> Iterator[Import]:
    """Every import of a module, wherever in it it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name, "", 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield Import(node.lineno, node.module or "", alias.name, node.level)


def unit_of(path: Path, root: Path) -> str:
    """The unit a source file belongs to; `root` is the folder of the package."""
    first = path.relative_to(root).parts[0]
    return PACKAGE if first == "__init__.py" else first.removesuffix(".py")


def unit_imported(item: Import, units: set[str]) -> str:
    """The unit of the package that an absolute import of the package reaches."""
    dotted = [*item.module.split("."), item.name]
    return dotted[1] if dotted[1] in units else PACKAGE


def fault_of(item: Import, unit: str, units: set[str]) -> str | None:
    """What is wrong with one import made in `unit`, or None."""
    if item.dots:
        return "relative import"
    top = item.module.split(".")[0]
    if top == PACKAGE:
        target = unit_imported(item, units)
        allowed = target == unit or target in MAY_IMPORT[unit]
        return None if allowed else f"{unit} may not import {target}"
    if top in sys.stdlib_module_names or top in THIRD_PARTY[unit]:
        return None
    return f"{unit} may not import {top}"


def violations(root: Path) -> list[str]:
    """Every breach of the rule in the package whose folder is `root`."""
    sources = sorted(root.rglob("*.py"))
    units = {unit_of(path, root) for path in sources}
    found = [f"{unit}: no row in the table" for unit in sorted(units - MAY_IMPORT.keys())]
    units |= MAY_IMPORT.keys()
    for path in sources:
        where = path.relative_to(root).as_posix()
        unit = unit_of(path, root)
        names = {*path.relative_to(root).parent.parts, path.stem}
        found += [f"{where}: uninformative name" for _ in names & UNINFORMATIVE]
        if unit not in MAY_IMPORT:
            continue
        for item in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            if fault := fault_of(item, unit, units):
                found.append(f"{where}:{item.line}: {fault}")
    return found


def room_violations(folder: Path) -> list[str]:
    """Every import of one room by another that is not allowed; `folder` is that of the unit."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        where = path.relative_to(folder)
        room = where.parts[0]
        if room == "__init__.py":
            continue
        if room not in ROOMS:
            found.append(f"{where.as_posix()}: no row in the table of rooms")
            continue
        for item in imports_of(ast.parse(path.read_text(encoding="utf-8"))):
            _, unit, target, *_ = [*item.module.split("."), item.name, "", ""]
            if unit == folder.name and target not in ROOMS[room] | {room}:
                found.append(f"{where.as_posix()}:{item.line}: {room} may not import {target}")
    return found


def test_rooms_import_one_way():
    assert room_violations(ROOT / PACKAGE / "posterior") == []


@pytest.mark.control
@pytest.mark.parametrize(
    ("file", "line", "fault"),
    [
        ("trace/labels.py", "from {}.plots.axes import axes_or_new", "trace may not import plots"),
        ("plots/axes.py", "from {} import prediction", "plots may not import prediction"),
        ("extras/new.py", "", "no row in the table of rooms"),
        ("stray.py", "", "no row in the table of rooms"),
    ],
)
def test_breach_between_rooms_is_reported(tmp_path, file, line, fault):
    files = {
        "__init__.py": "",
        "trace/groups.py": "import xarray as xr",
        "plots/draw.py": f"from {PACKAGE}.posterior.trace.groups import group_of",
        file: line.format(f"{PACKAGE}.posterior"),
    }
    found = room_violations(write_package(tmp_path / "posterior", files))
    assert len(found) == 1
    assert fault in found[0]


def test_imports_run_one_way():
    assert (ROOT / PACKAGE / "__init__.py").is_file()
    assert violations(ROOT / PACKAGE) == []


# Each folder of moves with the other folders it may import; all may import what lies above them.
MOVES_MAY_IMPORT: dict[str, set[str]] = {
    "sweep": set(),
    "split_merge": set(),
    "collapsed": {"sweep", "split_merge"},
    "nonconjugate": {"sweep"},
}


def folders_imported(path: Path) -> set[str]:
    """Folders of moves that a module imports from, other than its own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    dotted = (item.module.split(".") for item in imports_of(tree))
    found = {parts[2] for parts in dotted if parts[:2] == [PACKAGE, "moves"] and len(parts) > 2}
    return found & MOVES_MAY_IMPORT.keys() - {path.parent.name}


def test_folders_of_moves_import_one_way():
    folder = ROOT / PACKAGE / "moves"
    assert {path.name for path in folder.iterdir() if (path / "__init__.py").is_file()} == set(
        MOVES_MAY_IMPORT
    )
    for name, allowed in MOVES_MAY_IMPORT.items():
        for path in (folder / name).glob("*.py"):
            assert folders_imported(path) <= allowed, path
    assert folders_imported(folder / "conjugate.py") >= {"sweep", "split_merge", "collapsed"}


@pytest.mark.parametrize("table", [MAY_IMPORT, ROOMS], ids=["units", "rooms"])
def test_table_has_no_cycle(table):
    # Peeling off what imports nothing left must exhaust the table.
    left = dict(table)
    while left:
        lowest = [unit for unit, below in left.items() if not (below - {unit}) & left.keys()]
        assert lowest, f"cycle among {sorted(left)}"
        for unit in lowest:
            del left[unit]


WELL_FORMED = {
    "__init__.py": f"from {PACKAGE}.mixture import DPMixture\n",
    "__main__.py": f"from {PACKAGE}.cli import main\n",
    "cli.py": f"import argparse\nfrom {PACKAGE} import __version__, demo\n",
    "demo.py": f"import matplotlib.pyplot as plt\nimport pymc as pm\nimport {PACKAGE} as dps\n",
    "mixture.py": f"import pymc as pm\nfrom {PACKAGE} import variables\n",
    "variables.py": f"import pytensor.tensor as pt\nfrom {PACKAGE}.components.base import Prior\n",
    "step.py": f"from {PACKAGE}.sampler import advance\n",
    "sampler.py": f"from {PACKAGE}.moves.sweep import sweep\n",
    "moves/__init__.py": "",
    "moves/sweep.py": f"from {PACKAGE}.components import base\nfrom {PACKAGE}.kernels import jit\n",
    "components/__init__.py": "",
    "components/base.py": f"import scipy.stats\nfrom {PACKAGE}.kernels.jit import kernel\n",
    "kernels/__init__.py": "",
    "kernels/jit.py": "import math\nimport numba\nimport numpy as np\n",
}


def write_package(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def test_third_parties_are_the_declared_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w-]", entry)[0] for entry in project["dependencies"]}
    imported = set().union(*THIRD_PARTY.values())
    # ArviZ brings its parts; h5netcdf is what xarray writes traces with, imported by no one here;
    # scikit-learn is optional.
    assert imported - _ARVIZ - {"sklearn"} | {"arviz"} == declared - {"h5netcdf"}


def test_well_formed_package_passes(tmp_path):
    assert violations(write_package(tmp_path, WELL_FORMED)) == []


BREACHES = {
    "upward": ("kernels/jit.py", f"from {PACKAGE}.moves.sweep import sweep", "import moves"),
    "skips a level upward": ("components/base.py", f"import {PACKAGE}.mixture", "import mixture"),
    "submodule by name": ("moves/sweep.py", f"from {PACKAGE} import sampler", "import sampler"),
    "between siblings": ("step.py", f"from {PACKAGE}.mixture import DPMixture", "import mixture"),
    "between the cores": ("sampler.py", f"import {PACKAGE}.variables", "import variables"),
    "public names from below": ("mixture.py", f"from {PACKAGE} import DPMixture", "import pymc_"),
    "inside a function": ("sampler.py", "def late():\n    import pymc", "import pymc"),
    "PyMC in a family": ("components/base.py", "import pymc as pm", "import pymc"),
    "SciPy in a kernel": ("kernels/jit.py", "from scipy import special", "import scipy"),
    "plots in the step": ("step.py", "import matplotlib.pyplot as plt", "import matplotlib"),
    "undeclared dependency": ("demo.py", "import seaborn", "import seaborn"),
    "relative": ("moves/sweep.py", "from . import start", "relative import"),
    "relative, upward": ("moves/sweep.py", "from ..step import x", "relative import"),
    "uninformative module": ("moves/utils.py", "", "uninformative name"),
    "uninformative folder": ("kernels/common/jit.py", "", "uninformative name"),
    "unit without a row": ("extras.py", "", "no row in the table"),
}


@pytest.mark.control
@pytest.mark.parametrize("breach", BREACHES)
def test_breach_is_reported(tmp_path, breach):
    file, line, fault = BREACHES[breach]
    broken = WELL_FORMED | {file: WELL_FORMED.get(file, "") + line + "\n"}
    found = violations(write_package(tmp_path, broken))
    assert len(found) == 1
    assert fault in found[0]
