"""Find the topic models of a PyMC model and the variables that belong to them."""

from dataclasses import dataclass

import numpy as np
from pymc.model import Model
from pytensor.graph.basic import Variable

from pymc_dpsplit.data.sparse_rows import SparseRows
from pymc_dpsplit.topic_model.measure import TopicDocuments, TopicMeasure
from pymc_dpsplit.topics.state import TopicState
from pymc_dpsplit.variables.declared_models import declared_in
from pymc_dpsplit.variables.sparse_data import rows_behind


@dataclass(frozen=True)
class TopicVariables:
    """Variables of one topic model, found in the graph of a model.

    Attributes
    ----------
    name : str
    measure : dict
        Role to free variable.
    value_names : dict
        The same roles to the name of the value in a point.
    concentrations : dict
        ``"alpha"``, ``"gamma"``, ``"eta"`` to TensorVariable.
    rv : TensorVariable
        The documents.
    rows : SparseRows
        Their counts.
    """

    name: str
    measure: dict[str, Variable]
    value_names: dict[str, str]
    concentrations: dict[str, Variable]
    rv: Variable
    rows: SparseRows

    @property
    def owned(self) -> list[Variable]:
        """Return the free variables that the step moves."""
        return list(self.measure.values())

    @property
    def op(self) -> TopicMeasure:
        """Return the op of the measure."""
        op: TopicMeasure = self.owned[0].owner.op
        return op

    def point_values(self, state: TopicState, log_words: float | None) -> dict[str, np.ndarray]:
        """Return the entries of a point for a state.

        Parameters
        ----------
        state : TopicState
        log_words : float, optional
            Only where eta is a variable.

        Returns
        -------
        dict
        """
        values = {
            "n_topics": len(state.tables),
            "n_tables": state.tables.sum(),
            # A point holds the logarithm.
            "new_weight": state.log_rest,
            "weights": self.op.padded(state.weights),
            "log_words": log_words,
        }
        types = zip(self.op.roles, self.op.output_types, strict=True)
        return {self.value_names[role]: np.asarray(values[role], of.dtype) for role, of in types}


def find_topic_models(model: Model) -> dict[str, TopicVariables]:
    """Find the topic models whose documents and variables are all in a model.

    Parameters
    ----------
    model : pymc.Model

    Returns
    -------
    dict
        Name to `TopicVariables`, in order of declaration.
    """
    found = {}
    for name, node, measure, value_names, rv in declared_in(
        model, TopicMeasure.step_name, TopicDocuments
    ):
        concentrations = dict(zip(("alpha", "gamma", "eta"), node.inputs[1:4], strict=True))
        rows = rows_behind(model.rvs_to_values[rv])
        found[name] = TopicVariables(name, measure, value_names, concentrations, rv, rows)
    return found
