"""The argument `max_clusters` of a mixture: how many clusters a draw records."""

from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import is_integer, shown
from pymc_dpsplit.components.component_family import ComponentFamily

# Default number of rows recorded per draw: its range, and the bytes that the rows may take.
_LEAST_ROWS, _MOST_ROWS = 10, 64
_BYTES_PER_DRAW = 2**18
# More than any draw needs, where the number of rows that there will be is not known.
_MOST_BYTES = 2**28
# The same if other variables depend on every cluster, so that all must be recorded.
_LEAST_ROWS_NEEDED, _BYTES_PER_DRAW_NEEDED = 128, 2**15


def checked_max_clusters(
    given: Any, component: ComponentFamily, shape: tuple[int, int], needs_all: bool, grows: bool
) -> int:
    """Check the number of clusters recorded per draw, or choose one.

    Parameters
    ----------
    given : int or None
        As the user gives it; None chooses.
    component : ComponentFamily
    shape : tuple of int
        Numbers of observations N and of features D.
    needs_all : bool
        Whether other variables depend on every cluster.
    grows : bool
        Whether the number of observations may grow.

    Returns
    -------
    int
        No more than there are observations, unless their number may grow.

    Raises
    ------
    ValueError
        If it is not a positive integer, or takes too much memory.
    """
    n_obs, n_features = shape
    shapes = (component.shape_of(*of, n_features) for of in component.parameters.items())
    bytes_per_row = 8 * (1 + sum(int(np.prod(shape)) for shape in shapes))
    if given is None:
        if needs_all:
            fitting = max(_LEAST_ROWS_NEEDED, _BYTES_PER_DRAW_NEEDED // bytes_per_row)
        else:
            fitting = min(_MOST_ROWS, max(_LEAST_ROWS, _BYTES_PER_DRAW // bytes_per_row))
        return min(n_obs, fitting)
    if not is_integer(given) or given < 1:
        raise ValueError(
            f"max_clusters={shown(given)} is not a positive integer; give the number of rows to "
            "keep, or leave it out."
        )
    if not grows or given <= n_obs:
        return min(n_obs, int(given))
    if int(given) * bytes_per_row > _MOST_BYTES:
        raise ValueError(
            f"max_clusters={shown(given)} rows take more than {_MOST_BYTES >> 20} MiB per draw; "
            "give at most the number of rows that observed will ever have."
        )
    return int(given)
