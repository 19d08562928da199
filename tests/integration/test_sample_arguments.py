"""The arguments of `pm.sample`, one by one, on a model with a mixture."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from pymc.backends import NDArray

import pymc_dpsplit as dps
from tests.support.quick import slow_unless

ROOT = Path(__file__).resolve().parents[2]
N_OBS, TUNE, DRAWS = 20, 6, 8
# Five groups so far apart that no cluster holds two of them for long.
GROUPS = np.repeat([-200.0, -100.0, 0.0, 100.0, 200.0], 4)
ROWS = np.random.default_rng(0).normal(size=(N_OBS, 2)) + GROUPS[:, None]
QUIET = {"progressbar": False, "quiet": True, "compute_convergence_checks": False}
BY_CLUSTER = ["x_weights", "x_mu", "x_sigma"]
NAMES = {"alpha", "x_n_clusters", "x_new_weight", *BY_CLUSTER}


def model_of(alpha=None):
    with pm.Model(coords={"obs_id": range(N_OBS), "feature": ["a", "b"]}) as model:
        concentration = pm.Gamma("alpha", 2, 4) if alpha is None else alpha
        component = dps.DiagNormal.from_data(ROWS)
        dps.DPMixture("x", concentration, component, observed=ROWS, dims=("obs_id", "feature"))
    return model


@pytest.fixture(scope="module")
def model():
    return model_of()


@pytest.fixture(scope="module")
def sample(model):
    def sampled(model=model, **arguments):
        defaults = {"draws": DRAWS, "tune": TUNE, "chains": 2, "cores": 1, "random_seed": 1}
        with model:
            return pm.sample(**{**defaults, **QUIET, **arguments})

    return sampled


@pytest.fixture(scope="module")
def expected(sample):
    """What the defaults of these tests give."""
    return sample()["posterior"].to_dataset()


def differing(posterior, expected):
    """Variables of a posterior that are not the first draws of another."""
    found = []
    for name, values in posterior.items():
        first = expected[name].isel(draw=slice(values.sizes["draw"]))
        if not np.array_equal(values, first.sel(chain=values["chain"]), equal_nan=True):
            found.append(name)
    return found


# --- how many -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("chains", [1, 2])
@pytest.mark.parametrize(("draws", "tune"), [(3, 0), (3, 1), (2, 5)])
def test_counts_of_draws_and_chains(draws, tune, chains, sample):
    idata = sample(draws=draws, tune=tune, chains=chains)
    assert set(idata["posterior"].data_vars) == NAMES
    for group in ("posterior", "sample_stats"):
        assert idata[group].sizes["draw"] == draws
        assert idata[group].sizes["chain"] == chains
    assert idata["posterior"].attrs["tuning_steps"] == tune
    assert (idata["posterior"]["x_n_clusters"] >= 1).all()


def test_one_draw_and_no_tuning(sample):
    posterior = sample(draws=1, tune=0, chains=1)["posterior"]
    assert posterior["x_mu"].shape == (1, 1, N_OBS, 2)
    total = posterior["x_weights"].sum() + posterior["x_new_weight"]
    np.testing.assert_allclose(total, 1.0)


def test_fewer_chains_are_another_spawn_of_the_seed(sample, expected):
    """As PyMC has it: chain i of a seed is the same for any number of chains."""
    assert differing(sample(chains=1)["posterior"], expected) == []


def test_no_draws_is_refused_by_pymc_as_ever(sample):
    with pytest.raises(ValueError, match="Not enough samples"):
        sample(draws=0)
    with pytest.raises(ValueError, match="`draws` must be greater than 0"):
        sample(draws=0, tune=0)


def test_tuning_draws_are_kept_on_request(sample, expected):
    idata = sample(discard_tuned_samples=False)
    assert differing(idata["posterior"], expected) == []
    for group in ("posterior", "sample_stats"):
        warmup = idata[f"warmup_{group}"]
        assert set(warmup.data_vars) == set(idata[group].data_vars)
        assert warmup.sizes["draw"] == TUNE
    only = sample(discard_tuned_samples=False, draws=0)
    assert "posterior" not in only.children
    assert only["warmup_posterior"]["x_mu"].shape == (2, TUNE, N_OBS, 2)


# --- seeds and processes ------------------------------------------------------------------


def test_seeds_of_every_kind(sample, expected):
    assert differing(sample(random_seed=np.random.default_rng(1))["posterior"], expected) == []
    listed = sample(random_seed=[1, 2])["posterior"].to_dataset()
    assert differing(sample(random_seed=[1, 2])["posterior"], listed) == []
    assert "x_mu" in differing(listed, expected)


@pytest.mark.parametrize("blas_cores", slow_unless(["auto"].__contains__, [None, 1, "auto"]))
def test_cores_and_blas_cores(blas_cores, sample, expected):
    assert differing(sample(cores=2, blas_cores=blas_cores)["posterior"], expected) == []


@pytest.mark.parametrize("progressbar", [True, False])
def test_progress_bar_and_quiet(progressbar, sample, expected, capsys):
    idata = sample(progressbar=progressbar, quiet=not progressbar)
    assert differing(idata["posterior"], expected) == []
    assert ("K[x]" in capsys.readouterr().out) == progressbar


# --- where chains start -------------------------------------------------------------------


@pytest.mark.slow
def test_initial_values_of_other_variables(sample):
    """With a step size that hardly moves it, the first draw shows where a variable began."""
    with model_of(0.5) as model:
        pm.Gamma("other", 2, 4)

    def first(initvals):
        still = {"draws": 3, "tune": 0, "chains": 3, "nuts": {"step_scale": 1e-9}}
        return sample(model, initvals=initvals, **still)["posterior"]["other"].to_numpy()[:, 0]

    np.testing.assert_allclose(first({"other": 7.0}), 7.0, rtol=1e-6)
    own = first([{"other": 7.0}, {"other": 0.1}, None])
    np.testing.assert_allclose(own, [7.0, 0.1, 0.5], rtol=1e-6)  # 0.5 is the mean of the prior


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_number_of_starting_clusters(cores, sample):
    """With hardly any alpha one iteration without attempts makes no new ones."""
    model = model_of(1e-9)
    frugal = {"iterations": 1, "attempts": 0}

    def first(initvals):
        options = {"draws": 3, "tune": 0, "chains": 3, "cores": cores, "dpsplit": frugal}
        idata = sample(model, initvals=initvals, **options)
        return idata["posterior"]["x_n_clusters"].to_numpy()[:, 0]

    np.testing.assert_array_equal(first({"x_n_clusters": 1}), 1)
    assert (first({"x_n_clusters": N_OBS}) >= 5).all()
    own = first([{"x_n_clusters": 1}, {"x_n_clusters": N_OBS}, {"x_n_clusters": 1}])
    assert own[0] == own[2] == 1
    assert own[1] >= 5


def test_initial_value_of_nothing(sample):
    with pytest.raises(KeyError, match="nope"):
        sample(initvals={"nope": 1.0})


# --- what is recorded ---------------------------------------------------------------------


@pytest.mark.parametrize("names", [["alpha"], ["x_n_clusters", "alpha"], ["x_mu"]])
def test_names_of_variables(names, sample, expected):
    checked = {"compute_convergence_checks": True, "draws": DRAWS}
    posterior = sample(var_names=names, **checked)["posterior"]
    assert set(posterior.data_vars) == set(names)
    assert differing(posterior, expected) == []


def test_multitrace(sample, expected):
    with pytest.warns(FutureWarning, match="return_inferencedata"):
        trace = sample(return_inferencedata=False)
    assert len(trace) == DRAWS
    for name in NAMES:
        chains = trace.get_values(name, combine=False)
        np.testing.assert_array_equal(chains, expected[name])
    np.testing.assert_allclose(np.exp(trace["x_new_weight_log__"]), trace["x_new_weight"])
    assert trace.get_sampler_stats("x_occupied").tolist() == trace["x_n_clusters"].tolist()


@pytest.mark.slow
def test_options_of_the_conversion(sample, expected):
    idata = sample(idata_kwargs={"include_transformed": True})
    assert set(idata["posterior"].data_vars) == NAMES | {"alpha_log__", "x_new_weight_log__"}
    assert differing(idata["posterior"].to_dataset()[list(NAMES)], expected) == []


def test_trace_of_ones_own(sample, model, expected):
    """PyMC hands one such object to every chain: so one chain."""
    trace = NDArray(model=model)
    idata = sample(trace=trace, chains=1)
    assert differing(idata["posterior"], expected) == []
    np.testing.assert_array_equal(trace.get_values("x_mu", burn=TUNE), expected["x_mu"][0])


@pytest.fixture(scope="module")
def with_offset():
    """The model with one variable that is left to NUTS."""
    model = model_of()
    with model:
        pm.Normal("offset", 0.0, 1.0)
    return model


@pytest.mark.slow
def test_warnings_of_steps_are_kept_on_request(sample, with_offset):
    idata, plain = (sample(with_offset, keep_warning_stat=keeps) for keeps in (True, False))
    assert "warning" in idata["sample_stats"]
    assert "warning" not in plain["sample_stats"]
    assert differing(idata["posterior"], plain["posterior"]) == []


# --- steps and their options --------------------------------------------------------------


def step_given(which, model):
    owned = [rv for rv in model.free_RVs if rv.name.startswith("x_")]
    ours, nuts = dps.DPSplitMerge(owned), pm.NUTS([model["alpha"]])
    return {"ours": ours, "listed": [ours], "nuts": nuts, "both": [nuts, ours]}[which]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["ours", "listed", "nuts", "both"])
def test_steps_that_are_given_beside_those_assigned(which, sample, model):
    with model:
        idata = sample(step=step_given(which, model))
    assert set(idata["posterior"].data_vars) == NAMES
    stats = set(idata["sample_stats"].data_vars)
    assert "x_occupied" in stats
    assert ("step_size" in stats) == (which in {"nuts", "both"})
    assert (idata["posterior"]["alpha"].std("draw") > 0).all()


def test_slice_sampler_beside_the_mixture(sample, model):
    with model:
        idata = sample(step=[pm.Slice([model["alpha"]])])
    assert "step_size" not in idata["sample_stats"]
    assert "x_occupied" in idata["sample_stats"]
    assert len(np.unique(idata["posterior"]["alpha"])) == 2 * DRAWS


@pytest.mark.slow
def test_options_of_nuts(sample):
    direct = sample(target_accept=0.99)["posterior"].to_dataset()
    nested = sample(nuts={"target_accept": 0.99})["posterior"]
    assert differing(nested, direct) == []


@pytest.mark.slow
@pytest.mark.control
def test_another_option_of_nuts_gives_other_draws(sample, with_offset):
    plain, other = (sample(with_offset, **given) for given in ({}, {"target_accept": 0.99}))
    assert "offset" in differing(other["posterior"], plain["posterior"])


WRONG = {
    "misspelt step": ({"dpslit": {"threads": 1}}, "'dpslit'"),
    "option of the step at the top": ({"kernel": "exact"}, "'kernel'"),
    "misspelt option": ({"dpsplit": {"thread": 1}}, "'thread' is not an option of dpsplit"),
    "number in place of options": ({"dpsplit": 5}, "dpsplit=5 is not a dict of options; give"),
    "nothing in place of options": ({"dpsplit": None}, "dpsplit=None is not a dict of options"),
    "list of options": ({"dpsplit": [("threads", 1)]}, "dpsplit=.* is not a dict of options"),
    "model among options": ({"dpsplit": {"model": 1}}, "'model' is not an option of dpsplit"),
    "vars among options": ({"dpsplit": {"vars": []}}, "'vars' is not an option of dpsplit"),
    "rng among options": ({"dpsplit": {"rng": 1}}, "'rng' is not an option of dpsplit"),
    "start among options": ({"dpsplit": {"initial_point": {}}}, "'initial_point' is not an option"),
    "key that is no name": ({"dpsplit": {5: 1}}, "5 is not an option of dpsplit"),
    "ragged labels": ({"dpsplit": {"start_labels": [[1], [2, 3]]}}, "is not a vector of integers"),
    "labels of a Dataset": (
        {"dpsplit": {"start_labels": xr.Dataset({"a": ("i", [1])})}},
        "start_labels is not a vector of integers",
    ),
    "attempts of 400 digits": (
        {"dpsplit": {"attempts": 10**400}},
        "attempts=<int> is out of range",
    ),
    "class in place of a step": ({"step": dps.DPSplitMerge}, "Step should be a Step"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_keyword_is_named(fault, sample):
    arguments, message = WRONG[fault]
    with pytest.raises(ValueError, match=message):
        sample(**arguments)


@pytest.mark.parametrize("given", [3, "x", [3]])
def test_step_of_what_is_no_variable(given, model):
    with pytest.raises(ValueError, match=r"vars=.* are not variables; give those of the model"):
        dps.DPSplitMerge(given, model=model)


WRONG_OF_A_STEP = {
    "rng": ({"rng": "1"}, "^rng='1' is no seed; give"),
    "rng of several steps": ({"rng": -1, "vars": []}, "^rng=-1 is no seed; give"),
    "options of compilation": ({"compile_kwargs": 3}, "^compile_kwargs=3 is not a dict of options"),
    "start": ({"initial_point": 3}, "^initial_point=3 is not a dict of values; give model.initial"),
    "empty start": ({"initial_point": {}}, "^initial_point has no value of alpha_log__; give"),
}


@pytest.mark.parametrize("fault", WRONG_OF_A_STEP)
def test_wrong_argument_of_a_step_is_one_sentence(fault, model):
    arguments, message = WRONG_OF_A_STEP[fault]
    with pytest.raises(ValueError, match=message):
        dps.DPSplitMerge(model=model, **arguments)


def test_step_without_a_model():
    with pytest.raises(
        ValueError, match=r"model is not given, .* none in the context; give model="
    ):
        dps.DPSplitMerge()
    with pytest.raises(ValueError, match="model=4 is not a model; give one"):
        dps.DPSplitMerge(model=4)


# --- callbacks and interruption -----------------------------------------------------------


@pytest.mark.parametrize("cores", [1, 2])
def test_callback_sees_every_draw(cores, sample, expected):
    seen = {}

    def note(trace, draw):
        assert trace.chain == draw.chain
        assert draw.tuning == (draw.draw_idx < TUNE)
        seen[draw.chain, draw.draw_idx] = int(draw.point["x_n_clusters"])

    sample(callback=note, cores=cores)
    assert len(seen) == 2 * (TUNE + DRAWS)
    for chain in range(2):
        kept = [seen[chain, TUNE + i] for i in range(DRAWS)]
        assert kept == expected["x_n_clusters"][chain].to_numpy().tolist()


def stop_at(chain, index):
    def stop(trace, draw):
        if (draw.chain, draw.draw_idx) == (chain, TUNE + index):
            raise KeyboardInterrupt

    return stop


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("chain", [0, 1])
def test_interrupt_in_a_callback_keeps_the_draws(chain, cores, sample, expected):
    idata = sample(callback=stop_at(chain, 4), cores=cores)
    posterior = idata["posterior"]
    assert 1 <= posterior.sizes["draw"] <= DRAWS
    if posterior.sizes["chain"] == 1:
        # The other had hardly begun; PyMC leaves it out and numbers the one it keeps anew.
        possible = [expected.isel(chain=[own]).assign_coords(chain=[0]) for own in range(2)]
    else:
        possible = [expected]
    assert [] in [differing(posterior, each) for each in possible]
    assert idata["sample_stats"].sizes["draw"] == posterior.sizes["draw"]
    if cores == 1:  # PyMC stops the chain in progress and goes on to the next
        assert posterior.sizes == {**posterior.sizes, "chain": 2, "draw": 5}


ENDLESS = """
import json, signal, sys
sys.path.insert(0, sys.argv[1])
import numpy as np, pymc as pm
import pymc_dpsplit as dps

