"""Ctrl-C while compiled code runs.

Python remembers a signal that arrives in compiled code, and raises when it next runs code of its
own.  That may be the class of a NamedTuple in which numba returns results; numba does not expect
an exception there: the process ends by a segmentation fault.  So the handler is held back until the
call has returned.

LLVM is not prepared for exceptions either.  llvmlite forgets a module that LLVM has taken over by a
line of Python after the call that hands it over; if that line is not run, the module is freed
twice.  And it drops what is raised in functions that LLVM calls.  So each of these steps of the
compiler is finished first.
"""

# The functions of the module signal convert handlers to enums, which takes five times as long.
import _signal  # type: ignore[import-not-found]
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from signal import SIGINT
from typing import Any

# Handler that is held back now; there is one, as only the main thread receives signals.
_held_back: list[Any] = []


def undisturbed(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Call compiled code, and handle Ctrl-C after it.

    Parameters
    ----------
    function : callable
    arguments : tuple

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    KeyboardInterrupt
        If the signal arrived during the call and its handler raises, as that of Python does.
    """
    if threading.get_ident() != threading.main_thread().ident or _held_back:
        return function(*arguments)
    handler = _signal.getsignal(SIGINT)
    if not callable(handler):  # ignored, or the process is to end
        return function(*arguments)
    arrived: list[Any] = []

    def note(number: int, frame: Any) -> None:
        arrived.append(frame)

    try:
        _held_back.append((handler, note))
        _signal.signal(SIGINT, note)
        return function(*arguments)
    finally:
        _held_back.clear()
        _signal.signal(SIGINT, handler)
        if arrived:
            handler(SIGINT, arrived[0])


@contextmanager
def disturbed() -> Iterator[None]:
    """Let Ctrl-C raise at once within a call of `undisturbed`, as for code that is compiled first.

    Yields
    ------
    None
    """
    if threading.get_ident() != threading.main_thread().ident or not _held_back:
        yield
        return
    handler, note = _held_back[0]
    _signal.signal(SIGINT, handler)
    try:
        yield
    finally:
        _signal.signal(SIGINT, note)


@contextmanager
def finished_first() -> Iterator[None]:
    """Handle Ctrl-C after a block of code, which is to be finished first.

    Yields
    ------
    None
    """
    handler = _signal.getsignal(SIGINT)
    if threading.get_ident() != threading.main_thread().ident or not callable(handler):
        yield
        return
    arrived: list[Any] = []
    _signal.signal(SIGINT, lambda number, frame: arrived.append(frame))
    try:
        yield
    finally:
        _signal.signal(SIGINT, handler)
        if arrived:
            handler(SIGINT, arrived[0])
