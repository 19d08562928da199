"""What an iteration of rows in groups costs."""

import numpy as np

from pymc_dpsplit.hierarchical.parameters import keeps_parameters
from pymc_dpsplit.hierarchical.state import GroupedState, GroupedTarget
from pymc_dpsplit.moves.conjugate import CONJUGATE
from pymc_dpsplit.moves.cost import visit_cost
from pymc_dpsplit.moves.nonconjugate.iterations import NONCONJUGATE

# A sweep by slices takes longer by what the weights of groups cost.
_GROUPS_OF_A_SWEEP = 1.6


def cost_of_iteration(
    target: GroupedTarget, state: GroupedState, n_attempts: int, is_by_slices: bool
) -> float:
    """Approximate cost of an iteration in nanoseconds.

    Parameters
    ----------
    target : GroupedTarget
    state : GroupedState
    n_attempts : int
        Splits and merges attempted in an iteration.
    is_by_slices : bool
        Whether rows are visited by slices, and not one by one.

    Returns
    -------
    float
    """
    of_rows, n_rows = target.of_rows, len(state.labels)
    n_clusters, n_statistics = state.stats.shape
    moves = NONCONJUGATE if keeps_parameters(of_rows.prior) else CONJUGATE
    attempts = n_attempts * moves.attempt_cost(of_rows, n_clusters)
    if not is_by_slices:
        return n_rows * visit_cost(of_rows, n_clusters) + attempts
    n_sticks = of_rows.law.strength * float(np.log1p(n_rows))
    sweep = moves.sweep_cost(of_rows, n_clusters, n_statistics, n_sticks, n_clusters + n_sticks)
    return _GROUPS_OF_A_SWEEP * sweep + attempts
