"""Values of a model held fixed, in shared variables, while one of them moves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.compile.sharedvalue import shared
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace


class HeldValues:
    """Shared variables in the place of all values of a model but one.

    A function compiled of graphs in which they stand reads the terms of a mixture as any other
    step method does, see `owned_terms`.

    Parameters
    ----------
    model : pymc.Model
    moving : TensorVariable
        The value that stays an input.
    point : mapping
        Any point of the model.
    """

    def __init__(self, model: Model, moving: Variable, point: Mapping[str, np.ndarray]) -> None:
        self._holders: dict[Variable, Any] = {
            value: shared(np.asarray(point[str(value.name)]))
            for value in model.value_vars
            if value is not moving
        }

    def replace(self, graphs: Sequence[Variable]) -> list[Any]:
        """Graphs with the held values in place of the others."""
        return clone_replace(list(graphs), self._holders) if graphs else []

    def set(self, point: Mapping[str, np.ndarray]) -> None:
        """Take the held values from a point."""
        for value, holder in self._holders.items():
            holder.set_value(point[str(value.name)], borrow=True)
