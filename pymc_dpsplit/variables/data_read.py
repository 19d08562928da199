"""``pm.Data`` that a step reads when it is made, and `pm.set_data` may replace afterwards."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from pymc.model import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import graph_inputs
from scipy.sparse import issparse

from pymc_dpsplit.variables.dependence import dependents_of
from pymc_dpsplit.variables.lookup import MixtureVariables


def graphs_read(mixture: MixtureVariables, model: Model) -> list[Any]:
    """Return what a step reads when it is made: the mixture, and the likelihood of latent rows.

    Parameters
    ----------
    mixture : MixtureVariables
    model : pymc.Model

    Returns
    -------
    list of TensorVariable or None
    """
    is_latent = mixture.rv in model.free_RVs
    # Which row an element of the likelihood depends on is found once.
    likelihood = dependents_of(mixture.rv, model) if is_latent else []
    values = [model.rvs_to_values[of] for of in likelihood if of in model.rvs_to_values]
    return [*mixture.read_from, *likelihood, *values]


def shared_data(graphs: Iterable[Variable | None]) -> list[Any]:
    """Return the shared variables with data on which graphs depend.

    Parameters
    ----------
    graphs : iterable of TensorVariable or None
        None is left out.

    Returns
    -------
    list of SharedVariable
    """
    roots = graph_inputs([graph for graph in graphs if graph is not None])
    # Generators of random numbers have no dtype.
    shared = [of for of in roots if isinstance(of, SharedVariable) and hasattr(of.type, "dtype")]
    return list(dict.fromkeys(shared))


class DataRead:
    """Values of shared variables at the time a step was made.

    Parameters
    ----------
    name : str
        Name of the mixture.
    graphs : iterable of TensorVariable or None
        What the step depends on; None is left out.
    """

    def __init__(self, name: str, graphs: Iterable[Variable | None]) -> None:
        self._name = name
        self._read = [(of, of.get_value(borrow=True)) for of in shared_data(graphs)]

    def refuse_changed(self) -> None:
        """Refuse data that were replaced by others.

        Raises
        ------
        ValueError
        """
        for variable, before in self._read:
            if not _is_same(before, variable.get_value(borrow=True)):
                raise ValueError(
                    f"{self._name}: pm.set_data has replaced {variable.name} since the step was "
                    "made, which has read it; make the step anew, or leave step= out."
                )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the data: steps are compared with the model in the process that made them."""
        return {**self.__dict__, "_read": []}


def _is_same(before: Any, now: Any) -> bool:
    if before is now:
        return True
    if issparse(before):
        return before.shape == now.shape and (before != now).nnz == 0
    return np.array_equal(before, now, equal_nan=True)
