"""What a user declares: a component family with its hyperparameters.

A family is a file of this folder, see `components.base`; its declaration is a subclass of
`Component`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from pymc_dpsplit.components.features import take_features
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.data.sparse_rows import Rows

Values = Mapping[str, Any]


class Component(ABC):
    """A component family with its hyperparameters, as declared by a user.

    Parameters
    ----------
    hyperparameters : dict
        Name to number, array or PyMC variable, in the order of the constructor.

    Attributes
    ----------
    row_ndim : int
        0 if one observation is a scalar, 1 if it is a vector of D features.
    is_discrete, is_bounded : bool
        Whether observations hold whole numbers, or must lie in a part of the real line: such rows
        no other step moves, so that they can neither be latent nor have a mean of their own.
    reads_sparse : bool
        Whether observations may be `SparseRows`.
    takes_categories : bool
        Whether strings may stand for the codes of observations.
    examples : tuple of float
        Two different entries that observations may have.
    likelihood_arguments : tuple of str
        Hyperparameters that the density of rows holds, beside the parameters of the cluster; an
        instance may have its own.  Methods read them off `hyperparameters`, see
        `components.given`; where one is a variable, labels are in what other steps see.
    has_covariates : bool
        Whether the density of a row depends on what is known of that row alone, so that rows
        other than those observed have none; an instance may have its own.
    parameters : dict
        Name of each cluster parameter to its number of dimensions of length D.
    natural_ndims : dict
        The same for the natural parameters, see `natural`.
    """

    row_ndim: ClassVar[int]
    is_discrete: ClassVar[bool] = False
    takes_categories: ClassVar[bool] = False
    is_bounded: ClassVar[bool] = False
    examples: ClassVar[tuple[float, float]] = (0.0, 1.0)
    likelihood_arguments: tuple[str, ...] = ()
    has_covariates: bool = False
    reads_sparse: ClassVar[bool] = False
    parameters: ClassVar[dict[str, int]]
    natural_ndims: ClassVar[dict[str, int]]

    def __init__(self, hyperparameters: dict[str, Any]) -> None:
        self.hyperparameters = hyperparameters

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.hyperparameters.items())
        return f"{type(self).__name__}({inside})"

    @classmethod
    @abstractmethod
    def from_data(cls, observed: Any) -> "Component":
        """Weakly informative hyperparameters that suit the scale of `observed`."""

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other hyperparameters."""
        copied = copy.copy(self)
        copied.hyperparameters = dict(values)
        return copied

    def read_table(self, observed: Any) -> tuple["Component", Any]:
        """Return observations as `rows_of` reads them, and the family that has arranged them.

        By default both as they are.
        """
        return self, observed

    def sized(self, n_features: int) -> "Component":
        """Return the family as it suits rows of so many features, by default as it is."""
        return self

    def declared_features(self) -> int | None:
        """Return the number of features the hyperparameters are for; None if for any."""
        for name, ndim in self.hyperparameter_ndims().items():
            if ndim and np.ndim(self.hyperparameters[name]) == ndim:
                return int(np.shape(self.hyperparameters[name])[0])
        return None if self.row_ndim else 1

    def stand_ins(self, n_features: int) -> dict[str, Any]:
        """Return legal values of the hyperparameters, in place of variables."""
        sample = np.repeat(np.array(self.examples)[:, None], n_features, axis=1)
        sample = sample if self.row_ndim else sample[:, 0]
        return type(self).from_data(sample).hyperparameters

    def support_point(self, means: np.ndarray) -> np.ndarray:
        """Return plain values of a row (D,) near the means of the features (D,)."""
        return np.rint(means) if self.is_discrete else means

    def suited_to(self, rows: Any) -> "Component":
        """Refuse rows outside the support of the family, by default none; return what suits them.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D), or SparseRows
            NaN where missing; sparse only if the family reads these.

        Returns
        -------
        Component
            `self`, or a copy that has read off the rows what was not declared.

        Raises
        ------
        ValueError
            With one sentence that names the value, its column and what to give instead.
        """
        return self

    def caveat(self, rows: np.ndarray) -> str | None:
        """Say in one sentence what to warn of before these rows are sampled, by default nothing.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
            Of the support of the family.
        """
        return None

    def arranged(self, rows: Rows) -> Any:
        """Return observations in the form that kernels of the family read.

        By default the array itself.  Any form has a `shape` (N, D); what else is in it no move
        looks at.
        """
        return read_only(rows)

    def own_dims(self, name: str) -> dict[str, int]:
        """Return the dimensions that a (hyper)parameter has after those of length D.

        By default none.  In the order of axes: the name, which in a trace follows that of the
        mixture, to the length.
        """
        return {}

    def shape_of(self, name: str, ndim: int, n_features: int) -> tuple[int, ...]:
        """Shape of a parameter of one cluster, or of a hyperparameter, of so many features."""
        return (*[n_features] * ndim, *self.own_dims(name).values())

    @abstractmethod
    def hyperparameter_ndims(self) -> dict[str, int]:
        """Return the number of dimensions of length D of every hyperparameter."""

    @abstractmethod
    def check(self, values: Values, n_features: int) -> dict[str, np.ndarray]:
        """Check numerical hyperparameters and broadcast them to their shapes.

        Parameters
        ----------
        values : mapping
            Name to number or array.
        n_features : int
            Number of features D of an observation.

        Returns
        -------
        dict
            Name to ndarray of float64, of the shape `shape_of(name, ...)`.

        Raises
        ------
        ValueError
            With one sentence that names the argument, the fault and the remedy.
        """

    @abstractmethod
    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        """Return the prior as kernels see it.

        Parameters
        ----------
        values : mapping
            What `check` returned.
        shift : ndarray of float64, shape (D,)
            What kernels subtract from each observation they read, for the sake of rounding.
        """

    @abstractmethod
    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        """Turn rows of `params` (K, P) into named cluster parameters, each (K, ...)."""

    @abstractmethod
    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        """Turn named cluster parameters, each (K, ...), into rows of `params` (K, P)."""

    @abstractmethod
    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a finite, central parameter of the base measure, without a cluster axis."""

    @abstractmethod
    def natural(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return cluster parameters in the form that densities as graphs need.

        Only the step of the mixture moves cluster parameters, so nobody needs a gradient with
        respect to them, and linear algebra over clusters is done here, in NumPy: PyTensor
        takes some ten seconds to compile it.  Arrays are (K, ...), of `natural_ndims`.
        """

    @abstractmethod
    def log_base(self, natural: Values, values: Values, pt: Any) -> Any:
        """Log density of the base measure at each cluster, as a graph.

        It is the density of the named parameters, those of `parameters`.

        Parameters
        ----------
        natural : mapping
            Name to symbolic or numerical tensor (K, ...), see `natural`.
        values : mapping
            Name to symbolic or numerical hyperparameter.
        pt : module
            `pytensor.tensor`, passed in so that families import no PyTensor.

        Returns
        -------
        symbolic vector (K,)
        """

    @abstractmethod
    def log_density(self, rows: Any, natural: Values, pt: Any) -> Any:
        """Log density of each observation under its own cluster, as a graph.

        Parameters
        ----------
        rows : symbolic or numerical tensor, shape (N,) or (N, D)
            Has a gradient.
        natural : mapping
            Name to tensor (N, ...), see `natural`: those of the cluster of each row.
        pt : module
            `pytensor.tensor`.

        Returns
        -------
        symbolic vector (N,)
        """

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the hyperparameters of the law of some features alone, docs/method.md, eq. (31).

        By default they are those of these features.

        Parameters
        ----------
        values : mapping
            What `check` returned.
        features : ndarray of int, shape (D',)
            Different features, at least one; [0] where observations are scalars.

        Returns
        -------
        dict
            Copies, as `check` returns them for D' features.
        """
        return take_features(values, self.hyperparameter_ndims(), features)

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the cluster parameters (K, ...) of some features alone, see `restrict`."""
        return take_features(parameters, self.parameters, features, n_before=1)

    @abstractmethod
    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        """Draw `size` cluster parameters from the base measure, each (size, ...)."""

    @abstractmethod
    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw one observation for each of `labels` (n,) from its cluster: (n,) or (n, D)."""

    @abstractmethod
    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw missing entries given the rest of their rows and the parameters of their clusters.

        Parameters
        ----------
        rng : numpy.random.Generator
        rows : ndarray of float64, shape (n, D)
            D = 1 where observations are scalars.  What stands in missing entries is not used.
        is_missing : ndarray of bool, shape (n, D)
        parameters : mapping
            Name to ndarray of float64 (K, ...), for each of `parameters`.
        labels : ndarray of int, shape (n,)
            Cluster of each row.

        Returns
        -------
        ndarray of float64, shape (n, D)
            A copy of `rows` with every missing entry drawn.
        """
