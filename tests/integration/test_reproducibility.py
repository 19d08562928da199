"""One seed gives the same draws, for any number of threads and cores and any start method."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from pytensor.configdefaults import config

import pymc_dpsplit as dps
from pymc_dpsplit.kernels.threads import n_cores, new_pool
from pymc_dpsplit.pymc_hooks import rounding
from pymc_dpsplit.samplers.catalogue import SAMPLERS

ROOT = Path(__file__).resolve().parents[2]
# Strips of a sweep are 4096 observations: with so many there are three to share out.
MANY = 9000
OPTIONS = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
TIMES = ("_seconds", "process_time_diff", "perf_counter_diff", "perf_counter_start")


def rows_of_two_clusters(n_obs):
    rng = np.random.default_rng(11)
    return rng.normal(size=(n_obs, 2)) + np.where(rng.random(n_obs) < 0.3, 3.0, -3.0)[:, None]


def model_of(n_obs, alpha=None):
    rows = rows_of_two_clusters(n_obs)
    with pm.Model() as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        dps.DPMixture("x", concentration, dps.MvNormal.from_data(rows), observed=rows)
    return model


def sampled(model, **arguments):
    defaults = {"draws": 10, "tune": 10, "chains": 2, "cores": 1, "random_seed": 4}
    with model:
        return pm.sample(**{**defaults, **OPTIONS, **arguments})


def differences(one, other):
    """Names of the variables and statistics that are not identical, times left out."""
    found = []
    for group in ("posterior", "sample_stats"):
        a, b = one[group].to_dataset(), other[group].to_dataset()
        assert list(a.data_vars) == list(b.data_vars)
        names = [name for name in a.data_vars if not name.endswith(TIMES)]
        found += [name for name in names if not a[name].equals(b[name])]
    return found


@pytest.fixture(scope="module")
def small():
    return model_of(40)


@pytest.fixture(scope="module")
def small_draws(small):
    return sampled(small)


def test_a_seed_gives_the_same_draws_again(small, small_draws):
    assert differences(small_draws, sampled(small)) == []
    assert differences(small_draws, sampled(model_of(40))) == []


@pytest.mark.control
def test_another_seed_gives_other_draws(small, small_draws):
    found = differences(small_draws, sampled(small, random_seed=5))
    assert {"alpha", "x_new_weight", "x_weights", "x_mu", "x_cov", "x_log_joint"} <= set(found)


@pytest.mark.control
def test_chains_differ(small_draws):
    mu = small_draws["posterior"]["x_mu"].to_numpy()
    assert not np.array_equal(mu[0], mu[1])


@pytest.mark.parametrize(
    "start", ["fork", "forkserver", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_draws_do_not_depend_on_processes(start, small, small_draws):
    found = differences(small_draws, sampled(small, cores=2, mp_ctx=start))
    assert found == []


def test_draws_do_not_depend_on_cores_with_the_collapsed_kernel(small):
    options = {"dpsplit": {"kernel": "collapsed"}}
    one, two = (sampled(small, cores=cores, **options) for cores in (1, 2))
    assert differences(one, two) == []


@pytest.mark.parametrize(("n_obs", "alpha"), [(40, 1.0), (MANY, 1.0), (MANY, None)])
def test_draws_do_not_depend_on_threads(n_obs, alpha):
    model = model_of(n_obs, alpha)
    one, two, four = (sampled(model, dpsplit={"threads": n}) for n in (1, 2, 4))
    assert differences(one, two) == []
    assert differences(one, four) == []


# Exact samplers of the literature, and options that make others exact.
PUBLISHED = [(name, {}) for name, row in SAMPLERS.items() if row.is_exact]
PUBLISHED += [
    ("chang-fisher", {"repaired": True}),
    ("av-parallel", {"shares": (0.6, 0.3, 0.1)}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "options"), PUBLISHED, ids=str)
def test_draws_of_published_samplers_do_not_depend_on_threads_and_processes(kernel, options, small):
    given = {"kernel": kernel, **options}
    one = sampled(small, dpsplit=given)
    assert differences(one, sampled(small, dpsplit={**given, "threads": 2})) == []
    assert differences(one, sampled(small, cores=2, dpsplit=given)) == []
    assert differences(one, sampled(small, dpsplit=given, random_seed=5)) != []


@pytest.mark.parametrize(
    "start", ["fork", "forkserver", pytest.param("spawn", marks=pytest.mark.slow)]
)
def test_threads_and_processes_together(start):
    model = model_of(MANY, alpha=1.0)
    one = sampled(model)
    # Threads of a chain in this process must not get in the way of the processes that follow.
    threads = {"dpsplit": {"threads": 2}}
    assert differences(one, sampled(model, **threads)) == []
    assert differences(one, sampled(model, cores=2, mp_ctx=start, **threads)) == []


def test_draws_do_not_depend_on_what_was_sampled_before(small, small_draws):
    sampled(model_of(25, alpha=3.0), random_seed=99)
    np.random.default_rng().random()
    assert differences(small_draws, sampled(small)) == []


# --- mixtures inside larger models --------------------------------------------------------


def latent():
    index = np.repeat(np.arange(10), 2)
    with pm.Model() as model:
        b = dps.DPMixture("b", pm.Gamma("alpha", 2, 4), dps.Normal(0.0, 0.1, 2.0, 1.0), shape=10)
        pm.Normal("y", b[index], 1.0, observed=rows_of_two_clusters(20)[:, 0])
    return model


def errors():
    rows = rows_of_two_clusters(30)
    with pm.Model() as model:
        observed = rows[:, 0] - rows[:, 1] * pm.Normal("slope")
        dps.DPMixture(
            "x", pm.Gamma("alpha", 2, 4), dps.Normal.from_data(rows[:, 0]), observed=observed
        )
    return model


def incomplete():
    rows = rows_of_two_clusters(30)
    rows[4, 1] = rows[7] = np.nan
    with pm.Model() as model:
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), dps.MvNormal.from_data(rows), observed=rows)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("build", [latent, errors, incomplete], ids=lambda build: build.__name__)
def test_larger_models_give_the_same_draws(build):
    model = build()
    draws = sampled(model)
    assert differences(draws, sampled(build())) == []
    assert differences(draws, sampled(model, dpsplit={"threads": 2})) == []
    for start in ("fork", "forkserver"):
        assert differences(draws, sampled(model, cores=2, mp_ctx=start)) == []


@pytest.mark.slow
@pytest.mark.parametrize("build", [latent, errors, incomplete], ids=lambda build: build.__name__)
def test_larger_models_give_the_same_draws_in_spawned_processes(build):
    model = build()
    assert differences(sampled(model), sampled(model, cores=2, mp_ctx="spawn")) == []


@pytest.mark.slow
@pytest.mark.control
def test_larger_models_differ_by_seed():
    model = latent()
    found = differences(sampled(model), sampled(model, random_seed=5))
    assert {"b", "b_labels", "b_mu", "alpha"} <= set(found)


def test_a_pool_has_no_more_threads_than_cores() -> None:
    assert new_pool(1) is None
    pool = new_pool(10_000)
    assert (pool._max_workers if pool else 1) == n_cores()


FIRST_RUN = """
import sys, contextlib, hashlib
from pymc_dpsplit.pymc_hooks import rounding
if "with fastmath" in sys.argv:
    rounding._without_fastmath = contextlib.nullcontext
