"""Base classes of families with independent columns.

Kernels read rows of counts, codes or positive numbers unshifted: the `shift` of a prior is zero.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.component_family import ComponentFamily, Values
from pymc_dpsplit.components.parameter_laws import ParameterLaw
from pymc_dpsplit.components.support import Support


class ByColumn(ComponentFamily):
    """A family whose columns are independent given the parameters of the cluster."""

    def graph_parameters(self, parameters: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(parameters)

    def draw_missing(
        self,
        rng: np.random.Generator,
        rows: np.ndarray,
        is_missing: np.ndarray,
        parameters: Mapping[str, np.ndarray],
        labels: np.ndarray,
    ) -> np.ndarray:
        # Columns are independent, so the observed entries of a row do not matter.
        drawn = self.draw_rows(rng, parameters, labels).reshape(rows.shape)
        return np.where(is_missing, drawn, rows)


class DiscreteByColumn(ByColumn):
    """A discrete family with columns independent given the cluster and in the base measure."""

    row_ndim: ClassVar[int] = 1
    is_discrete: ClassVar[bool] = True

    @abstractmethod
    def validate_rows(self, rows: np.ndarray) -> "DiscreteByColumn":
        """Refuse rows outside the support of the family; return the family adapted to them."""

    def hyperparameter_ndims(self) -> dict[str, int]:
        return dict.fromkeys(self.hyperparameters, 1)


class OneParameterByColumn(ByColumn):
    """A family with one parameter per column, whose kernels `implement_by_column` generates.

    Attributes
    ----------
    law : ParameterLaw
        Distribution of the parameter under the base measure.
    prior_class : type
        NamedTuple class with the field `shift`, then one field per hyperparameter.
    support : Support
        Legal entries.
    """

    row_ndim: ClassVar[int] = 1
    law: ClassVar[ParameterLaw]
    prior_class: ClassVar[Any]
    support: ClassVar[Support]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if hasattr(cls, "law"):
            cls.parameters = cls.graph_ndims = {cls.law.parameter: 1}

    @classmethod
    def from_data(cls, observed: Any) -> Self:
        """Return weakly informative hyperparameters on the scale of the data, see the class.

        Parameters
        ----------
        observed : array-like of shape (N, D)
            NaN or masked entries are ignored.

        Returns
        -------
        ComponentFamily

        Raises
        ------
        ValueError
            If the data are empty or not in the support, or all entries of a column are missing.

        Examples
        --------
        >>> import pymc_dpsplit as dps
        >>> dps.Poisson.from_data([[0, 3], [4, 7]]).hyperparameters["b0"]
        array([0.5, 0.2])
        """
        rows = rows_of(observed, cls.row_ndim, may_miss=True)
        cls.support.refuse(rows)
        return cls(**cls.defaults(rows)).validate_rows(rows)

    @classmethod
    @abstractmethod
    def defaults(cls, rows: np.ndarray) -> dict[str, Any]:
        """Return weakly informative hyperparameters for rows (N, D), NaN where missing."""

    def validate_rows(self, rows: np.ndarray) -> Self:
        self.support.refuse(rows)
        return self

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        names = self.prior_class._fields[1:]
        return self.prior_class(np.zeros_like(shift), *(values[name] for name in names))

    def central(self, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self.law.central(values)

    def log_base(self, graph_parameters: Values, values: Values, pt: Any) -> Any:
        return self.law.log_density(graph_parameters, values, pt)

    def draw_base(
        self, rng: np.random.Generator, values: Mapping[str, np.ndarray], size: int
    ) -> dict[str, np.ndarray]:
        return self.law.draw(rng, values, size)
