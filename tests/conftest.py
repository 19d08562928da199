"""Settings of the whole suite, and its random numbers."""

import os
import re
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
from tests.support.quick import QUICK_FAMILIES, SLOW_FIXTURES  # noqa: E402

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

PLAIN = {"unit", "property"}  # folders


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="needs numba's compiler, or minutes without")
    for item in items:
        if SLOW_FIXTURES.get(item.path.stem, set()).intersection(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
        needs_compiler = item.get_closest_marker("compiled") is not None
        if PLAIN.intersection(item.path.parts) and not needs_compiler:
            item.add_marker("plain")
        if needs_compiler and numba.config.DISABLE_JIT:
            item.add_marker(skip)
    # Families in the order in which they are listed, those with most kernels first, then files.
    items.sort(key=lambda item: GROUPS.get(group_of(item.nodeid), len(GROUPS)))


def group_of(nodeid: str) -> str:
    """Name of what should run in one process: a family, whose kernels it compiles, or a file."""
    file, _, name = nodeid.partition("::")
    words = re.findall("[A-Za-z]+", name.partition("[")[2])
    return next((word for word in words if word in GROUPS), file)


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
