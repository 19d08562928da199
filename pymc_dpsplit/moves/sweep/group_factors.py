"""Factors of the masses that depend on the group of an observation, as in a hierarchical process.

A sweep without groups has None in their place, for which the compiler leaves all of this out.
"""

from typing import NamedTuple

import numpy as np

from pymc_dpsplit.kernels.jit import jitted, jitted_inlined_uncounted
from pymc_dpsplit.kernels.tiles import TILE

# Neighbours in a tile that take one factor if they are of one group.
RUN = 8


class GroupFactors(NamedTuple):
    """Log factors of the masses of all atoms in all groups.

    Attributes
    ----------
    log_factors : ndarray of float64, shape (A, J)
    group_of_row : ndarray of int64, shape (N,)
        Group 0 .. J - 1 of each observation.
    """

    log_factors: np.ndarray
    group_of_row: np.ndarray


@jitted
def new_groups():
    """Allocate the groups of one tile, and for each run of RUN whether it is of one group."""
    return np.empty(TILE + TILE // RUN, np.int64)


@jitted_inlined_uncounted
def find_groups(factors, rows, groups):
    """Write the group of each observation of a tile; nothing if `factors` is None.

    Parameters
    ----------
    factors : GroupFactors or None
    rows : ndarray of int64, shape (TILE,)
    groups : ndarray of int64, shape (TILE + TILE // RUN,)
        Overwritten: groups, then 1 for each run of one group and 0 for others.
    """
    if factors is not None:
        for t in range(TILE):
            groups[t] = factors.group_of_row[rows[t]]
        for run in range(TILE // RUN):
            first, n_other = run * RUN, 0
            for t in range(first, first + RUN):
                n_other += groups[t] != groups[first]
            groups[TILE + run] = 1 if n_other == 0 else 0


@jitted_inlined_uncounted
def add_group_factors(factors, k, groups, log_mass):
    """Add the log factors of one atom to its log masses in a tile; nothing if `factors` is None.

    Parameters
    ----------
    factors : GroupFactors or None
    k : int
    groups : ndarray of int64, shape (TILE + TILE // RUN,)
        Result of `find_groups`.
    log_mass : ndarray of float64, shape (TILE,)
        Added to.
    """
    if factors is not None:
        row = factors.log_factors[k]
        for run in range(TILE // RUN):
            first = run * RUN
            if groups[TILE + run] == 1:
                factor = row[np.uint64(groups[first])]
                for t in range(first, first + RUN):
                    log_mass[t] += factor
            else:
                for t in range(first, first + RUN):
                    # A loop with an index that may be negative is not made vector code.
                    log_mass[t] += row[np.uint64(groups[t])]
