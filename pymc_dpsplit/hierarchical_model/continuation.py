"""State of a chain that goes on from a draw of a trace."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.hierarchical.parameters import keeps_parameters
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget, resume_groups
from pymc_dpsplit.hierarchical_model.lookup import HierarchicalVariables
from pymc_dpsplit.moves.nonconjugate.parameters import gather_parameters


class LastDraws(NamedTuple):
    """What a trace records of the last draws of a hierarchical mixture.

    Attributes
    ----------
    weights : ndarray of float64, shape (C, L)
        Global weights of each chain.
    labels : ndarray of int, shape (C, N)
        Labels of the rows, which refer to them.
    """

    weights: np.ndarray
    labels: np.ndarray


def continued_state(
    mixture: HierarchicalVariables,
    last: LastDraws,
    point: Mapping[str, np.ndarray],
    target: GroupedTarget,
) -> GroupedState:
    """Return the state of the chain whose last draw has the weights of a point.

    A step is not told which chain it runs.  Weights are continuous, and only the step of their own
    mixture changes them, so that they tell chains apart; they may have been stored with fewer
    digits.

    Parameters
    ----------
    mixture : HierarchicalVariables
    last : LastDraws
    point : mapping
        Values of all variables.
    target : GroupedTarget
        At the point.

    Returns
    -------
    GroupedState
    """
    weights = point[mixture.value_names["weights"]]
    chain = int(np.argmin(np.abs(last.weights - weights).sum(axis=1)))
    state = resume_groups(target, last.labels[chain].astype(np.int32))
    # A point holds the logarithm of the weight of the remainder.
    log_rest = float(point[mixture.value_names["new_weight"]])
    n_clusters, (prior, data, _) = len(state.weights), target.of_rows
    if keeps_parameters(prior):
        names = mixture.component.parameters
        parameters = {name: point[mixture.value_names[name]][:n_clusters] for name in names}
        params = mixture.component.pack(parameters, prior.shift)
        state = state._replace(stats=gather_parameters(prior, data, state.labels, params))
    return state._replace(weights=weights[:n_clusters].copy(), log_rest=log_rest)


def refuse_another_start(start_clusters: int, continues: Mapping[str, LastDraws] | None) -> None:
    """Refuse a number of clusters to start from for a chain that goes on from a trace.

    Parameters
    ----------
    start_clusters : int
    continues : mapping, optional
        Name of mixture to its last draws.

    Raises
    ------
    ValueError
    """
    if continues is not None:
        raise ValueError(
            f"start_clusters={start_clusters} is given, but a chain that goes on from a trace has "
            "its clusters; leave it out."
        )
