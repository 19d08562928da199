"""Settings of the whole suite, and its random numbers."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import Any

# Before NumPy and matplotlib are imported: one thread each for linear algebra, for tests run
# side by side; figures without a screen.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["MPLBACKEND"] = "Agg"
# What Hypothesis computes once about the source goes to no folder of the tree.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(Path(gettempdir()) / "hypothesis"))

from zlib import crc32  # noqa: E402

import numba  # noqa: E402

# As `pm.sample` compiles models with a mixture, so that no function is compiled in two ways.
_flags = [os.environ.get("PYTENSOR_FLAGS", ""), "numba__fastmath=False"]
if numba.config.DISABLE_JIT:
    # PyTensor's numba linker cannot do without the compiler.
    _flags.append("linker=py")
os.environ["PYTENSOR_FLAGS"] = ",".join(filter(None, _flags))

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from pymc_dpsplit.kernels import beside  # noqa: E402
from tests.support.families import FAMILIES  # noqa: E402
from tests.support.quick import (  # noqa: E402
    COMPILED_FAMILY,
    PLAIN_FILES,
    QUICK_FAMILIES,
    SLOW_FIXTURES,
)

SUITE_SEED = 20261121
# Tests occupy all processors already.
beside.n_beside = lambda: 0
GROUPS = {name: i for i, name in enumerate(dict.fromkeys((*QUICK_FAMILIES[::-1], *FAMILIES)))}

# Cases of a property: the same in every run, and kept nowhere.
_CASES = {"quick": 60, "long": 10_000}
for _profile, _n_cases in _CASES.items():
    settings.register_profile(
        _profile,
        max_examples=_n_cases,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=SUITE_SEED, help="seed of all random tests")


def pytest_report_header(config: pytest.Config) -> str:
    return f"random tests: --seed={config.getoption('seed')}"


# --- lanes --------------------------------------------------------------------------------

PLAIN = {"unit", "property", "estimates"}  # folders


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of which a lane has no items: they need not be imported."""
    expression, is_plain = config.getoption("markexpr"), collection_path.parent.name in PLAIN
    if collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    if expression.startswith("not plain") and is_plain:
        return "mark.compiled" not in collection_path.read_text(encoding="utf-8") or None
    if expression.startswith("plain") and not is_plain:
        return collection_path.stem not in PLAIN_FILES or None
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="needs numba's compiler, or minutes without")
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if SLOW_FIXTURES.get(item.path.stem, set()).intersection(fixtures):
            item.add_marker("slow")
        needs_compiler = item.get_closest_marker("compiled") is not None
        runs_plain = PLAIN.intersection(item.path.parts) or (
            item.path.stem in PLAIN_FILES and not PLAIN_FILES[item.path.stem].intersection(fixtures)
        )
        if runs_plain and not needs_compiler:
            item.add_marker("plain")
        if needs_compiler and numba.config.DISABLE_JIT:
            item.add_marker(skip)
    # Families in the order in which they are listed, those with most kernels first, then files.
    items.sort(key=lambda item: GROUPS.get(group_of(item.nodeid), len(GROUPS)))


# Items of these files that name no family have this one.
FAMILY_OF_FILE = {
    f"tests/exact/test_{name}.py": COMPILED_FAMILY
    for name in ("one_step_invariance", "through_pymc")
}


def group_of(nodeid: str) -> str:
    """Name of what should run in one process: a family, whose kernels it compiles, or a file."""
    file, _, name = nodeid.partition("::")
    words = re.findall("[A-Za-z]+", name.partition("[")[2])
    named = next((word for word in words if word in GROUPS), None)
    return named or FAMILY_OF_FILE.get(file, file)


# pytest-xdist 3.8 does not see its own groups under pytest 9.2: `--dist loadgroup` has no effect.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFamily(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByFamily(config, log)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers of one test: those of no other, and the same whatever else is run."""
    seed = request.config.getoption("seed")
    return np.random.default_rng([seed, crc32(request.node.nodeid.encode())])


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Close the figures of a test: in one process, many tests would open too many."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
