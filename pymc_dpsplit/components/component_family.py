"""Base class of component families, which users construct with hyperparameters.

A family is a file with a subclass of `ComponentFamily` and the operations of `components.base`.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from pymc_dpsplit.components.arguments import printed, shape_given
from pymc_dpsplit.components.doubtful_rows import unwarned
from pymc_dpsplit.components.features import take_features
from pymc_dpsplit.components.hyperparameters import Requirements, constructor_of
from pymc_dpsplit.components.listed_names import ListedNames
from pymc_dpsplit.components.lost_digits import warning_of_lost_digits
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.data.sparse_rows import Rows

Values = Mapping[str, Any]


class ComponentFamily(ListedNames, ABC):
    """A component family with its hyperparameters, as declared by a user.

    Attributes
    ----------
    hyperparameters : dict
        Name to number, array or PyMC variable, in the order of the constructor.
    requirements : dict
        Name of each hyperparameter to its `Requirement`; a family without requirements defines
        its own constructor, `hyperparameter_ndims` and `check`.
    row_ndim : int
        0 if one observation is a scalar, 1 if it is a vector of D features.
    most_precise_count : float
        For discrete families: counts up to it have log densities of nine digits.
    is_discrete, is_bounded, holds_covariates : bool
        Whether observations are whole numbers, are restricted to a part of the real line, or hold
        covariates.  No other step method can move them: see `components.unmoved_rows`.
    reads_sparse, has_margins, takes_categories : bool
        Whether observations may be `SparseRows`, so that `arranged` returns no array; whether some
        columns of a row have a law of their own: otherwise no entry may be missing; and whether
        observations may be strings, which are replaced by codes.
    examples : tuple of float
        Two different legal entries of an observation.
    likelihood_arguments : tuple of str
        Hyperparameters on which the density of a row depends directly; may be set per instance.
        Methods read them from `hyperparameters`, see `components.fixed_hyperparameters`.  If one
        is a PyMC variable, the labels are a variable of the model too.
    has_covariates, covariate_data : bool, SharedVariable or None
        Whether the density of a row depends on covariates of that row, so that it is undefined for
        other rows than the observed ones, and their ``pm.Data``; may be set per instance.
    parameters, graph_ndims : dict
        Number of axes of length D of each cluster parameter, and of those of `graph_parameters`.
    """

    hyperparameters: dict[str, Any]
    requirements: ClassVar[Requirements] = {}
    row_ndim: ClassVar[int]
    is_discrete: ClassVar[bool] = False
    most_precise_count: ClassVar[float] = 1e7
    takes_categories: ClassVar[bool] = False
    is_bounded: ClassVar[bool] = False
    holds_covariates: ClassVar[bool] = False
    examples: ClassVar[tuple[float, float]] = (0.0, 1.0)
    likelihood_arguments: tuple[str, ...] = ()
    has_covariates: bool = False
    covariate_data: Any = None
    reads_sparse: ClassVar[bool] = False
    has_margins: ClassVar[bool] = True
    parameters: ClassVar[dict[str, int]]
    graph_ndims: ClassVar[dict[str, int]]

    if TYPE_CHECKING:
        # Generated from `requirements`, or defined by the family.
        def __init__(self, *values: Any, **named: Any) -> None: ...

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "requirements" in vars(cls) and "__init__" not in vars(cls):
            cls.__init__ = constructor_of(cls.requirements)  # type: ignore[method-assign]

    def __repr__(self) -> str:
        inside = (
            # A number of NumPy is shown as a plain one.
            f"{name}={printed(value.item() if isinstance(value, np.generic) else value)}"
            for name, value in self.hyperparameters.items()
        )
        return f"{type(self).__name__}({', '.join(inside)})"

    @classmethod
    @abstractmethod
    def from_data(cls, observed: Any) -> "ComponentFamily":
        """Return a family with weakly informative hyperparameters on the scale of the data."""

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with these hyperparameters, name to value."""
        copied = copy.copy(self)
        copied.hyperparameters = dict(values)
        return copied

    def read_table(self, observed: Any) -> tuple["ComponentFamily", Any]:
        """Convert a table to an array; return the family that knows its columns, and the array.

        The default returns the family and the observations unchanged.
        """
        return self, observed

    def for_n_features(self, n_features: int) -> "ComponentFamily":
        """Return the family adapted to rows of D = `n_features`, by default unchanged."""
        return self

    def declared_features(self) -> int | None:
        """Return the number of features that the hyperparameters imply, or None if any fits."""
        for name, ndim in self.hyperparameter_ndims().items():
            shape = shape_given(name, self.hyperparameters[name])
            if ndim and len(shape) == ndim and shape[0] is not None:
                return int(shape[0])
        return None if self.row_ndim else 1

    def discrete_features(self, n_features: int) -> np.ndarray:
        """Return which of D = `n_features` features have whole numbers, an array of bool (D,)."""
        return np.full(n_features, self.is_discrete)

    def example_hyperparameters(self, n_features: int) -> dict[str, Any]:
        """Return legal numerical hyperparameters, which stand in for PyMC variables in checks."""
        sample = np.repeat(np.array(self.examples)[:, None], n_features, axis=1)
        sample = sample if self.row_ndim else sample[:, 0]
        with unwarned():
            return type(self).from_data(sample).hyperparameters

    def support_point(self, means: np.ndarray) -> np.ndarray:
        """Return a legal row (D,) near the means of the features (D,)."""
        return np.rint(means) if self.is_discrete else means

    def validate_rows(self, rows: Any) -> "ComponentFamily":
        """Check that rows are in the support of the family; return the family adapted to them.

        The default accepts all rows.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D), or SparseRows
            NaN where missing; sparse only if `reads_sparse`.

        Returns
        -------
        ComponentFamily
            `self`, or a copy with properties inferred from the rows, such as numbers of categories.

        Raises
        ------
        ValueError
            With one sentence that names the value, its column and what to give instead.
        """
        return self

    def warning_for(self, rows: np.ndarray) -> str | None:
        """Return a warning of one sentence about rows that are to be sampled, or None.

        By default it names an entry that costs the others their digits.

        Parameters
        ----------
        rows : ndarray of float64 or float32, shape (N, D)
            In the support of the family.

        Returns
        -------
        str or None
        """
        most = self.most_precise_count if self.is_discrete else None
        return warning_of_lost_digits(rows, most)

    def arranged(self, rows: Rows) -> Any:
        """Return observations in the form that the kernels of the family read.

        The default is the array itself.  Moves use only the attribute `shape` (N, D) of the form.
        """
        return read_only(rows)

    def own_dims(self, name: str) -> dict[str, int]:
        """Return name to length of the axes that a (hyper)parameter has after those of length D.

        The default is none.  In a trace the name of an axis is prefixed by that of the mixture.
        """
        return {}

    def own_coords(
        self, name: str, feature_names: Sequence[Any] | None
    ) -> dict[str, Sequence[Any]]:
        """Return name to coordinate of the axes of `own_dims`, where they are known.

        Parameters
        ----------
        name : str
            Name of a parameter.
        feature_names : sequence, optional
            Names of the D features, if they have any.
        """
        return {}

    def category_names(self, name: str) -> np.ndarray | None:
        """Return the names of categories (D, C) of a parameter, "" where a feature has fewer."""
        return None

    def shape_of(self, name: str, ndim: int, n_features: int) -> tuple[int, ...]:
        """Return the shape of a parameter of one cluster, or of a hyperparameter.

        Parameters
        ----------
        name : str
        ndim : int
            Its number of axes of length D.
        n_features : int
            Number of features D.

        Returns
        -------
        tuple of int
        """
        return (*[n_features] * ndim, *self.own_dims(name).values())

    def hyperparameter_ndims(self) -> dict[str, int]:
        """Return the number of axes of length D of every hyperparameter."""
        return {name: of.ndim for name, of in self.requirements.items()}

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
            Name to ndarray of float64 of shape `shape_of(name, ...)`.

        Raises
        ------
        ValueError
            With one sentence that names the argument, the fault and the remedy.
        """
        return {
            name: of.check(name, values[name], n_features) for name, of in self.requirements.items()
        }

    @abstractmethod
    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        """Return the prior that is passed to the kernels.

        Parameters
        ----------
        values : mapping
            Hyperparameters as `check` returned them.
        shift : ndarray of float64, shape (D,)
            Kernels subtract it from each observation they read, to reduce rounding errors.

        Returns
        -------
        NamedTuple
        """

    @abstractmethod
    def unpack(self, params: np.ndarray, shift: np.ndarray) -> dict[str, np.ndarray]:
        """Convert rows of `params` (K, P) to named cluster parameters, each (K, ...).

        What a row gives must not depend, in any digit, on those beside it.
        """

    @abstractmethod
    def pack(self, parameters: Mapping[str, np.ndarray], shift: np.ndarray) -> np.ndarray:
        """Convert named cluster parameters, each (K, ...), to rows of `params` (K, P)."""

    @abstractmethod
    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a finite, central value (...) of each parameter under the base measure."""

    @abstractmethod
    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Convert cluster parameters to the form that `log_base` and `log_density` take.

        Only the step moves cluster parameters, so no gradient with respect to them is needed, and
        NumPy does the linear algebra over clusters, which PyTensor takes ten seconds to compile.

        Parameters
        ----------
        parameters : mapping
            Name to ndarray of float64 (K, ...), for each of `parameters`.

        Returns
        -------
        dict
            Name to ndarray of float64 (K, ...), for each of `graph_ndims`.
        """

    @abstractmethod
    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        """Return the log density of the base measure at each cluster, as a graph.

        The density is that of the parameters in `parameters`, not of their `graph_parameters`.

        Parameters
        ----------
        graph_parameters : mapping
            Name to symbolic or numerical tensor (K, ...), as `graph_parameters` returns it.
        values : mapping
            Name to symbolic or numerical hyperparameter.
        pt : module
            `pytensor.tensor`, passed in so that families import no PyTensor.

        Returns
        -------
        symbolic vector (K,)
        """

    @abstractmethod
    def log_density(self, rows: Any, graph_parameters: Values, pt: Any) -> Any:
        """Return the log density of each observation under its own cluster, as a graph.

        Parameters
        ----------
        rows : symbolic or numerical tensor, shape (N,) or (N, D)
            The graph has a gradient with respect to it.
        graph_parameters : mapping
            Name to tensor (N, ...): for each row the `graph_parameters` of its cluster.
        pt : module
            `pytensor.tensor`, or `numpy` if all are numerical.

        Returns
        -------
        symbolic or numerical vector (N,)
        """

    def restrict(
        self, values: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the hyperparameters of the marginal law of some features, eq. (7.40).

        The default selects the entries of these features.

        Parameters
        ----------
        values : mapping
            Hyperparameters as `check` returned them.
        features : ndarray of int, shape (D',)
            Distinct features, at least one; [0] where observations are scalars.

        Returns
        -------
        dict
            Copies, in the form that `check` returns for D' features.
        """
        return take_features(values, self.hyperparameter_ndims(), features)

    def restrict_parameters(
        self, parameters: Mapping[str, np.ndarray], features: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return the cluster parameters (K, ...) of some features, see `restrict`."""
        return take_features(parameters, self.parameters, features, n_before=1)

    def of_features(self, features: np.ndarray) -> Self:
        """Return the family of rows cut to some features, for what `restrict` returns.

        Parameters
        ----------
        features : ndarray of int, shape (D',)
            Distinct features, ascending.

        Returns
        -------
        ComponentFamily
            By default itself.
        """
        return self

    @abstractmethod
    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        """Draw cluster parameters from the base measure.

        Parameters
        ----------
        rng : numpy.random.Generator
        values : mapping
            Hyperparameters as `check` returned them.
        size : int
            Number of clusters.

        Returns
        -------
        dict
            Name to ndarray of float64 (size, ...), for each of `parameters`.
        """

    @abstractmethod
    def draw_rows(
        self,
        rng: np.random.Generator,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        """Draw one observation from the cluster of each label.

        Parameters
        ----------
        rng : numpy.random.Generator
        parameters : mapping
            Name to ndarray of float64 (K, ...), for each of `parameters`.
        labels : ndarray of int, shape (n,)

        Returns
        -------
        ndarray of float64, shape (n,) or (n, D)
        """

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
            D = 1 where observations are scalars.  Values in missing entries are not used.
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