def ready(trace, draw):
    if draw.draw_idx == 40 and draw.chain == 0:
        print("ready", flush=True)
        if sys.argv[2] == "1":
            # Here, as numba makes a SystemError of a signal that comes while it unpickles.
            signal.raise_signal(signal.SIGINT)

if __name__ == "__main__":
    rows = np.random.default_rng(0).normal(size=(20, 2))
    with pm.Model():
        alpha = pm.Gamma("alpha", 2, 4)
        dps.DPMixture("x", alpha, dps.DiagNormal.from_data(rows), observed=rows)
        idata = pm.sample(
            draws=50_000, tune=20, chains=int(sys.argv[2]), cores=int(sys.argv[2]), random_seed=1,
            callback=ready, progressbar=False, quiet=True, compute_convergence_checks=False,
        )
    x = idata["posterior"]["x_weights"].sum("x_cluster") + idata["posterior"]["x_new_weight"]
    print(json.dumps({"draws": x.sizes["draw"], "whole": bool(np.allclose(x, 1.0))}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "to"), [(1, None), (2, os.kill), (2, os.killpg)])
def test_an_interrupted_run_returns_the_draws_so_far(cores, to, tmp_path):
    """A terminal interrupts the processes of all chains, other programs the first alone.

    With one process the signal is raised by the run itself, in a callback.
    """
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS, encoding="utf-8")
    command = [sys.executable, "-W", "ignore", str(script), str(ROOT), str(cores)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        try:
            assert run.stdout.readline() == "ready\n"
            if to is not None:
                to(run.pid, signal.SIGINT)
            out, errors = run.communicate(timeout=60)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, errors
    found = json.loads(out.splitlines()[-1])
    assert found["whole"]
    assert 1 <= found["draws"] < 50_000
