"""Who draws a chain: a lock of the operating system, which ends with the process that holds it.

The process that draws a chain holds its lock, in whatever way it was started: `pm.sample` itself
where chains are drawn one after the other, else the process of the chain.  The lock is on a file
beside the folder of the chain, which stays when the lock is gone: who removed it might take it
from under the next.  A forked process closes what it inherits, so that no lock outlives its owner.
"""

import os
import sys
import threading
import time
import warnings
from contextlib import suppress
from multiprocessing import parent_process
from pathlib import Path
from socket import gethostname
from typing import NamedTuple

# A process that constructs a step looks for locks, and holds each for an instant.
_N_ATTEMPTS, _SECONDS_BETWEEN = 20, 0.05

if sys.platform == "win32":
    import msvcrt

    # Windows keeps others from reading what is locked: a byte far behind what the file says.
    _FAR = 1 << 30

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class _Held(NamedTuple):
    """A lock of this process: its open file, and the thread that took it."""

    descriptor: int
    thread: int


_held: dict[Path, _Held] = {}


def hold(chain: Path) -> None:
    """Take the lock of a chain; a thread of this process that has it keeps it.

    Parameters
    ----------
    chain : pathlib.Path
        Folder of the chain; need not exist.

    Raises
    ------
    ValueError
        If another process, or another thread of this one, draws the chain.
    OSError
        If the file of the lock cannot be made.

    Warns
    -----
    UserWarning
        If the file system knows no locks.
    """
    path = _file_of(chain)
    if path in _held:
        _refuse_other_thread(path)
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        is_ours = _taken(descriptor, _N_ATTEMPTS)
    except OSError as error:
        os.close(descriptor)
        warnings.warn(
            f"{path.parent} is on a file system without locks ({error.strerror}), so that a second "
            "process there is not refused; give each process a folder of its own.",
            stacklevel=2,
        )
        return
    if not is_ours:
        os.close(descriptor)
        _refuse_other_process(path)
        return
    _held[path] = _Held(descriptor, threading.get_ident())
    # For whoever is refused; the lock does not depend on it.
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, f"{os.getpid()} {gethostname()}\n".encode())


def let_go(chain: Path) -> None:
    """Give the lock of a chain back, if this process has it."""
    held = _held.pop(_file_of(chain), None)
    if held is not None:
        os.close(held.descriptor)


def refuse_if_held(folder: Path) -> None:
    """Raise ValueError if a chain in a folder is being drawn elsewhere.

    What this thread held is given back: it makes a new step, so that it draws with no other.

    Parameters
    ----------
    folder : pathlib.Path
        Of a run.
    """
    for path in sorted(folder.glob(".chain*.lock")):
        chain = path.with_name(path.stem[1:])
        if path in _held:
            _refuse_other_thread(path)
            let_go(chain)
            continue
        with suppress(OSError):  # no lock can be taken there, so that nobody holds one
            descriptor = os.open(path, os.O_RDWR)
            try:
                is_free = _taken(descriptor, 1)
            finally:
                os.close(descriptor)
            if not is_free:
                _refuse_other_process(path)


def _file_of(chain: Path) -> Path:
    """Return the file of the lock of a chain; hidden, so that it is no part of the chains."""
    return chain.with_name(f".{chain.name}.lock")


def _taken(descriptor: int, n_attempts: int) -> bool:
    """Try to lock an open file; whether it is locked now."""
    for i in range(n_attempts):
        if i:
            time.sleep(_SECONDS_BETWEEN)
        try:
            _lock(descriptor)
        except (BlockingIOError, PermissionError):
            continue
        return True
    return False


def _refuse_other_thread(path: Path) -> None:
    thread = _held[path].thread
    alive = {each.ident for each in threading.enumerate()}
    if thread != threading.get_ident() and thread in alive:
        raise ValueError(_in_use(path, "another thread of this process"))


def _refuse_other_process(path: Path) -> None:
    number, _, host = path.read_text(encoding="utf-8", errors="replace").strip().partition(" ")
    parent = parent_process()
    # Left from a run in the process that started this one, and now draws here.
    if parent is not None and (number, host) == (str(parent.pid), gethostname()):
        return
    who = f"process {number} on {host}" if number else "another process"
    raise ValueError(_in_use(path, who))


def _in_use(path: Path, who: str) -> str:
    return (
        f"{path.parent} is in use: {who} draws {path.stem[1:]}; wait until it ends, or give "
        "another folder."
    )


def _forget() -> None:
    """Close what a forked process inherits; the lock stays with the process that took it."""
    while _held:
        _, held = _held.popitem()
        os.close(held.descriptor)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
