"""Joint updates of labels and latent rows in groups.

Given the global measure and those of the groups, the pairs (label, row) are independent.  So a new
pair is proposed for every row from the measure of its group, and accepted for each row separately,
eq. (16.20).
"""

from collections.abc import Mapping

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.hierarchical.group_weights import draw_labels_in_groups
from pymc_dpsplit.hierarchical.parameters import draw_parameters_of
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget
from pymc_dpsplit.moves.forward import draw_labelled_rows
from pymc_dpsplit.moves.likely_rows import LikelyRows, LogLikelihood, accept_rows
from pymc_dpsplit.moves.partition import gather_stats


def exchange_rows(
    component: ComponentFamily,
    values: Mapping[str, np.ndarray],
    shift: np.ndarray,
    target: GroupedTarget,
    state: GroupedState,
    present: LikelyRows,
    log_likelihood: LogLikelihood,
    rng: np.random.Generator,
) -> tuple[GroupedTarget, GroupedState, LikelyRows, int]:
    """Propose a new label and row for every observation, and accept each separately.

    Parameters
    ----------
    component : ComponentFamily
    values : mapping
        Hyperparameters.
    shift : ndarray of float64, shape (D,)
        That of the prior of the target.
    target : GroupedTarget
        Its data are the rows.
    state : GroupedState
        Not modified.
    present : LikelyRows
        Not modified.
    log_likelihood : callable
        From rows, shape (N, D), to the log likelihood of each, shape (N,).
    rng : numpy.random.Generator

    Returns
    -------
    target : GroupedTarget
    state : GroupedState
    present : LikelyRows
    n_accepted : int
    """
    component = with_values(component, values)
    params = draw_parameters_of(target.of_rows.prior, state.stats, rng)
    labels, weights, log_rest = draw_labels_in_groups(target, state, rng)
    parameters = component.unpack(params, shift)
    drawn = draw_labelled_rows(rng, component, labels, parameters, values)
    drawn = drawn.reshape(present.rows.shape)
    chosen, accepted = accept_rows(present, LikelyRows(drawn, log_likelihood(drawn)), rng)
    merged = np.where(accepted, labels, state.labels)
    target = with_rows(target, component, chosen.rows)
    state = occupied_state(target, merged, weights, log_rest)
    return target, state, chosen, int(accepted.sum())


def with_rows(target: GroupedTarget, component: ComponentFamily, rows: np.ndarray) -> GroupedTarget:
    """Return a target with other rows (N, D)."""
    data = component.arranged(rows)
    return target._replace(of_rows=target.of_rows._replace(data=data))


def occupied_state(
    target: GroupedTarget, labels: np.ndarray, weights: np.ndarray, log_rest: float
) -> GroupedState:
    """Return the state of rows whose labels are those of some clusters; others return their weight.

    Parameters
    ----------
    target : GroupedTarget
    labels : ndarray of int64, shape (N,)
        Not modified.
    weights : ndarray of float64, shape (A,)
        Global weights.
    log_rest : float

    Returns
    -------
    GroupedState
    """
    prior, data, _ = target.of_rows
    used, numbers = np.unique(labels, return_inverse=True)
    own = numbers.astype(np.int32)
    left = np.delete(weights, used).sum()
    if left > 0.0:
        log_rest = float(np.logaddexp(log_rest, np.log(left)))
    return GroupedState(own, gather_stats(prior, data, own, len(used)), weights[used], log_rest)
