"""A run that is killed continues as the same chain, from files without pickle."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from pymc.sampling.parallel import ParallelSamplingError
from pymc.step_methods.compound import BlockedStep, StepMethodState
from pymc.step_methods.state import dataclass_state

import pymc_dpsplit as dps
from pymc_dpsplit.checkpoint import Checkpoint, chain_lock, method_state
from pymc_dpsplit.checkpoint.chain_files import ChainFiles
from pymc_dpsplit.checkpoint.codec import from_arrays, to_arrays
from pymc_dpsplit.checkpoint.recording import Recording
from tests.integration.test_reproducibility import OPTIONS, differences
from tests.support.quick import slow_unless

ROOT = Path(__file__).resolve().parents[2]
# Mass matrices are adapted in windows of 101 draws: tuning has one, and the start of the next.
TUNE, DRAWS, EVERY = 115, 30, 15
OF_RUN = {"tune": TUNE, "draws": DRAWS, "chains": 2, "cores": 1, "random_seed": 3, **OPTIONS}


def model_of(shift_x=0.0, shift_y=0.0):
    """NUTS on beta, our step on alpha too, Metropolis on a count; Slice is added by hand."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=40) + np.repeat([-1.5, 1.5], 20)
    family = dps.Normal.from_data(rows)
    rows[7] += shift_x
    slopes = rng.normal(size=40)
    with pm.Model() as model:
        dps.DPMixture("x", pm.Gamma("alpha", 2, 4), family, observed=rows)
        beta = pm.Normal("beta", 0, 10, shape=2)
        sigma = pm.HalfNormal("sigma", 3)
        mean = beta[0] + beta[1] * slopes + 0.1 * pm.Poisson("count", 3)
        pm.Normal("y", mean, sigma, observed=1 + 2 * slopes + rng.normal(size=40) + shift_y)
    return model


def steps_by_hand(model):
    with model:
        return [pm.Slice([model["sigma"]])] if "sigma" in model.named_vars else []


def checkpoint(model, folder, every=EVERY, **options):
    with model:
        return Checkpoint(folder, every=every, step=steps_by_hand(model), **options)


def plain_run(model, **arguments):
    with model:
        return pm.sample(step=steps_by_hand(model), **{**OF_RUN, **arguments})


def run(model, folder, every=EVERY, **arguments):
    with model:
        return pm.sample(step=checkpoint(model, folder, every), **{**OF_RUN, **arguments})


def run_until_killed(folder, at, cores):
    """Run in a group of processes that is killed when the second chain has `at` draws."""

    def kill(trace, draw):
        if draw.chain == 1 and draw.draw_idx == at:
            os.killpg(0, signal.SIGKILL)

    run(model_of(), folder, cores=cores, callback=kill)


