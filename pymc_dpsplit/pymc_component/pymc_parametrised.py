"""Adapter from a family of vectors to scalars with the argument names of PyMC."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily, Values


class PyMCParametrised(ComponentFamily):
    """A family with one parameter, applied to scalar rows and with the parameter renamed.

    Parameters
    ----------
    family : ComponentFamily
        Family of vectors with independent columns, whose parameter is a number or vector per
        column.
    own, name : str
        Name of the parameter in `family`, and its new name.
    label : str
        Name in `repr`.
    """

    def __init__(self, family: ComponentFamily, own: str, name: str, label: str) -> None:
        self.hyperparameters = family.hyperparameters
        self.family, self._own, self._name, self._label = family, own, name, label
        # Class attributes of other families are instance attributes here.
        self.row_ndim = 0  # type: ignore[misc]
        self.is_discrete = family.is_discrete  # type: ignore[misc]
        self.is_bounded = family.is_bounded  # type: ignore[misc]
        self.examples = family.examples  # type: ignore[misc]
        self.parameters = self.graph_ndims = {name: 0}  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"{super().__repr__()}, for {self._label}".replace(
            "PyMCParametrised", self._family_name
        )

    @property
    def _family_name(self) -> str:
        return type(self.family).__name__

    @classmethod
    def from_data(cls, observed: Any) -> "PyMCParametrised":
        raise ValueError("a renamed family has no hyperparameters of its own; take the family's.")

    def validate_rows(self, rows: np.ndarray) -> "PyMCParametrised":
        self.family.validate_rows(rows)
        return self

    def hyperparameter_ndims(self) -> dict[str, int]:
        return dict.fromkeys(self.hyperparameters, 0)

    def own_dims(self, name: str) -> dict[str, int]:
        """Return the lengths of own axes under the names of `Component`."""
        lengths = self.family.own_dims(self._own if name == self._name else name).values()
        return {f"{name}_dim_{axis}": length for axis, length in enumerate(lengths)}

    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        return {name: of[0] for name, of in self.family.check(_columns(values), 1).items()}

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        return self.family.prior(_columns(values), shift)

    def _inward(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {self._own: parameters[self._name][:, None]}

    def _outward(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        return {self._name: parameters[self._own][:, 0]}

    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        return self._outward(self.family.unpack(params, shift))

    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        return self.family.pack(self._inward(parameters), shift)

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {self._name: self.family.central(_columns(values))[self._own][0]}

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(parameters)

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        inner = self.family.graph_parameters(self._inward(graph_parameters))
        return self.family.log_base(inner, {key: value[None] for key, value in values.items()}, pt)

    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        return self.family.log_density(rows[:, None], self._inward(graph_parameters), pt)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        return self._outward(self.family.draw_base(rng, _columns(values), size))

    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        return self.family.draw_rows(rng, self._inward(parameters), labels)[:, 0]

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        known = rng, rows, is_missing
        return self.family.draw_missing(*known, self._inward(parameters), labels)


def _columns(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the hyperparameters with an axis of one column."""
    return {name: np.asarray(value)[None] for name, value in values.items()}
