"""Log density of observations under a drawn mixture, labels summed out."""

from collections.abc import Mapping, Sequence
from typing import Any, override

import numpy as np
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.declaration import Component
from pymc_dpsplit.components.given import given
from pymc_dpsplit.data.blocks import column_means, count_where
from pymc_dpsplit.data.sparse_rows import Rows
from pymc_dpsplit.moves.density import fill_log_masses, fill_log_mixture, log_density_alone
from pymc_dpsplit.moves.patterns import patterns_of
from pymc_dpsplit.variables.inputs import named_parameters
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import missing_gradients
from pymc_dpsplit.variables.sparse_data import ExpandedRows, is_expanded


def kept_weights(n_clusters: Any, new_weight: Any, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights of the rows in use, and the mass outside them.

    While all clusters have a row that mass is `new_weight`, which has digits that one minus
    the sum of the weights has lost.
    """
    if n_clusters > len(weights):
        return weights, max(0.0, 1.0 - weights.sum())
    return weights[: int(n_clusters)], float(new_weight)


def log_mixture_density(
    component: Component,
    rows: Rows,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Log density of complete rows, docs/method.md, eq. (15).

    Parameters
    ----------
    component : Component
    rows : SparseRows, or ndarray of float64 or float32, shape (N, D)
        At least one row.
    weights : ndarray of float64, shape (K,)
    remainder : float
        Mass outside the clusters.
    parameters, values : mapping
        Cluster parameters (K, ...), and hyperparameters.

    Returns
    -------
    ndarray of float64, shape (N,)
    """
    out = np.empty(rows.shape[0])
    law = _as_kernels_see_it(component, rows, weights, remainder, parameters, values)
    fill_log_mixture(*law, out)
    return out


def log_masses(
    component: Component,
    rows: np.ndarray,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Logarithms of the terms of eq. (15), whose sum `log_mixture_density` is.

    Parameters
    ----------
    component, rows, weights, remainder, parameters, values
        As in `log_mixture_density`.

    Returns
    -------
    ndarray of float64, shape (K + 1, N)
        One row for each cluster, and the last for all that is outside them.
    """
    out = np.empty((len(weights) + 1, rows.shape[0]))
    law = _as_kernels_see_it(component, rows, weights, remainder, parameters, values)
    fill_log_masses(*law, out)
    return out


def _as_kernels_see_it(
    component: Component,
    rows: Rows,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> tuple[Any, ...]:
    """Prior, observations, their densities alone, log weights, parameters, log remainder."""
    shift = column_means(rows)
    prior = component.prior(values, shift)
    params = given(component, values).pack(parameters, shift)
    with np.errstate(divide="ignore"):
        log_weights, log_rest = np.log(weights), float(np.log(remainder))
    data = component.arranged(rows)
    alone = log_density_alone(component, prior, data, rows, values)
    return prior, data, alone, log_weights, params, log_rest


def _log_density_of_present(
    component: Component,
    rows: np.ndarray,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Log density (N,) of the entries present in each row (N, D), the others integrated out."""
    # A row without any entry has density one.
    out = np.zeros(len(rows))
    for features, chosen in patterns_of(np.isnan(rows)):
        if len(features) == rows.shape[1]:
            law = parameters, values
        elif len(features):
            law = (
                component.restrict_parameters(parameters, features),
                component.restrict(values, features),
            )
        else:
            continue
        present = rows[np.ix_(chosen, features)]
        out[chosen] = log_mixture_density(component, present, weights, remainder, *law)
    return out


class MixtureLogDensity(ObjectModeOp):
    """Log density of each observation under the mixture, docs/method.md, eq. (15).

    Inputs are the observations, in one array or the parts of sparse ones, then those of
    `MixtureRows` from the number of clusters to the hyperparameters; alpha is not among them, so
    its gradient never passes through here.
    Entries that are missing (NaN) are integrated out.

    Parameters
    ----------
    component : Component
    sparse : ExpandedRows, optional
        What would make an array of the parts; None where observations are an array.
    """

    __props__ = ("component", "sparse")

    def __init__(self, component: Component, sparse: ExpandedRows | None = None) -> None:
        self.component = component
        self.sparse = sparse

    @property
    def n_parts(self) -> int:
        """Number of inputs that are the observations."""
        return 1 if self.sparse is None else 3

    @override
    def make_node(self, *inputs: Any) -> Apply:
        (length,) = inputs[0].type.shape[:1]
        n_rows = length if self.sparse is None or length is None else length - 1
        return Apply(self, list(inputs), [TensorType("float64", (n_rows,))()])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        return [(shapes[0][0] if self.sparse is None else shapes[0][0] - 1,)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        data = inputs[: self.n_parts]
        n_clusters, new_weight, weights, *rest = inputs[self.n_parts :]
        weights, remainder = kept_weights(n_clusters, new_weight, weights)
        law = weights, remainder, *named_parameters(self.component, rest, len(weights))
        if self.sparse is not None:
            sparse = self.sparse.rows_of(data)
            output_storage[0][0] = log_mixture_density(self.component, sparse, *law)
            return
        rows = np.asarray(data[0]).reshape(data[0].shape[0], -1)
        # Complete rows, which may be many, are neither copied nor looked at all at once.
        has_holes = count_where(np.isnan, rows) > 0
        density = _log_density_of_present if has_holes else log_mixture_density
        output_storage[0][0] = density(self.component, rows, *law)

    @override
    def pullback(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        cotangents: Sequence[Variable],
    ) -> list[Variable]:
        n_measure = 3 + len(self.component.parameters)
        return missing_gradients(inputs, inputs[self.n_parts : self.n_parts + n_measure])


def log_density_of(component: Component, rows: Variable, *inputs: Variable) -> Any:
    """Log density of rows (N, D), which may be those of sparse data, as a graph.

    Parameters
    ----------
    component : Component
    rows : TensorVariable
    *inputs : TensorVariable
        The other inputs of `MixtureLogDensity`.

    Returns
    -------
    symbolic vector (N,)
    """
    if is_expanded(rows):
        node: Any = rows.owner
        return MixtureLogDensity(component, node.op)(*node.inputs, *inputs)
    return MixtureLogDensity(component)(rows, *inputs)
