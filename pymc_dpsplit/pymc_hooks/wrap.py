"""Replacement of functions of PyMC by wrapped versions."""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

_WRAPPED_BY = "_dpsplit_wrapped_by"


def wrap(attribute: str, wrapper: Callable[..., Any], *holders: ModuleType) -> None:
    """Replace a function by its wrapped version; repeated calls have no effect.

    Parameters
    ----------
    attribute : str
        Name of the function.
    wrapper : callable
        Takes the function and returns its replacement.
    *holders : module
        All modules that contain the function, which must be the same object in all of them.
    """
    function = getattr(holders[0], attribute)
    by = f"{wrapper.__module__}.{getattr(wrapper, '__qualname__', wrapper)}"
    done = getattr(function, _WRAPPED_BY, ())
    if by in done:
        return
    wrapped = functools.wraps(function)(wrapper(function))
    setattr(wrapped, _WRAPPED_BY, (*done, by))
    for holder in holders:
        setattr(holder, attribute, wrapped)
