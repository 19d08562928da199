"""Compilation of models with a mixture such that a function rounds alike in every process.

PyTensor compiles with `fastmath`, which lets LLVM reassociate sums.  The process that compiles a
function and one that loads it from the cache then run differently optimised copies of it, which
may differ in the last bit; so the first run of a model and the next differ with one seed
(docs/decisions/0009).  Without `fastmath` they agree.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def _without_fastmath() -> Iterator[None]:
    """Switch `fastmath` off here and in the processes that are started meanwhile."""
    before = os.environ.get(_FLAGS)
    os.environ[_FLAGS] = ",".join(filter(None, (before, "numba__fastmath=False")))
    try:
        with config.change_flags(numba__fastmath=False):
            yield
    finally:
        if before is None:
            del os.environ[_FLAGS]
        else:
            os.environ[_FLAGS] = before
