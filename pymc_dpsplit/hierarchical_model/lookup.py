"""Find the hierarchical mixtures of a PyMC model and the variables that belong to them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.model import Model
from pymc.pytensorf import rvs_in_graph
from pytensor.graph.basic import Variable

from pymc_dpsplit.components.arguments import rows_of
from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.data.fixed_rows import FixedRows
from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.hierarchical_model.groups import RowGroups
from pymc_dpsplit.hierarchical_model.latent_rows import LatentGroupedRows
from pymc_dpsplit.hierarchical_model.measure import (
    LABELS,
    N_TABLES,
    GroupedRows,
    HierarchicalMeasure,
    overflow_of_groups,
)
from pymc_dpsplit.hierarchical_model.missing import GroupedMissing
from pymc_dpsplit.variables.concentration import roots_of
from pymc_dpsplit.variables.conditioning import faults_of
from pymc_dpsplit.variables.declared_models import declared_in
from pymc_dpsplit.variables.lookup import MixtureVariables
from pymc_dpsplit.variables.observed import values_of
from pymc_dpsplit.variables.rows import centred_rows


@dataclass(frozen=True)
class HierarchicalVariables:
    """Variables of one hierarchical mixture, found in the graph of a model.

    Attributes
    ----------
    name : str
    measure : dict
        Role to free variable.
    value_names : dict
        The same roles to the name of the value in a point.
    concentrations : dict
        ``"alpha"``, ``"gamma"`` to TensorVariable.
    hyperparameters : dict
        Name to TensorVariable.
    rv : TensorVariable
        The rows, observed or latent.
    data : TensorVariable
        Their values, NaN where missing; `rv` itself if it is latent.
    unobserved : TensorVariable, optional
        The missing entries.
    """

    name: str
    measure: dict[str, Variable]
    value_names: dict[str, str]
    concentrations: dict[str, Variable]
    hyperparameters: dict[str, Variable]
    rv: Variable
    data: Variable
    unobserved: Variable | None = None

    @property
    def owned(self) -> list[Variable]:
        """Return the free variables that the step moves."""
        entries = [] if self.unobserved is None else [self.unobserved]
        return [*self.measure.values(), *entries]

    @property
    def op(self) -> HierarchicalMeasure:
        """Return the op of the measure."""
        op: HierarchicalMeasure = self.owned[0].owner.op
        return op

    @property
    def component(self) -> ComponentFamily:
        """Return the family, whose own hyperparameters are not used."""
        return self.op.component

    @property
    def groups(self) -> RowGroups:
        """Return the groups of the rows."""
        return self.op.groups

    @property
    def is_latent(self) -> bool:
        """Return whether the rows were declared as a latent variable."""
        return isinstance(self.rv.owner.op, LatentGroupedRows)

    @property
    def rows(self) -> Any:
        """Return the rows, shape (N, D), NaN where missing."""
        values = values_of(self.data)
        if isinstance(values, SparseRows):
            return values
        with faults_of(self.name):
            rows = rows_of(values, self.component.row_ndim, may_miss=self.unobserved is not None)
            # pm.set_data may have replaced them; incomplete data cannot be replaced.
            if not isinstance(values, FixedRows) and self.unobserved is None:
                self.component.validate_rows(rows)
                self.component.warning_for(rows)
        return rows

    def roots_of_concentrations(self, model: Model) -> set[Variable]:
        """Return the free variables of a model on which alpha and gamma depend."""
        return set().union(*(roots_of(graph, model) for graph in self.concentrations.values()))

    @property
    def as_mixture(self) -> MixtureVariables:
        """Return the mixture of the global measure, which is that of a new group."""
        entries = {} if self.unobserved is None else {"unobserved": self.unobserved}
        return MixtureVariables(
            name=self.name,
            component=self.component,
            discount=pt.constant(0.0),
            strength=self.concentrations["gamma"],
            hyperparameters=self.hyperparameters,
            measure=self.measure,
            value_names=self.value_names,
            log_new_weight=True,
            rv=self.rv,
            unobserved=self.unobserved,
            data=centred_rows(self.data, entries),
            n_features=self.op.n_features,
        )

    def point_values(
        self,
        weights: np.ndarray,
        log_rest: float,
        parameters: dict[str, np.ndarray],
        n_tables: int,
        labels: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Return the entries of a point for a measure.

        Parameters
        ----------
        weights : ndarray of float64, shape (K,)
            In decreasing order.
        log_rest : float
        parameters : dict
            Name to ndarray (K, ...), in the same order.
        n_tables : int
        labels : ndarray of int, shape (N,)
            In the same order; they are no entry unless they are variables.

        Returns
        -------
        dict

        Raises
        ------
        ValueError
            If other variables depend on clusters that are not recorded.
        """
        n_clusters, kept = len(weights), self.op.max_clusters
        vary = rvs_in_graph(list(self.hyperparameters.values()))
        if n_clusters > kept and (vary or self.op.labelled):
            raise ValueError(overflow_of_groups(self.name, n_clusters, kept))
        values = {
            "n_clusters": n_clusters,
            # A point holds the logarithm.
            "new_weight": log_rest,
            N_TABLES: n_tables,
            LABELS: labels,
            **self.op.padded(weights, parameters),
        }
        types = zip(self.op.roles, self.op.output_types, strict=True)
        return {self.value_names[role]: np.asarray(values[role], of.dtype) for role, of in types}


def find_hierarchical(model: Model) -> dict[str, HierarchicalVariables]:
    """Find the hierarchical mixtures whose rows and variables are all in a model.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    dict
        Name to `HierarchicalVariables`, in order of declaration.
    """
    missing = {
        rv.owner.op.target: rv
        for rv in model.free_RVs
        if isinstance(getattr(rv.owner, "op", None), GroupedMissing)
    }
    found = {}
    kinds = GroupedRows, LatentGroupedRows
    for name, node, measure, value_names, rv in declared_in(
        model, HierarchicalMeasure.step_name, kinds
    ):
        keys, unobserved = node.op.component.hyperparameter_ndims(), missing.get(name)
        if unobserved is not None:
            value_names |= {"unobserved": str(model.rvs_to_values[unobserved].name)}
        found[name] = HierarchicalVariables(
            name=name,
            measure=measure,
            value_names=value_names,
            concentrations=dict(zip(("alpha", "gamma"), node.inputs[1:3], strict=True)),
            hyperparameters=dict(zip(keys, node.inputs[3:], strict=True)),
            rv=rv,
            data=model.rvs_to_values[rv] if rv in model.observed_RVs else rv,
            unobserved=unobserved,
        )
    return found
