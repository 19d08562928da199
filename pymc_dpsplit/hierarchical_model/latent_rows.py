"""Latent rows of a hierarchical mixture as a random variable of PyMC."""

from collections.abc import Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.distribution import _support_point
from pymc.logprob.abstract import _logprob
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.utils import custom_rng_deepcopy

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.moves.forward import draw_labelled_rows
from pymc_dpsplit.variables.inputs import named_parameters
from pymc_dpsplit.variables.rows import CentralRows, RowsOp, log_density_given_labels


class LatentGroupedRows(RowsOp):
    """Rows that other steps move, independent given labels and parameters of clusters.

    Inputs are a generator, the number of rows, their labels, the number of clusters, each cluster
    parameter and each hyperparameter; then the other outputs of the measure, on which neither
    density nor draws depend.  With these a copy of a model has the rows after the measure, and so
    the same draws.

    Parameters
    ----------
    target : str
        Name of the mixture.
    component : ComponentFamily
    n_features : int
        Number of features D of a row.
    """

    __props__ = ("target", "component", "n_features")
    _print_name = ("HDPMixture", r"\operatorname{HDPMixture}")
    name = "HDPMixture"
    # As `variables.rows.MixtureRows` has them.
    shared, is_latent, extras, dtype = None, True, ("labels",), "float64"

    def __init__(self, target: str, component: ComponentFamily, n_features: int) -> None:
        self.target = target
        self.component = component
        self.n_features = n_features

    def extra(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return the labels among the inputs of a node, by their role."""
        return {"labels": inputs[2]}

    def read(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Return the inputs on which density and draws depend."""
        component = self.component
        return inputs[: 4 + len(component.parameters) + len(component.hyperparameter_ndims())]

    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints: labels, number and parameters of clusters."""
        return list(node.inputs[2 : 4 + len(self.component.parameters)])

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        rng, n_rows, labels, n_clusters, *rest = self.read(inputs)
        if len(labels) != n_rows:
            raise ValueError(
                f"{self.target} is to be drawn with {n_rows} rows, but groups= names the groups of "
                f"{len(labels)}; draw as many rows, or declare the mixture anew."
            )
        rng = custom_rng_deepcopy(rng)
        parameters, values = named_parameters(self.component, rest, int(n_clusters))
        drawn = draw_labelled_rows(rng, self.component, labels.astype(np.int64), parameters, values)
        output_storage[0][0] = rng
        output_storage[1][0] = drawn.astype(self.dtype, copy=False)


@_logprob.register(LatentGroupedRows)
def _rows_logprob(
    op: LatentGroupedRows,
    values: Sequence[Any],
    *inputs: Any,
    **kwargs: Any,
) -> Any:
    """Return the log density of each row (N,) given its label, eq. (16.19)."""
    n_parameters = len(op.component.parameters)
    _, _, labels, n_clusters, *given = op.read(inputs)
    parameters, hyperparameters = given[:n_parameters], given[n_parameters:]
    rows = pt.as_tensor(values[0])
    return log_density_given_labels(
        op.component, rows, labels, n_clusters, parameters, hyperparameters
    )


@_support_point.register(LatentGroupedRows)
def _rows_support_point(
    op: LatentGroupedRows,
    rv: Variable,
    *inputs: Variable,
) -> Variable:
    _, n_rows, _, _, *given = op.read(inputs)
    return CentralRows(op)(n_rows, *given[len(op.component.parameters) :])  # type: ignore[return-value]
