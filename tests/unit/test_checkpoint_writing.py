"""Who may write the files of a chain, and what is said where they cannot be written."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from pymc_dpsplit.checkpoint import chain_lock
from pymc_dpsplit.checkpoint.chain_files import ChainFiles
from pymc_dpsplit.checkpoint.recording import Recording

# Other processes import the module of the lock alone, which takes no time.
OTHER = """
import multiprocessing, os, signal, sys, time
from pathlib import Path
sys.path.append(sys.argv[1])
import chain_lock

def draw(chain, answers):
    try:
        chain_lock.hold(chain)
        answers.put("holds")
    except ValueError as error:
        answers.put(str(error))

if __name__ == "__main__":
    chain, task = Path(sys.argv[2]), sys.argv[3]
    chain_lock.hold(chain)
    if task == "wait":
        print(os.getpid(), flush=True)
        sys.stdin.read()
    elif task == "orphan":
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        print(child, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        context = multiprocessing.get_context(task)
        answers = context.SimpleQueue()
        process = context.Process(target=draw, args=(chain, answers))
        process.start()
        print(answers.get(), flush=True)
        process.join()
"""


@contextmanager
def other_process(chain: Path, task: str = "wait") -> Iterator[subprocess.Popen]:
    script = chain.parent.parent / "other.py"
    script.write_text(OTHER, encoding="utf-8")
    module = str(Path(chain_lock.__file__).parent)
    command = [sys.executable, str(script), module, str(chain), task]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def chain(tmp_path):
    (tmp_path / "run").mkdir()
    yield tmp_path / "run" / "chain-0"
    chain_lock.let_go(tmp_path / "run" / "chain-0")


# --- locks --------------------------------------------------------------------------------


def test_chain_that_another_process_draws_is_refused_until_it_dies(chain):
    with other_process(chain) as process:
        number = process.stdout.readline().strip()
        assert number == str(process.pid)
        fault = rf"run is in use: process {number} on \S+ draws chain-0; wait until it ends, or"
        with pytest.raises(ValueError, match=fault):
            chain_lock.hold(chain)
        with pytest.raises(ValueError, match=fault):
            chain_lock.refuse_if_held(chain.parent)
        chain_lock.hold(chain.with_name("chain-1"))
        chain_lock.let_go(chain.with_name("chain-1"))
        process.send_signal(signal.SIGKILL)
        process.wait()
    chain_lock.refuse_if_held(chain.parent)
    chain_lock.hold(chain)


def test_lock_is_given_back(chain):
    chain_lock.hold(chain)
    chain_lock.hold(chain)
    chain_lock.let_go(chain)
    chain_lock.let_go(chain)
    with other_process(chain) as process:
        assert process.stdout.readline().strip() == str(process.pid)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_process_that_is_forked_does_not_keep_the_lock(chain):
    with other_process(chain, "orphan") as process:
        child = int(process.stdout.readline())
        try:
            process.wait()
            os.kill(child, 0)
            chain_lock.hold(chain)
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_chain_may_be_drawn_by_a_process_of_the_one_that_has_the_lock(start, chain):
    """A run of one process was interrupted; the same step then draws with several."""
    with other_process(chain, start) as process:
        assert process.stdout.readline() == "holds\n"


def test_other_thread_is_refused_while_it_lives(chain):
    taken, done = threading.Event(), threading.Event()

    def draw():
        chain_lock.hold(chain)
        taken.set()
        done.wait(60)

    thread = threading.Thread(target=draw)
    thread.start()
    taken.wait(60)
    try:
        for call, given in [(chain_lock.hold, chain), (chain_lock.refuse_if_held, chain.parent)]:
            with pytest.raises(ValueError, match="another thread of this process draws chain-0;"):
                call(given)
    finally:
        done.set()
        thread.join()
    chain_lock.hold(chain)


def test_new_step_of_the_same_thread_takes_over(chain):
    chain_lock.hold(chain)
    chain_lock.refuse_if_held(chain.parent)
    with other_process(chain) as process:
        assert process.stdout.readline().strip() == str(process.pid)


def test_file_system_without_locks_is_told(chain, monkeypatch):
    def lock(descriptor):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(chain_lock, "_lock", lock)
    with pytest.warns(UserWarning, match=r"without locks \(No locks available\), so that a second"):
        chain_lock.hold(chain)
    chain_lock.refuse_if_held(chain.parent)


# --- writing and reading ------------------------------------------------------------------


def begun(chain: Path) -> tuple[ChainFiles, Recording]:
    files = ChainFiles(chain)
    files.begin({"format": 2})
    recording = Recording(files)
    recording.add({"x": np.zeros(3)}, [])
    recording.commit([])
    return files, recording


def test_full_disk_is_told_and_leaves_what_was_stored(chain):
    resource = pytest.importorskip("resource")
    files, recording = begun(chain)
    recording.add({"x": np.random.default_rng(0).normal(size=100_000)}, [])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"^the checkpoint in .*chain-0 cannot be written \(File"):
            recording.commit([])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(chain.glob("*.tmp"))
    assert files.state() == {"n_draws": 1, "methods": []}


@pytest.mark.parametrize("call", ["begin", "try_to_write", "commit"])
def test_folder_that_can_only_be_read_is_told(call, chain, monkeypatch):
    files, recording = begun(chain)
    recording.add({"x": np.zeros(3)}, [])

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    monkeypatch.setattr(Path, "open", refuse)
    calls = {
        "begin": lambda: files.begin({"format": 2}),
        "try_to_write": files.try_to_write,
        "commit": lambda: recording.commit([]),
    }
    fault = r"cannot be written \(Permission denied\); make room or allow writing there, or give"
    with pytest.raises(PermissionError, match=fault):
        calls[call]()
    with pytest.raises(PermissionError, match=r"state.npz cannot be read \(Permission denied\);"):
        files.state()


def test_chunks_without_a_state_are_damage(chain):
    files, _ = begun(chain)
    (chain / "state.npz").unlink()
    with pytest.raises(ValueError, match=r"state.npz of the checkpoint is damaged or missing"):
        files.state()
    (chain / "manifest.json").unlink()
    with pytest.raises(ValueError, match=r"manifest.json of the checkpoint is damaged or missing"):
        files.manifest()


def test_manifest_of_format_one_has_no_checksum_and_is_handed_on(chain):
    chain.mkdir()
    (chain / "manifest.json").write_text('{"format": 1}')
    assert ChainFiles(chain).manifest() == {"format": 1}
    (chain / "manifest.json").write_text('{"format": 2}')
    with pytest.raises(ValueError, match=r"manifest.json of the checkpoint is damaged"):
        ChainFiles(chain).manifest()
