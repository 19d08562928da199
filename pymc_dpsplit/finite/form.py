"""The contract of a NUTS form: the clusters of a family as variables that NUTS moves well."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

Values = Mapping[str, Any]


class Clusters(NamedTuple):
    """Clusters as graphs.

    `inputs` are what `NutsForm.log_density` reads; `parameters` are those of the family, each
    (K, ...), by name.
    """

    inputs: tuple[Any, ...]
    parameters: dict[str, Any]


class NutsForm(ABC):
    """How NUTS moves the clusters of a family, with exactly the family's base measure as prior.

    Parameters
    ----------
    component : Component
        As `suited_to` returned it.

    Attributes
    ----------
    signature : tuple of str
        Dimensions of each input after that of clusters, "d" for features, such as ``("d", "dd")``.
    is_ordered : bool
        Whether `declare` can number clusters by their means.
    """

    signature: ClassVar[tuple[str, ...]]
    is_ordered: ClassVar[bool] = False

    def __init__(self, component: Any) -> None:
        self.component = component

    @abstractmethod
    def start(self, rows: np.ndarray, groups: np.ndarray, values: Values) -> dict[str, np.ndarray]:
        """Return initial values of the free variables, from a grouping of the rows.

        Parameters
        ----------
        rows : ndarray of float64, shape (N, D)
        groups : ndarray of bool, shape (K, N)
            Members of each cluster, which may be none.
        values : mapping
            Numerical hyperparameters.

        Returns
        -------
        dict
            Suffix of the variable's name to its value.
        """

    @abstractmethod
    def declare(self, name: str, values: Values, start: Values, ordered: bool) -> Clusters:
        """Declare the free variables in the model of the context.

        Parameters
        ----------
        name : str
            Of the mixture, with which names of variables start.
        values : mapping
            Hyperparameters as graphs.
        start : mapping
            From `start`; shapes are taken from it.
        ordered : bool
            Whether to number clusters by their means.
        """

    @abstractmethod
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        """Log density (N, K) of rows, (N, D) or (N,), under each cluster, as a graph."""

    @abstractmethod
    def draw(self, labels: Any, *inputs: Any) -> Any:
        """One random row for each of `labels` (n,), as a graph: (n,) or (n, D)."""
