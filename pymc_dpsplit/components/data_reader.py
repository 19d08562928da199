"""Readers of ``pm.Data``, whose value `pm.set_data` may replace."""

from collections.abc import Callable
from typing import Any

import numpy as np


class DataReader:
    """What is read of a ``pm.Data``: once for each value that it is given.

    Parameters
    ----------
    variable : SharedVariable
    read : callable
        From a value, and what was read of the value before it or None, to an array.  It raises
        ValueError for a value that does not suit.
    """

    def __init__(
        self, variable: Any, read: Callable[[np.ndarray, np.ndarray | None], np.ndarray]
    ) -> None:
        self.variable = variable
        self._read = read
        self._value = variable.get_value(borrow=True)
        self.found = read(self._value, None)

    def now(self) -> np.ndarray:
        """Return what is read of the present value."""
        value = self.variable.get_value(borrow=True)
        if value is not self._value:
            self.found = self._read(value, self.found)
            self._value = value
        return self.found


def is_data(given: Any) -> bool:
    """Whether an argument is a ``pm.Data``, and not a frame with a column of such a name."""
    return hasattr(given, "get_value") and not hasattr(given, "columns")


def is_variable(given: Any) -> bool:
    """Whether an argument is a variable, ``pm.Data`` or not, and not a frame."""
    return hasattr(given, "owner") and not hasattr(given, "columns")
