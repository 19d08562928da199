"""Compilation of models with a mixture such that a function rounds alike in every process.

PyTensor compiles with `fastmath`, which lets LLVM reassociate sums.  The process that compiles a
function and one that loads it from the cache then run differently optimised copies of it, which
may differ in the last bit; so the first run of a model and the next differ with one seed
(docs/decisions/0009).  Without `fastmath` they agree.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from pymc.model import Model
from pytensor.configdefaults import config

from pymc_dpsplit.variables import is_owned

_FLAGS = "PYTENSOR_FLAGS"


def rounding_alike(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make PyMC sample models with a mixture without `fastmath`."""

    def rounding(*args: Any, **kwargs: Any) -> Any:
        model = next((value for value in args if isinstance(value, Model)), kwargs.get("model"))
        model = Model.get_context(error_if_none=False) if model is None else model
        if not isinstance(model, Model) or not any(map(is_owned, model.free_RVs)):
            return function(*args, **kwargs)
        with _without_fastmath():
            return function(*args, **kwargs)

    return rounding


class _Switch:
    """Switches `fastmath` off while at least one run needs it, and on again after the last.

    Settings of PyTensor and environment variables are of the process: if each of two threads put
    back what it found, the first to end would switch it on under the other, which would leave it
    off.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_runs = 0
        self._before = ExitStack()

    def begin(self) -> None:
        with self._lock:
            if self._n_runs == 0:
                flags = os.environ.get(_FLAGS)
                self._before.callback(_set_flags, flags)
                self._before.enter_context(config.change_flags(numba__fastmath=False))
                _set_flags(",".join(filter(None, (flags, "numba__fastmath=False"))))
            self._n_runs += 1

    def end(self) -> None:
        with self._lock:
            self._n_runs -= 1
            if self._n_runs == 0:
                self._before.close()


_switch = _Switch()


def _set_flags(flags: str | None) -> None:
    if flags is None:
        os.environ.pop(_FLAGS, None)
    else:
        os.environ[_FLAGS] = flags


@contextmanager
def _without_fastmath() -> Iterator[None]:
    """Switch `fastmath` off here and in the processes that are started meanwhile."""
    _switch.begin()
    try:
        yield
    finally:
        _switch.end()
