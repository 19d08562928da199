"""Replacement of functions of PyMC by wrapped versions, which are imported when they are needed.

Importing what samples takes as long as importing PyMC.  A wrapped function imports its wrapper in a
call, and only if a mixture can exist, which needs the variables of this package; otherwise it calls
the function of PyMC.
"""

import functools
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

_WRAPPED_BY = "_dpsplit_wrapped_by"
_PACKAGE = __name__.split(".")[0]
_NEEDED_BY_A_MIXTURE = f"{_PACKAGE}.variables"


def wrap(attribute: str, wrapper: str, *holders: str) -> None:
    """Replace a function by its wrapped version; repeated calls have no effect.

    Parameters
    ----------
    attribute : str
        Name of the function.
    wrapper : str
        Module of this package and name of a function in it, such as "step.step_order:ordering".  It
        takes the function and returns its replacement.
    *holders : str
        Names of all modules that contain the function, which must be the same object in all of
        them.  All but the first may be modules that are not imported; they will import the wrapped
        version.
    """
    modules = [sys.modules[holder] for holder in holders if holder in sys.modules]
    function = getattr(modules[0], attribute)
    done = getattr(function, _WRAPPED_BY, ())
    if wrapper in done:
        return
    wrapped = _wrapped_when_called(function, wrapper)
    setattr(wrapped, _WRAPPED_BY, (*done, wrapper))
    for module in modules:
        setattr(module, attribute, wrapped)


def _wrapped_when_called(function: Callable[..., Any], wrapper: str) -> Callable[..., Any]:
    module, name = wrapper.split(":")

    @functools.cache
    def replacement() -> Any:
        replaced: Callable[..., Any] = getattr(import_module(f"{_PACKAGE}.{module}"), name)(
            function
        )
        return replaced

    @functools.wraps(function)
    def calling(*args: Any, **kwargs: Any) -> Any:
        if _NEEDED_BY_A_MIXTURE not in sys.modules:
            return function(*args, **kwargs)
        return replacement()(*args, **kwargs)

    return calling
