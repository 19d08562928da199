"""What families with independent columns have in common, and those of whole numbers besides.

Rows of counts or codes reach the kernels as they are: `prior.shift` is kept for the moves, which
ask every prior for it, and never subtracted.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pymc_dpsplit.components.declaration import Component


class ByColumn(Component):
    """A family whose columns are independent given the parameters of the cluster."""

    def natural(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(parameters)

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        # What is known of a row says nothing about the rest.
        drawn = self.draw_rows(rng, parameters, labels).reshape(rows.shape)
        return np.where(is_missing, drawn, rows)


class DiscreteByColumn(ByColumn):
    """A discrete family whose columns are independent given the cluster, as under its base."""

    row_ndim: ClassVar[int] = 1
    is_discrete: ClassVar[bool] = True

    @abstractmethod
    def suited_to(self, rows: np.ndarray) -> "DiscreteByColumn":
        """Refuse rows that are not in the support of the family; return it as it suits them."""

    def hyperparameter_ndims(self) -> dict[str, int]:
        return dict.fromkeys(self.hyperparameters, 1)
