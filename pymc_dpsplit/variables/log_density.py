"""Log density of observations under a draw of the mixture, with the labels summed out."""

from collections.abc import Mapping, Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.independent_parts import IndependentParts
from pymc_dpsplit.components.shared_labels.items import Items, SharedLabels
from pymc_dpsplit.data.blocks import blocks_of, column_centres, count_where
from pymc_dpsplit.data.sparse_rows import Rows
from pymc_dpsplit.moves.partition_law import PartitionLaw, remainder_law
from pymc_dpsplit.moves.patterns import patterns_of
from pymc_dpsplit.moves.sweep.density import fill_log_masses, fill_log_mixture, log_density_alone
from pymc_dpsplit.variables.inputs import named_parameters
from pymc_dpsplit.variables.object_mode import ObjectModeOp
from pymc_dpsplit.variables.owned_terms import missing_gradients
from pymc_dpsplit.variables.sparse_data import ExpandedRows, is_expanded


def kept_weights(n_clusters: Any, new_weight: Any, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights of the recorded clusters, and the remaining mass.

    If all clusters are recorded, the remaining mass is `new_weight`, which is more precise than one
    minus the sum of the weights.

    Parameters
    ----------
    n_clusters : int
        Number of clusters K.
    new_weight : float
        Weight of the remainder.
    weights : ndarray of float64, shape (L,)

    Returns
    -------
    kept : ndarray of float64, shape (min(K, L),)
    remainder : float
    """
    if n_clusters > len(weights):
        return weights, max(0.0, 1.0 - weights.sum())
    return weights[: int(n_clusters)], float(new_weight)


def log_mixture_density(
    items: ComponentFamily | Items,
    rows: Rows,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    alpha: float = np.nan,
    discount: float = 0.0,
) -> np.ndarray:
    """Return the log density of complete rows, or of groups of them, docs/method.md, eq. (5.1).

    Parameters
    ----------
    items : ComponentFamily or Items
        A family stands for rows that each have a label of their own.
    rows : SparseRows, or ndarray of float64 or float32, shape (N, D)
        At least one row.
    weights : ndarray of float64, shape (K,)
    remainder : float
        Mass of the remainder.
    parameters, values : mapping
        Cluster parameters (K, ...), and hyperparameters.
    alpha, discount : float
        Strength and discount of the law of the partition; used only if `items.depends_on_law`.

    Returns
    -------
    ndarray of float64, shape (N,)
        Or (G,) for G groups.
    """
    items = _items_of(items)
    out = np.empty(items.number_of(rows))
    shift = column_centres(rows)
    if _is_of_parts(items):
        array: Any = rows
        for block in blocks_of((len(out), len(weights) + 1)):
            known = array[block], weights, remainder, parameters, values, shift
            out[block] = np.logaddexp.reduce(_log_masses_of_parts(items.component, *known))
        return out
    law = remainder_law(PartitionLaw(discount, alpha), len(weights))
    given = _as_kernels_see_it(items, rows, weights, remainder, parameters, values, shift, law)
    fill_log_mixture(*given, out)
    return out


def log_masses(
    items: ComponentFamily | Items,
    rows: np.ndarray,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    shift: np.ndarray,
    alpha: float = np.nan,
    discount: float = 0.0,
) -> np.ndarray:
    """Return the logarithms of the terms of eq. (5.1), which `log_mixture_density` sums.

    Parameters
    ----------
    items, rows, weights, remainder, parameters, values
        As in `log_mixture_density`.
    shift : ndarray of float64, shape (D,)
        What kernels subtract from rows, near the clusters: the mean of the rows themselves would
        let one that is far away take the digits of all.
    alpha, discount : float
        See `log_mixture_density`.

    Returns
    -------
    ndarray of float64, shape (K + 1, N), or (K + 1, G) for groups
        One row for each cluster, and the last row for the remainder.
    """
    items = _items_of(items)
    if _is_of_parts(items):
        known = rows, weights, remainder, parameters, values, shift
        return _log_masses_of_parts(items.component, *known)
    out = np.empty((len(weights) + 1, items.number_of(rows)))
    law = remainder_law(PartitionLaw(discount, alpha), len(weights))
    given = _as_kernels_see_it(items, rows, weights, remainder, parameters, values, shift, law)
    fill_log_masses(*given, out)
    return out


def _items_of(given: ComponentFamily | Items) -> Items:
    return given if isinstance(given, Items) else Items(given)


def _is_of_parts(items: Items) -> bool:
    of = items.component
    return items.shared is None and isinstance(of, IndependentParts) and of.sums_densities


def _log_masses_of_parts(
    component: Any,
    rows: np.ndarray,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    shift: np.ndarray,
) -> np.ndarray:
    """Return `log_masses` of a product as the sum over its parts, eq. (7.19)."""
    with np.errstate(divide="ignore"):
        total = np.repeat(np.log([*weights, remainder])[:, None], len(rows), axis=1)
    ones = np.ones(len(weights)), 1.0
    for family, at, own, of_part in component.pieces(rows.shape[1], parameters, values):
        columns = np.ascontiguousarray(rows[:, at])
        total += log_masses(family, columns, *ones, own, of_part, shift[at])
    return total


def _as_kernels_see_it(
    items: Items,
    rows: Rows,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
    shift: np.ndarray,
    rest: PartitionLaw,
) -> tuple[Any, ...]:
    """Return prior, data, prior predictives, log weights, parameters, log remainder."""
    prior = items.prior(values, shift)
    params = items.pack(parameters, values, shift)
    with np.errstate(divide="ignore"):
        log_weights, log_rest = np.log(weights), float(np.log(remainder))
    data = items.arranged(rows)
    alone = log_density_alone(items.component, prior, data, rows, values)
    if items.shared is not None and items.depends_on_law:
        alone = alone + items.shared.log_together(rest.strength, rest.discount)
    return prior, data, alone, log_weights, params, log_rest


def _log_density_of_present(
    component: ComponentFamily,
    rows: np.ndarray,
    weights: np.ndarray,
    remainder: float,
    parameters: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> np.ndarray:
    """Return the log density (N,) of the observed entries of rows (N, D)."""
    # A row without observed entries has density one.
    out = np.zeros(len(rows))
    for features, chosen in patterns_of(np.isnan(rows)):
        few = component
        if len(features) == rows.shape[1]:
            law = parameters, values
        elif len(features):
            few = component.of_features(features)
            law = (
                component.restrict_parameters(parameters, features),
                component.restrict(values, features),
            )
        else:
            continue
        present = rows[np.ix_(chosen, features)]
        out[chosen] = log_mixture_density(few, present, weights, remainder, *law)
    return out


class MixtureLogDensity(ObjectModeOp):
    """Log density of each row, or group of rows, under the mixture, docs/method.md, eq. (5.1).

    Inputs are the observations, as one array or as the parts of `SparseRows`, then the inputs of
    `MixtureRows` from the number of clusters to the hyperparameters.  Discount and strength are
    inputs, the last two, only if labels are known; their gradients do not depend on this op
    otherwise.  Missing entries (NaN) are integrated out.

    Parameters
    ----------
    component : ComponentFamily
    shared : SharedLabels, optional
        Groups of complete rows that have one label each.
    sparse : ExpandedRows, optional
        Op that expands the parts to an array; None if the observations are an array.
    """

    __props__ = ("component", "shared", "sparse")

    def __init__(
        self,
        component: ComponentFamily,
        shared: SharedLabels | None = None,
        sparse: ExpandedRows | None = None,
    ) -> None:
        self.component = component
        self.shared = shared
        self.sparse = sparse

    @property
    def n_parts(self) -> int:
        """Return the number of inputs that hold the observations."""
        return 1 if self.sparse is None else 3

    @override
    def make_node(self, *inputs: Any) -> Apply:
        (length,) = inputs[0].type.shape[:1]
        n_items = length if self.sparse is None or length is None else length - 1
        n_items = n_items if self.shared is None else self.shared.n_groups
        return Apply(self, list(inputs), [TensorType("float64", (n_items,))()])

    def infer_shape(self, node: Apply, shapes: Any) -> list[Any]:
        if self.shared is not None:
            return [(pt.constant(self.shared.n_groups),)]
        return [(shapes[0][0] if self.sparse is None else shapes[0][0] - 1,)]

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        data = inputs[: self.n_parts]
        n_clusters, new_weight, weights, *rest = inputs[self.n_parts :]
        weights, remainder = kept_weights(n_clusters, new_weight, weights)
        items = Items(self.component, self.shared)
        *rest, discount, strength = rest if items.depends_on_law else (*rest, 0.0, np.nan)
        law = weights, remainder, *named_parameters(self.component, rest, len(weights))
        if self.sparse is not None:
            sparse = self.sparse.rows_of(data)
            output_storage[0][0] = log_mixture_density(self.component, sparse, *law)
            return
        rows = np.asarray(data[0]).reshape(data[0].shape[0], -1)
        if self.shared is not None:
            output_storage[0][0] = log_mixture_density(
                items, rows, *law, float(strength), float(discount)
            )
            return
        # Without missing entries, which are searched for block by block, rows are not copied.
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


def log_density_of(items: Items, rows: Variable, *inputs: Variable) -> Any:
    """Return the log density of dense or sparse rows (N, D), or of groups of them, as a graph.

    Parameters
    ----------
    items : Items
    rows : TensorVariable
    *inputs : TensorVariable
        The other inputs of `MixtureLogDensity`.

    Returns
    -------
    symbolic vector (N,) or (G,)
    """
    if is_expanded(rows):
        node: Any = rows.owner
        return MixtureLogDensity(items.component, sparse=node.op)(*node.inputs, *inputs)
    return MixtureLogDensity(items.component, items.shared)(rows, *inputs)
