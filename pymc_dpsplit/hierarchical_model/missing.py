"""Missing entries of rows in groups: their variable, and their update together with labels."""

from collections.abc import Mapping, Sequence
from typing import Any, override

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.type import TensorType

from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.shared_labels.items import Items
from pymc_dpsplit.hierarchical.incomplete import relabel_rows
from pymc_dpsplit.hierarchical.parameters import draw_parameters_of
from pymc_dpsplit.hierarchical.state import (
    GroupedState,
    GroupedTarget,
    count_groups,
    with_statistics,
)
from pymc_dpsplit.moves.patterns import Incomplete, log_density_of_present
from pymc_dpsplit.variables.missing import MissingEntries

# Incomplete rows whose densities in all clusters are held at once.
_ROWS_AT_ONCE = 2048


class GroupedMissing(MissingEntries):
    """The missing entries of rows in groups, in the order of rows and then of features.

    Inputs are a generator, the row and the feature of each entry, a plain value for it to start
    from, and the outputs of the measure.
    """

    _print_name = ("HDPMissing", r"\operatorname{HDPMissing}")
    name = "HDPMissing"
    step_name, step_class = "hdp", "HDPMixtureStep"

    @override
    def make_node(self, *inputs: Any) -> Apply:
        rng, *rest = inputs
        out = TensorType("float64", (self.n_missing,))()
        return Apply(self, [rng, *map(pt.as_tensor, rest)], [rng.type(), out])

    @override
    def dist_params(self, node: Apply) -> list[Variable]:
        """Return the inputs that PyMC prints: the measure."""
        return list(node.inputs[4:])

    @override
    def perform(self, node: Apply, inputs: Sequence[Any], output_storage: Any) -> None:
        raise NotImplementedError(
            f"Missing entries of {self.target} cannot be drawn from the prior, as the point of the "
            "model does not hold the weights of its groups; pass var_names= without them."
        )


def completed(rows: np.ndarray, incomplete: Incomplete, entries: np.ndarray) -> np.ndarray:
    """Return rows (N, D) with these missing entries (M,), row by row."""
    where, is_missing = incomplete
    out = np.array(rows, dtype=np.float64)
    block = out[where]
    block[is_missing] = entries
    out[where] = block
    return out


def update_incomplete(
    items: Items,
    values: Mapping[str, np.ndarray],
    shift: np.ndarray,
    target: GroupedTarget,
    state: GroupedState,
    rows: np.ndarray,
    incomplete: Incomplete,
    rng: np.random.Generator,
) -> tuple[GroupedTarget, GroupedState, np.ndarray]:
    """Redraw labels of incomplete rows, their missing entries integrated out, then the entries.

    Parameters
    ----------
    items : Items
        Of the family.
    values : mapping
        Hyperparameters.
    shift : ndarray of float64, shape (D,)
        That of the prior of the target.
    target : GroupedTarget
    state : GroupedState
        Its labels are modified.
    rows : ndarray of float64, shape (N, D)
        Completed by the previous entries; not modified.
    incomplete : Incomplete
    rng : numpy.random.Generator

    Returns
    -------
    target : GroupedTarget
    state : GroupedState
    entries : ndarray of float64, shape (M,)
    """
    where, is_missing = incomplete
    prior, n_clusters = target.of_rows.prior, len(state.weights)
    parameters = items.unpack(draw_parameters_of(prior, state.stats, rng), values, shift)
    counts = count_groups(target, state.labels, n_clusters)
    sizes = counts.sum(axis=0)
    component = with_values(items.component, values)
    for start in range(0, len(where), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        present = component, rows[where[block]], is_missing[block], parameters, values
        n_rows = len(where[block])
        log_density = np.stack(
            [log_density_of_present(*present, np.full(n_rows, k)) for k in range(n_clusters)], 1
        )
        relabel_rows(
            log_density, where[block], state.labels, target.group_of_row, counts, sizes,
            state.weights, target.alpha, rng,
        )  # fmt: skip
    own = state.labels[where].astype(np.int64)
    entries = component.draw_missing(rng, rows[where], is_missing, parameters, own)[is_missing]
    data: Any = items.component.arranged(completed(rows, incomplete, entries))
    target = target._replace(of_rows=target.of_rows._replace(data=data))
    return target, with_statistics(target, state), entries
