"""What a draw conditions on, read from a point of PyMC, and the target of the chain made of it."""

from typing import Any

import numpy as np

from pymc_dpsplit import sampler
from pymc_dpsplit.data.blocks import column_means
from pymc_dpsplit.variables import MixtureVariables
from pymc_dpsplit.variables.conditioning import Conditioning, PointEvaluator


class TargetReader:
    """Makes the target of each draw; prior and data are recomputed only if they change.

    Parameters
    ----------
    mixture : MixtureVariables
    evaluator : PointEvaluator
        Of points of the model.

    Attributes
    ----------
    shift : ndarray of float64, shape (D,)
        Subtracted from the observations, to reduce rounding errors.
    """

    def __init__(self, mixture: MixtureVariables, evaluator: PointEvaluator) -> None:
        self._items, self.evaluator = mixture.items, evaluator
        self.centre(np.empty(0))

    def centre(self, centres: np.ndarray) -> None:
        """Subtract `centres`, shape (D,), from the observations."""
        self.shift = centres
        self._data: Any = None
        self._prior: Any = None
        self._made_for: Any = None

    @property
    def rows_are_fixed(self) -> bool:
        """Return whether the observations are the same in every draw."""
        return self.evaluator.rows_are_fixed

    def read(self, point: dict[str, np.ndarray]) -> tuple[Conditioning, sampler.Target]:
        """Read what a draw conditions on, and make its target."""
        conditioning = self.evaluator.read(point)
        if not self.rows_are_fixed:
            self.centre(column_means(conditioning.rows))
        return conditioning, self.target_of(conditioning)

    def target_of(self, conditioning: Conditioning) -> sampler.Target:
        """Make the target of what was read."""
        if self._made_for is not conditioning.values or self._data is None:
            self._prior = self._items.prior(conditioning.values, self.shift)
            self._made_for = conditioning.values
        if self._data is None:
            self._data = self._items.arranged(conditioning.rows)
        return sampler.Target(self._prior, self._data, conditioning.law)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to one process: views of the data and addresses."""
        return {**self.__dict__, **dict.fromkeys(("_data", "_prior", "_made_for"))}