def wait_until_free(folder, seconds=60.0):
    """Wait for processes that were killed, which hold their locks until they have ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(ValueError):
            chain_lock.refuse_if_held(folder)
            break
        time.sleep(0.05)


@pytest.fixture(scope="module")
def model():
    return model_of()


@pytest.fixture(scope="module")
def plain(model):
    return plain_run(model)


@pytest.fixture(scope="module")
def finished(model, tmp_path_factory):
    """Folder of a finished run, not to be changed."""
    folder = tmp_path_factory.mktemp("run") / "finished"
    run(model, folder)
    return folder


@pytest.fixture(scope="module")
def small():
    with pm.Model() as model:
        pm.Poisson("count", 3)
    return model


@pytest.fixture
def finished_small(small, tmp_path):
    run(small, tmp_path / "small")
    return tmp_path / "small"


class StoppedError(Exception):
    pass


def stop_run(model, folder, at, **arguments):
    """Run until the first chain has `at` draws."""

    def stop(trace, draw):
        if draw.draw_idx == at:
            raise StoppedError

    with pytest.raises(StoppedError):
        run(model, folder, callback=stop, **arguments)


# --- the same chain -----------------------------------------------------------------------


def test_draws_and_statistics_are_those_without_a_checkpoint(model, plain, tmp_path):
    first = run(model, tmp_path)
    replayed = run(model, tmp_path)
    assert differences(plain, first) == []
    assert differences(plain, replayed) == []
    seconds = [result["sample_stats"]["x_seconds"] for result in (first, replayed)]
    assert seconds[0].equals(seconds[1])


def test_a_step_that_stands_alone_draws_as_without_a_checkpoint(tmp_path):
    with pm.Model():
        dps.DPMixture("x", 1.0, dps.Normal(0, 0.1, 2, 1), observed=[0.0, 0.1, 5.0])
        plain = pm.sample(**{**OF_RUN, "tune": 20, "draws": 10})
        kept = pm.sample(step=Checkpoint(tmp_path), **{**OF_RUN, "tune": 20, "draws": 10})
    assert differences(plain, kept) == []


@pytest.mark.slow
@pytest.mark.parametrize(("draw", "cores"), [(70, 1), (TUNE + 20, 2)], ids=["tuning", "after"])
def test_killed_run_continues_as_the_same_chain(draw, cores, model, plain, tmp_path):
    call = f"run_until_killed({str(tmp_path)!r}, {draw}, {cores})"
    command = f"from tests.integration.test_checkpoint import run_until_killed; {call}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, env=environment, start_new_session=True
    )
    assert killed.returncode == -signal.SIGKILL
    wait_until_free(tmp_path)
    stored = ChainFiles(tmp_path / "chain-1").state()["n_draws"]
    assert draw - 2 * EVERY < stored <= draw + 2
    assert differences(plain, run(model, tmp_path, cores=cores)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "every"),
    [(EVERY - 2, EVERY), (TUNE, TUNE), (TUNE + 2, TUNE + 1)],
    ids=["before the first chunk", "at the end of tuning", "at the first draw kept"],
)
def test_stopped_run_continues_wherever_it_stopped(at, every, model, plain, tmp_path):
    stop_run(model, tmp_path, at, every=every)
    assert differences(plain, run(model, tmp_path, every=7)) == []


@pytest.mark.slow
@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_run_continues_in_other_processes(start, model, plain, tmp_path):
    stop_run(model, tmp_path, TUNE + 20)
    assert differences(plain, run(model, tmp_path, cores=2, mp_ctx=start)) == []


@pytest.mark.slow
def test_death_at_any_sync_leaves_a_valid_checkpoint(small, tmp_path, monkeypatch):
    arguments = {**OF_RUN, "tune": 4, "draws": 4, "chains": 1}
    sync = os.fsync
    left = 0

    def failing(handle):
        nonlocal left
        left -= 1
        if left < 0:
            raise StoppedError
        sync(handle)

    whole = run(small, tmp_path / "whole", 3, **arguments)
    names = {path.name for path in (tmp_path / "whole" / "chain-0").iterdir()}
    # A file and its folder are synced for each of a manifest, three chunks and four states.
    for n_syncs in range(16):
        folder = tmp_path / str(n_syncs)
        monkeypatch.setattr(os, "fsync", failing)
        left = n_syncs
        with pytest.raises(StoppedError):
            run(small, folder, 3, **arguments)
        monkeypatch.setattr(os, "fsync", sync)
        assert differences(whole, run(small, folder, 3, **arguments)) == []
        assert {path.name for path in (folder / "chain-0").iterdir()} == names


@pytest.mark.slow
def test_more_draws_lengthen_a_chain_and_fewer_shorten_it(model, plain, tmp_path):
    shorter = run(model, tmp_path, draws=DRAWS - 10, chains=1)
    assert differences(plain, run(model, tmp_path)) == []
    again = run(model, tmp_path, draws=DRAWS - 10, chains=1)
    assert differences(shorter, again) == []


# Parts of the state of a method, and a variable that then has other draws.
LEFT_OUT = {
    "generators": (["rng"], "x_mu"),
    "step size": (["step_adapt"], "beta"),
    "mass matrix": (["potential"], "beta"),
    "partition": (["labels", "cluster_stats"], "x_mu"),
}


@pytest.mark.slow
@pytest.mark.control
@pytest.mark.parametrize("part", LEFT_OUT)
def test_state_with_a_part_left_out_is_noticed(part, model, plain, tmp_path, monkeypatch):
    restored = method_state.restore
    left_out, variable = LEFT_OUT[part]

    def without(method, captured):
        before = method.sampling_state
        restored(method, captured)
        names = [field.name for field in fields(before) if field.name in left_out]
        kept = {name: getattr(before, name) for name in names}
        # Nearly the same partition may give the same one after a sweep, so take it away.
        kept |= {name: None for name in ("labels", "cluster_stats") if name in kept}
        method.sampling_state = replace(method.sampling_state, **kept)

    stop_run(model, tmp_path, TUNE + 20)
    monkeypatch.setattr("pymc_dpsplit.checkpoint.step.restore", without)
    assert variable in differences(plain, run(model, tmp_path))


# --- what the files hold ------------------------------------------------------------------


@pytest.mark.slow
def test_files_hold_no_objects_and_one_state(finished):
    paths = list((finished / "chain-0").iterdir())
    assert sorted({path.suffix for path in paths}) == [".json", ".npz"]
    assert len([path for path in paths if path.name.startswith("state")]) == 1
    assert len(paths) == 2 + -(-(TUNE + DRAWS) // EVERY)
    for path in paths:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                assert all(not file[name].dtype.hasobject for name in file)


PLAIN = {
    "nothing": None,
    "large": 2**100,
    "numbers": (1, 1.5, True, "text", float("inf")),
    "float": np.float32(0.1),
    "flag": np.bool_(True),
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "point": np.array(3.0),
    "list": [1.0, 2.0],
    "scalars": [np.float64(1), np.float64(2)],
    "arrays": [np.zeros(2), np.ones(2)],
    "ragged": [np.zeros(2), np.ones(3)],
    "points": [np.array(1.0), np.array(2.0)],
    "mixed": [1, 1.0, np.float64(1), []],
    "dict": {"inner": {"list": ()}},
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_values_come_back_as_they_were(name):
    # The representation tells types and dtypes.
    assert repr(from_arrays(to_arrays(PLAIN[name], name))) == repr(PLAIN[name])


_OTHERS = {"set": {1}, "objects": np.array([None]), "keys": {1: 2}, "object": object()}


@pytest.mark.parametrize("value", _OTHERS.values(), ids=_OTHERS)
def test_other_values_are_refused_by_name(value):
    with pytest.raises(TypeError, match=r"step\.part\[1\] .* cannot store"):
        to_arrays({"part": [0, value]}, "step")


def test_statistics_need_not_be_in_every_draw(tmp_path):
    ChainFiles(tmp_path).begin({})
    recording = Recording(ChainFiles(tmp_path))
    given = [{"a": 1.0, "b": np.ones(2), "warning": object()}, {"a": 2.0, "b": np.ones(3)}, {}]
    for stats in given:
        recording.add({"x": np.array(0.0)}, [stats, {"always": 1}])
    recording.commit([])
    stored = [Recording(ChainFiles(tmp_path)).draw(0)[1]]
    again = Recording(ChainFiles(tmp_path))
    stored = [again.draw(number)[1] for number in range(3)]
    assert [sorted(first) for first, _ in stored] == [["a", "b", "warning"], ["a", "b"], []]
    assert stored[0][0]["warning"] is None
    assert [first["b"].tolist() for first, _ in stored[:2]] == [[1, 1], [1, 1, 1]]
    assert [second["always"] for _, second in stored] == [1, 1, 1]


# --- steps of others ----------------------------------------------------------------------


@dataclass_state
class CountingState(StepMethodState):
    seen: set


class Counting(BlockedStep):
    _state_class = CountingState

    def __init__(self, vars, **_):
        self.vars = vars
        self.seen = set()
        self.rng = np.random.default_rng(0)

    def step(self, point):
        return point, [{}]


class Stateless(Counting):
    _state_class = BlockedStep._state_class


class Growing(Counting):
    """Makes a part of its state while sampling."""

    def __init__(self, vars, **_):
        super().__init__(vars)
        self.seen = None

    def step(self, point):
        self.seen = Counting(self.vars)
        return point, [{}]


class Forgetful(Counting):
    def step(self, point):
        vars(self).pop("seen", None)
        return point, [{}]


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (Counting, r"state\.methods\[0\].*seen is a set"),
        (Growing, r"Growing\.seen comes into being while sampling"),
        (Forgetful, r"Forgetful cannot tell its state \(.*'seen'\)"),
    ],
)
def test_state_that_cannot_be_stored_is_refused_by_name(kind, fault, small, tmp_path):
    with small:
        step = Checkpoint(tmp_path, every=5, step=kind(small.value_vars))
        with pytest.raises(TypeError, match=fault):
            pm.sample(step=step, **OF_RUN)


@pytest.mark.slow
def test_initialised_nuts_draws_as_without_a_checkpoint(tmp_path):
    seeds = [int(rng.integers(2**30)) for rng in np.random.default_rng(3).spawn(2)]
    with pm.Model():
        pm.Normal("y", pm.Normal("b", 0, pm.HalfNormal("a"), shape=3), 1, observed=[1, 2, 3])
        plain = pm.sample(init="jitter+adapt_diag", nuts_sampler="pymc", **OF_RUN)
        for _ in range(2):
            starts, nuts = pm.init_nuts(
                init="jitter+adapt_diag", chains=2, random_seed=seeds, progressbar=False
            )
            kept = pm.sample(step=Checkpoint(tmp_path, step=nuts), initvals=starts, **OF_RUN)
            assert differences(plain, kept) == []


# --- one process at a time, and folders that cannot be written ----------------------------


HOLDER = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
import chain_lock
chain_lock.hold(Path(sys.argv[2]))
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def drawn_elsewhere(chain):
    """Have another process hold the lock of a chain."""
    module = str(Path(chain_lock.__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, module, str(chain)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2])
def test_second_process_is_refused(cores, small, tmp_path):
    fault = r"is in use: process \d+ on \S+ draws chain-1; wait until it ends"
    early = checkpoint(small, tmp_path)
    with drawn_elsewhere(tmp_path / "chain-1"):
        with pytest.raises(ValueError, match=fault):
            checkpoint(small, tmp_path)
        # The other process began when this one had made its step.
        with small, pytest.raises((ValueError, ParallelSamplingError), match=fault):
            pm.sample(step=early, **{**OF_RUN, "cores": cores})
    assert differences(plain_run(small), run(small, tmp_path)) == []


def test_finished_chains_are_replayed_while_others_are_drawn(small, tmp_path):
    first = run(small, tmp_path, chains=1)
    step = checkpoint(small, tmp_path)
    with drawn_elsewhere(tmp_path / "chain-1"), small:
        assert differences(first, pm.sample(step=step, **{**OF_RUN, "chains": 1})) == []


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_step_that_was_interrupted_draws_in_other_processes(start, small, tmp_path):
    plain = plain_run(small)
    step = checkpoint(small, tmp_path)

    def stop(trace, draw):
        if draw.draw_idx == 2 * EVERY:
            raise StoppedError

    with small, pytest.raises(StoppedError):
        pm.sample(step=step, callback=stop, **OF_RUN)
    with small:
        again = pm.sample(step=step, **{**OF_RUN, "cores": 2, "mp_ctx": start})
    # Chain 1 begins with the step as the first run left it, in PyMC too.
    first = [
        posterior["count"].sel(chain=0) for posterior in (plain["posterior"], again["posterior"])
    ]
    np.testing.assert_array_equal(*first)


def test_locks_are_given_back(small, tmp_path):
    run(small, tmp_path)
    with pytest.raises(ValueError, match="tune=115, not 100"):
        run(small, tmp_path, tune=100)
    with pytest.raises(ValueError, match="tune=115, not 100"):
        run(small, tmp_path, tune=100, draws=100)
    assert not any(path.is_relative_to(tmp_path) for path in chain_lock._held)


def test_folder_that_can_only_be_read_is_refused_before_a_draw(small, tmp_path, monkeypatch):
    first = run(small, tmp_path, chains=1)
    opened = os.open

    def read_only(path, flags, *arguments, **keywords):
        if flags & (os.O_WRONLY | os.O_RDWR) and str(path).startswith(str(tmp_path)):
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, *arguments, **keywords)

    monkeypatch.setattr(os, "open", read_only)
    assert differences(first, run(small, tmp_path, chains=1)) == []
    drawn = []
    with pytest.raises(OSError, match=r"chain-0 cannot be written \(Read-only file system\);"):
        run(small, tmp_path, chains=1, draws=DRAWS + 1, callback=lambda *_: drawn.append(1))
    assert drawn == []


# --- refusals -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "cores"),
    slow_unless({(4, 1), (None, 2)}.__contains__, [(4, 1), (4, 2), (None, 1), (None, 2)]),
)
def test_other_seed_is_refused(seed, cores, small, finished_small):
    fault = "another random_seed; give random_seed=3 to continue"
    with pytest.raises((ValueError, ParallelSamplingError), match=fault):
        run(small, finished_small, random_seed=seed, cores=cores)


def test_run_without_a_seed_continues_by_the_number_that_is_named(small, tmp_path):
    first = run(small, tmp_path, random_seed=None)
    with pytest.raises(ValueError, match=r"give random_seed=\d+ ") as refused:
        run(small, tmp_path)
    seed = int(str(refused.value).split("random_seed=")[1].split()[0])
    assert differences(first, run(small, tmp_path, random_seed=seed)) == []


def test_other_state_of_the_generator_is_refused(small, finished_small):
    rng = np.random.default_rng(3).spawn(1)[0]
    rng.random()
    with pytest.raises(ValueError, match="another state of the random generator"):
        checkpoint(small, finished_small).setup_chain(rng, TUNE, DRAWS)


def test_other_tuning_is_refused(small, finished_small):
    with pytest.raises(ValueError, match="tune=115, not 100; give tune=115"):
        run(small, finished_small, tune=100)


@pytest.mark.slow
@pytest.mark.parametrize("shift", ["shift_x", "shift_y"])
def test_other_data_are_refused(shift, finished):
    with pytest.raises(ValueError, match="other data or constants in the model"):
        checkpoint(model_of(**{shift: 1e-9}), finished)


@pytest.mark.slow
def test_other_steps_are_refused(model, finished):
    with model, pytest.raises(ValueError, match=r"chains of other steps: .*slice"):
        Checkpoint(finished)


@pytest.mark.slow
def test_other_options_are_refused_and_threads_are_free(model, finished):
    checkpoint(model, finished, dpsplit={"threads": 2})
    with pytest.raises(ValueError, match=r"other options: .* now; restore them"):
        checkpoint(model, finished, nuts={"target_accept": 0.9})


def test_other_variables_are_refused(finished):
    with pm.Model() as other:
        pm.Normal("beta", shape=3)
    with pytest.raises(ValueError, match=r"chains of other variables: .*beta"):
        Checkpoint(finished, model=other)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("versions", {"pymc": "6.0"}, "other versions: .*'pymc': '6.0'.* now; restore them"),
        ("format", 3, "format 3 of checkpoints, of another version of pymc_dpsplit; continue"),
    ],
)
def test_other_versions_are_refused(key, value, fault, small, finished_small):
    files = ChainFiles(finished_small / "chain-1")
    files.begin(files.manifest() | {key: value})
    with pytest.raises(ValueError, match=fault):
        checkpoint(small, finished_small)


def test_checkpoint_of_a_version_without_checksums_is_refused(small, finished_small):
    path = finished_small / "chain-1" / "manifest.json"
    manifest = json.loads(path.read_text()) | {"format": 1}
    del manifest["checksum"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="format 1 of checkpoints, of another version of pymc_"):
        checkpoint(small, finished_small)


@pytest.mark.slow
def test_first_draw_that_comes_out_differently_is_told(model, finished):
    start = {"beta": np.array([5.0, 5.0])}
    with pytest.warns(UserWarning, match="first draw of .*beta.* differs"):
        run(model, finished, chains=1, initvals=start)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-40])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[250] ^= 1  # in the content of the first array
    path.write_bytes(content)


def empty(path):
    path.write_bytes(b"")


FIRST_CHUNK = f"draws-000000000-{EVERY:09d}.npz"
DAMAGES = [(fault, "manifest.json") for fault in (truncate, empty, Path.unlink)]
DAMAGES += [(Path.unlink, "state.npz")]
DAMAGES += [
    (fault, name) for fault in (truncate, flip_a_bit, empty) for name in ("state.npz", FIRST_CHUNK)
]


# Each damage, and each file, once.
QUICK_DAMAGES = [
    (empty, "manifest.json"), (Path.unlink, "state.npz"), (flip_a_bit, "state.npz"),
    (truncate, FIRST_CHUNK),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "name"), slow_unless(QUICK_DAMAGES.__contains__, DAMAGES))
def test_damaged_file_is_reported(damage, name, small, finished_small):
    damage(finished_small / "chain-0" / name)
    with pytest.raises(ValueError, match=r"is damaged or missing; delete the folder .*chain-0"):
        run(small, finished_small)


def test_missing_chunk_is_reported_and_its_chain_can_be_drawn_anew(small, finished_small):
    folder = finished_small / "chain-0"
    (folder / FIRST_CHUNK).unlink()
    with pytest.raises(ValueError, match="chunk from draw 0 on of the checkpoint is damaged"):
        run(small, finished_small)
    shutil.rmtree(folder)
    assert differences(plain_run(small), run(small, finished_small)) == []


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"every": 0}, "every=0 is out of range"),
        ({"every": 1.5}, "every=1.5 is out of range"),
        ({"every": True}, "every=True is out of range"),
        ({"nutz": {}}, "nutz"),
        ({"dpsplit": {"kernl": "exact"}}, "'kernl' is not an option"),
    ],
)
def test_bad_arguments_are_refused(arguments, fault, model, tmp_path):
    with model, pytest.raises(ValueError, match=fault):
        Checkpoint(tmp_path / "run", **arguments)


def test_bad_places_are_refused(model, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="inside one or give model="):
        Checkpoint(tmp_path / "run")
    with model, pytest.raises(ValueError, match=r"notes.txt' is a file; give a folder"):
        Checkpoint(tmp_path / "notes.txt")
    with model, pytest.raises(ValueError, match=r"holds notes.txt, which is not part"):
        Checkpoint(tmp_path)


@pytest.mark.parametrize("folder", [None, 3, b"run", "a\0b"])
def test_what_is_no_path_is_refused(folder, small):
    with small, pytest.raises(ValueError, match=r"^folder=.* is not a path; give that of a folder"):
        Checkpoint(folder)


def test_folder_that_cannot_be_made_is_refused(small, tmp_path):
    with small, pytest.raises(ValueError, match=r"cannot be made or read \(File name too long\);"):
        Checkpoint(tmp_path / ("x" * 300))


@pytest.mark.slow
def test_bad_steps_are_refused(model, tmp_path):
    with model, pytest.raises(ValueError, match="DEMetropolis moves chains together"):
        Checkpoint(tmp_path, step=pm.DEMetropolis([model["sigma"]]))
    with model, pytest.raises(ValueError, match="Stateless declares no state to store"):
        Checkpoint(tmp_path, step=Stateless([model.rvs_to_values[model["sigma"]]]))
    with model, pytest.raises(ValueError, match=r"before setup_chain; use pm.sample"):
        Checkpoint(tmp_path).step(model.initial_point())


@pytest.mark.slow
def test_progress_bar_shows_what_the_steps_show(model, tmp_path):
    step = checkpoint(model, tmp_path)
    columns, values = step._progressbar_config(2)
    headers = {str(column.get_table_column().header) for column in columns}
    assert {"K[x]", "Divergences", "Step size"} <= headers
    assert set(values) >= {"x_k", "divergences"}
    assert len(step._make_progressbar_update_functions()) == len(step.stats_dtypes)
