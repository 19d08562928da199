"""Finding the mixtures of a model, and what belongs to each of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.base import Component
from pymc_dpsplit.variables.measure import ROLES, RandomMeasure, pad_rows
from pymc_dpsplit.variables.rows import MixtureRows


@dataclass(frozen=True)
class MixtureVariables:
    """Variables of one mixture, read off the graph of a model.

    Attributes
    ----------
    name : str
    component : Component
        Family; the hyperparameters in force are `hyperparameters`.
    alpha : TensorVariable
    hyperparameters : dict
        Name to TensorVariable.
    measure : dict
        ``"n_clusters"``, ``"new_weight"``, ``"weights"`` and each cluster parameter to its free
        variable.
    value_names : dict
        The same keys to the name of the value in a point.
    log_new_weight : bool
        Whether a point holds the logarithm of the new weight.
    observed : TensorVariable
    data : TensorVariable
        Values of `observed`.
    n_features : int
        Number of features D of an observation.
    """

    name: str
    component: Component
    alpha: Variable
    hyperparameters: dict[str, Variable]
    measure: dict[str, Variable]
    value_names: dict[str, str]
    log_new_weight: bool
    observed: Variable
    data: Variable
    n_features: int

    @property
    def owned(self) -> list[Variable]:
        """Free variables that the step moves."""
        return list(self.measure.values())

    @property
    def max_clusters(self) -> int:
        """Number of rows L kept per draw."""
        return int(self.measure["weights"].type.shape[0])

    def rows(self) -> np.ndarray:
        """Return the observations as they are now, checked: float64, shape (N, D)."""
        values = self.data.eval()
        try:
            rows = rows_of(values, self.component.row_ndim)
        except ValueError as error:
            raise ValueError(f"{self.name}: {error}") from None
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"{self.name}: observed has {rows.shape[1]} features but was declared with "
                f"{self.n_features}; declare the mixture anew."
            )
        return rows

    def point_values(
        self,
        n_clusters: int,
        weights: np.ndarray,
        log_rest: float,
        parameters: Mapping[str, np.ndarray],
    ) -> dict[str, np.ndarray]:
        """Return the part of a point that holds this mixture, in new arrays.

        Parameters
        ----------
        n_clusters : int
            Occupied clusters K.
        weights : ndarray of float64, shape (K,)
            In decreasing order; the first `max_clusters` are kept.
        log_rest : float
            Logarithm of the weight of everything not yet seen.
        parameters : mapping
            Name to ndarray (K, ...), in the same order.

        Returns
        -------
        dict
            Name of value to ndarray.
        """
        new_weight = log_rest if self.log_new_weight else math.exp(log_rest)
        values = {
            "n_clusters": np.asarray(n_clusters, dtype=np.int64),
            "new_weight": np.asarray(new_weight),
            "weights": pad_rows(weights, self.measure["weights"].type.shape, 0.0),
        }
        for name, parameter in parameters.items():
            values[name] = pad_rows(parameter, self.measure[name].type.shape, np.nan)
        return {self.value_names[role]: value for role, value in values.items()}


def is_owned(variable: Any) -> bool:
    """Whether a variable is one that the step of a mixture moves."""
    node = getattr(variable, "owner", None)
    return node is not None and isinstance(node.op, RandomMeasure)


def find_mixtures(model: Model) -> dict[str, MixtureVariables]:
    """Find the mixtures of a model whose observations and variables are all in it.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    dict
        Name to `MixtureVariables`, in order of declaration.
    """
    observed = {
        rv.owner.op.target: rv
        for rv in model.observed_RVs
        if rv.owner is not None and isinstance(rv.owner.op, MixtureRows)
    }
    nodes = {rv.owner.op.target: rv.owner for rv in model.free_RVs if is_owned(rv)}
    return {
        name: _variables_of(node, observed[name], model)
        for name, node in nodes.items()
        if name in observed and set(node.outputs[1:]) <= set(model.free_RVs)
    }


def _variables_of(node: Any, observed: Variable, model: Model) -> MixtureVariables:
    op: RandomMeasure = node.op
    _, alpha, *hyperparameters = node.inputs
    roles = (*ROLES, *op.component.parameters)
    measure = dict(zip(roles, node.outputs[1:], strict=True))
    names = {role: str(model.rvs_to_values[rv].name) for role, rv in measure.items()}
    return MixtureVariables(
        name=op.target,
        component=op.component,
        alpha=alpha,
        hyperparameters=dict(
            zip(op.component.hyperparameter_ndims(), hyperparameters, strict=True)
        ),
        measure=measure,
        value_names=names,
        log_new_weight=model.rvs_to_transforms[measure["new_weight"]] is not None,
        observed=observed,
        data=model.rvs_to_values[observed],
        n_features=op.n_features,
    )
