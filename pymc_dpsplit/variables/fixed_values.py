"""Shared variables that hold values of a model fixed while others vary."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.compile.sharedvalue import shared
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace


class FixedValues:
    """Shared variables that replace all values of a model except some.

    In a function compiled from graphs with these replacements, the terms of a mixture take the form
    that they have in other step methods, see `owned_terms`.

    Parameters
    ----------
    model : pymc.Model
    moving : sequence of TensorVariable
        The values that stay inputs.
    point : mapping
        Any point of the model.
    """

    def __init__(
        self, model: Model, moving: Sequence[Variable], point: Mapping[str, np.ndarray]
    ) -> None:
        self._holders: dict[Variable, Any] = {
            value: shared(np.asarray(point[str(value.name)]))
            for value in model.value_vars
            if value not in moving
        }

    def holds(self, value: Variable) -> bool:
        """Return whether a value of the model is held fixed."""
        return value in self._holders

    def replace(self, graphs: Sequence[Variable]) -> list[Any]:
        """Replace the other values in graphs by the shared variables."""
        return clone_replace(list(graphs), self._holders) if graphs else []

    def set(self, point: Mapping[str, np.ndarray]) -> None:
        """Set the shared variables to the values of a point."""
        for value, holder in self._holders.items():
            holder.set_value(point[str(value.name)], borrow=True)
