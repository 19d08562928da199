"""What a family must give of which nothing can be integrated out."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from pymc_dpsplit.components.declaration import Component


class NonConjugate(Component):
    """A family whose cluster parameters are part of the state of the chain.

    Its prior is a `components.generic.GenericPrior`.
    """

    @abstractmethod
    def log_prior_predictive(self, rows: Any, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Log density of each row averaged over the base measure, eq. (77).

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
        values : mapping
            Hyperparameters.

        Returns
        -------
        ndarray of float64, shape (N,)
        """