from tests.integration.test_checkpoint import model_of
from tests.integration.test_reproducibility import sampled
posterior = sampled(model_of(), tune=60, draws=30)["posterior"].to_dataset()
for name in sorted(posterior.data_vars):
    print(name, hashlib.sha256(posterior[name].values.tobytes()).hexdigest())
"""


def draws_of_a_new_process(folder, *arguments):
    """Digests of draws by NUTS and by our step, with the caches in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_RUN, *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "NUMBA_CACHE_DIR": str(folder / "numba"),
            "PYTENSOR_FLAGS": f"base_compiledir={folder / ' '.join(('pytensor', *arguments))}",
        },
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_first_run_on_a_machine_gives_the_same_draws_as_the_next(tmp_path):
    """A process that compiles everything, and one that loads everything from the caches."""
    first = draws_of_a_new_process(tmp_path)
    assert len(first) > 5
    assert draws_of_a_new_process(tmp_path) == first


@pytest.mark.slow
def test_first_run_differs_if_pytensor_compiles_with_fastmath(tmp_path):
    """The control: functions that were just compiled round otherwise than those loaded."""
    first = draws_of_a_new_process(tmp_path, "with fastmath")
    assert draws_of_a_new_process(tmp_path, "with fastmath") != first


def test_runs_of_two_threads_leave_the_configuration_as_it_was(monkeypatch):
    """Runs that overlap: none gets `fastmath` back before it ends, and the last puts it back."""
    monkeypatch.setenv("PYTENSOR_FLAGS", "cxx=")
    flags = "cxx=,numba__fastmath=False"
    with config.change_flags(numba__fastmath=True):
        for _ in range(3):
            first, second = rounding._without_fastmath(), rounding._without_fastmath()
            for begin, end in [(first, None), (second, first), (None, second)]:
                if begin is not None:
                    begin.__enter__()
                assert (config.numba__fastmath, os.environ["PYTENSOR_FLAGS"]) == (False, flags)
                if end is not None:
                    end.__exit__(None, None, None)
            assert (config.numba__fastmath, os.environ["PYTENSOR_FLAGS"]) == (True, "cxx=")
    monkeypatch.delenv("PYTENSOR_FLAGS")
    with rounding._without_fastmath():
        assert os.environ["PYTENSOR_FLAGS"] == "numba__fastmath=False"
    assert "PYTENSOR_FLAGS" not in os.environ
