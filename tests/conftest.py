"""Settings of the whole suite, and its random numbers."""

import os

# Before NumPy and matplotlib are imported: one thread each for linear algebra, for tests run
# side by side; figures without a screen.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ["MPLBACKEND"] = "Agg"

from zlib import crc32  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402

SUITE_SEED = 20261121


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=SUITE_SEED, help="seed of all random tests")


def pytest_report_header(config: pytest.Config) -> str:
    return f"random tests: --seed={config.getoption('seed')}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers of one test: those of no other, and the same whatever else is run."""
    seed = request.config.getoption("seed")
    return np.random.default_rng([seed, crc32(request.node.nodeid.encode())])
