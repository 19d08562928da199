"""Kernels run as plain Python draw what they draw compiled."""

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from pymc_dpsplit import sampler
from pymc_dpsplit.components import base
from pymc_dpsplit.components.optional import can_overrelax
from pymc_dpsplit.kernels.jit import COMPILES
from tests.support.families import DISCRETE, FAMILIES, component_of, target_of
from tests.support.flat import flat_target
from tests.support.quick import over_compiled, over_families, slow_unless

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("Poisson", "Categorical", "Multinomial", "DiagNormal", "MvNormal", "Product")
_SCRIPT = """
import pickle
import sys
from tests.unit.test_uncompiled import NAMES, iterate
pickle.dump({name: iterate(name) for name in NAMES}, sys.stdout.buffer)
"""


class Chain(NamedTuple):
    """What an iteration takes."""

    target: sampler.Target
    state: sampler.ChainState
    rng: np.random.Generator
    schedule: sampler.Schedule


def begun(name: str, n_obs: int = 40, alpha: float = 1.0) -> Chain:
    """Begin a chain of a family with rows in two groups."""
    family = FAMILIES[name]
    n_features = family.n_features[-1]
    rng = np.random.default_rng(6)
    centres = 4.0 * (np.arange(n_obs) >= n_obs // 2)
    rows = family.rows_from(rng.standard_normal((n_obs, n_features)) + centres[:, None])
    target = target_of(component_of(name, n_features), rows, alpha)
    schedule = sampler.Schedule(3, 2.0, np.arange(0, n_obs, 4))
    return Chain(target, sampler.start(target, rng, 5), rng, schedule)


def iterate(name: str) -> tuple[sampler.ChainState, np.ndarray]:
    """State and acceptance counts after some exact iterations of a family."""
    return sampler.advance("exact", *begun(name))


def run_uncompiled(script: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run a script in a process without numba's compiler."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", script]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, **options)


@pytest.fixture(scope="module")
def uncompiled() -> dict[str, tuple[sampler.ChainState, np.ndarray]]:
    """State and acceptance counts of each family in a process without the compiler."""
    return pickle.loads(run_uncompiled(_SCRIPT, check=True).stdout)


@pytest.mark.compiled
@pytest.mark.parametrize("name", over_compiled(NAMES))
def test_plain_python_draws_what_compiled_kernels_draw(
    name: str, uncompiled: dict[str, tuple[sampler.ChainState, np.ndarray]]
) -> None:
    (labels, stats, *_), acceptance_counts = iterate(name)
    (plain_labels, plain_stats, *_), plain_tally = uncompiled[name]
    np.testing.assert_array_equal(plain_labels, labels)
    np.testing.assert_array_equal(plain_tally, acceptance_counts)
    # Sums of whole numbers are exact; others are rounded once less by fused multiply-adds.
    rtol = 0.0 if name in DISCRETE else 1e-12
    np.testing.assert_allclose(plain_stats, stats, rtol=rtol)


only_uncompiled = pytest.mark.skipif(
    not numba.config.DISABLE_JIT, reason="would compile what no other test does"
)
FORMS = (*sampler.KERNELS, sampler.GREEDY)
# What `kernel="auto"` runs.
_DEFAULTS = ("exact", "collapsed-split-merge", sampler.GREEDY)
over_kernels = pytest.mark.parametrize("form", FORMS)


def assert_sound(form: str, chain: Chain) -> None:
    """Run a kernel and compare the statistics it leaves with those of the labels."""
    target, state, rng, schedule = chain
    for _ in range(3):
        state, _ = sampler.advance(form, target, state, rng, schedule)
    whole = sampler.resume(target, state.labels)
    np.testing.assert_allclose(state.stats, whole.stats, rtol=1e-12, atol=1e-9)


@only_uncompiled
@over_kernels
@pytest.mark.parametrize("name", over_families(FAMILIES))
def test_every_kernel_runs_with_every_family(name: str, form: str) -> None:
    assert_sound(form, begun(name))


@only_uncompiled
@pytest.mark.parametrize("form", slow_unless(_DEFAULTS.__contains__, FORMS))
@pytest.mark.parametrize(("n_obs", "alpha"), [(1, 1.0), (2, 1e-3), (130, 1e2), (1200, 1e-3)])
def test_every_kernel_runs_with_few_rows_and_many_clusters(
    n_obs: int, alpha: float, form: str
) -> None:
    if n_obs == 1200 and form in sampler.SAMPLERS:
        pytest.skip("takes long, and has no strips of rows")
    if alpha == 1e2 and form == "slice":
        pytest.skip("takes long: a density for each of a thousand sticks and every row")
    assert_sound(form, begun("DiagNormal", n_obs, alpha))


@pytest.mark.skipif(COMPILES, reason="views of compiled kernels are not for Python")
def test_python_calls_operations_too() -> None:
    prior, data, _ = flat_target(3, 1.0)
    stats = np.zeros((2, base.stats_size(prior)))
    base.add_groups(prior, data, np.arange(3), np.array([0, 1, 3]), stats)
    assert stats.tolist() == [[1.0], [2.0]]
    assert base.find_bounds(prior, stats, 2) is None
    assert not can_overrelax(prior)
    with pytest.raises(NotImplementedError, match="FlatPrior does not implement fill_excess"):
        base.fill_excess(prior, stats, stats, stats, stats)


def test_component_by_address_asks_for_the_compiler() -> None:
    script = """
import numpy as np
import pymc as pm

import pymc_dpsplit as dps

component = dps.Component(pm.Weibull, alpha=pm.Gamma.dist(2, 1), beta=pm.Gamma.dist(2, 1))
with pm.Model():
    dps.DPMixture("x", 1.0, component, observed=np.arange(1.0, 6.0))
"""
    done = run_uncompiled(script, check=False)
    assert done.returncode != 0
    assert b"dps.Component needs compiled kernels; unset NUMBA_DISABLE_JIT" in done.stderr
