"""Interface of non-conjugate families."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily


class NonconjugateFamily(ComponentFamily):
    """A non-conjugate family, whose cluster parameters are part of the state of the chain.

    Its prior is a `components.nonconjugate.compiled_prior.CompiledPrior`.

    Attributes
    ----------
    product_class : type
        Class of products that have such a part.
    """

    product_class: ClassVar[type]

    @abstractmethod
    def log_prior_predictive(self, rows: Any, values: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the log of the density of each row averaged over the base measure, eq. (9.6).

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
        values : mapping
            Hyperparameters as `check` returned them.

        Returns
        -------
        ndarray of float64, shape (N,)
        """
