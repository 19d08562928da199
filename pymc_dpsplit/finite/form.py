"""Interface of NUTS forms: cluster parameters as free variables that NUTS samples efficiently."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

Values = Mapping[str, Any]


class Clusters(NamedTuple):
    """Graphs of the clusters.

    `inputs` are the arguments of `NutsForm.log_density`; `parameters` are those of the family by
    name, each (K, ...).
    """

    inputs: tuple[Any, ...]
    parameters: dict[str, Any]


class NutsForm(ABC):
    """Parametrisation of the clusters of a family for NUTS, with its exact base measure as prior.

    Parameters
    ----------
    component : Component
        Family as `validate_rows` returned it.

    Attributes
    ----------
    signature : tuple of str
        Dimensions of each input after that of clusters, with "d" for features: ``("d", "dd")``.
    is_ordered : bool
        Whether `declare` can order clusters by their means.
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
            Members of each cluster; a cluster may be empty.
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
            Name of the mixture, the prefix of names of variables.
        values : mapping
            Hyperparameters as graphs.
        start : mapping
            Initial values from `start`, which also determine shapes.
        ordered : bool
            Whether to order clusters by their means.

        Returns
        -------
        Clusters
        """

    @abstractmethod
    def log_density(self, rows: Any, *inputs: Any) -> Any:
        """Return the log density (N, K) of rows, (N, D) or (N,), under each cluster, as a graph."""

    @abstractmethod
    def draw(self, labels: Any, *inputs: Any) -> Any:
        """Return one random row (n,) or (n, D) for each of `labels` (n,), as a graph."""
