"""Processes that compile kernels beside the process that needs them.

numba compiles in one thread.  A kernel that calls another needs to know the type of its result at
once, but its code much later, when its own code is written.  In between, another process can
compile it and leave the code in the cache on disk.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_LINUX = sys.platform == "linux"  # forking is unsafe on macOS and unknown to Windows


class _Processes:
    """The processes that are compiling, and how many there may be."""

    def __init__(self) -> None:
        self.limit = 0
        self.running: list[int] = []


_processes = _Processes()


def n_beside() -> int:
    """Return how many processes may compile beside this one: a processor each."""
    return len(os.sched_getaffinity(0)) - 1 if _LINUX else 0


@contextmanager
def compiling_beside() -> Iterator[None]:
    """Let kernels be compiled in processes beside this one; those left at the end are stopped."""
    before, _processes.limit = _processes.limit, n_beside()
    try:
        yield
    finally:
        _processes.limit = before
        for process in tuple(_processes.running):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            wait_for(process)


def start(work: Callable[[], object]) -> int | None:
    """Start `work` in a process of its own, unless there are as many as there may be.

    Parameters
    ----------
    work : callable
        What it raises is lost, and so is what it prints.

    Returns
    -------
    int or None
        Identifier of the process.
    """
    for process in tuple(_processes.running):
        with suppress(ChildProcessError):
            if os.waitpid(process, os.WNOHANG)[0]:
                _processes.running.remove(process)
    if len(_processes.running) >= _processes.limit:
        return None
    with warnings.catch_warnings():
        # Python, and packages with threads, warn that another thread may hold a lock; the new
        # process does nothing but compile.
        warnings.simplefilter("ignore")
        process = os.fork()
    if process == 0:
        _work_and_end(work)
    _processes.running.append(process)
    return process


def _work_and_end(work: Callable[[], object]) -> None:
    _processes.limit = 0
    try:
        work()
    finally:
        os._exit(0)


def wait_for(process: int) -> None:
    """Wait until a process has ended."""
    if process in _processes.running:
        with suppress(ChildProcessError):
            os.waitpid(process, 0)
        _processes.running.remove(process)
