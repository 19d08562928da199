"""The sweep of families whose rows are read once for all atoms, from one table of parameters.

Their statistics may be much larger than their data: they are added up once all labels are known,
each cluster's by one thread, so that no thread needs statistics of its own.
"""

import numpy as np

from pymc_dpsplit.components.base import add_row, stats_size
from pymc_dpsplit.components.optional import fill_by_table
from pymc_dpsplit.kernels.jit import kernel
from pymc_dpsplit.kernels.sharing import take_next
from pymc_dpsplit.kernels.tiles import TILE, fill_range, new_rows, new_scratch
from pymc_dpsplit.kernels.views import row_of
from pymc_dpsplit.moves.all_atoms import new_masses
from pymc_dpsplit.moves.tile_labels import choose_again, fill_own, fill_slices

# Observations that pass by one block of the table before the next.
_CHUNK = 2048


@kernel
def _take_reachable(log_mass, reach, floor, slices, lowest, active, taken):
    """Copy the atoms in reach of a tile to `taken`, in order; return how many, and write which."""
    n_active, caps = 0, reach.caps
    for k in reach.order:
        if caps[k] > lowest:
            for t in range(TILE):
                is_reached = caps[k] >= floor or slices[t] < caps[k]
                taken[n_active, t] = log_mass[k, t] if is_reached else -np.inf
            active[n_active] = k
            n_active += 1
    return n_active


@kernel
def assign_by_table(prior, data, labels, start, stop, table, reach, slice_key, label_key, sizes):
    """Redraw the labels start .. stop - 1 and count them in `sizes` (A, 1)."""
    floor = 1.0 / labels.shape[0]
    rows, chosen = new_rows(), new_rows()
    n_atoms = reach.caps.shape[0]
    own, active, position = new_rows(), np.empty(n_atoms, np.int64), np.empty(n_atoms, np.int64)
    taken = new_scratch(n_atoms).reshape(n_atoms, TILE)
    scratch, slices = new_scratch(4), new_scratch(1)
    log_mass = new_masses(table, n_atoms, _CHUNK // TILE)
    for chunk in range(start, stop, _CHUNK):
        chunk_stop = min(stop, chunk + _CHUNK)
        fill_by_table(prior, data, chunk, chunk_stop, table, log_mass)
        for first in range(chunk, chunk_stop, TILE):
            mass = log_mass[(first - chunk) // TILE]
            fill_range(rows, first, chunk_stop)
            lowest = fill_slices(rows, labels, reach.caps, slice_key, slices)
            n_active = _take_reachable(mass, reach, floor, slices, lowest, active, taken)
            fill_own(rows, labels, active, n_active, position, own)
            choose_again(taken, n_active, rows, label_key, own, chosen, scratch)
            for t in range(min(TILE, chunk_stop - first)):
                k = active[chosen[t]]
                labels[first + t] = k
                sizes[k, 0] += 1.0


@kernel
def new_stats(prior, n_clusters):
    """Zeroed statistics (K, S)."""
    return np.zeros((n_clusters, stats_size(prior)))


@kernel
def gather_shares(prior, data, labels, n_shares, stats, counter):
    """Add up the statistics of the clusters that this thread takes from `counter`.

    The clusters are dealt out in so many shares; the observations of each are added in order.
    """
    share = take_next(counter)
    while share < n_shares:
        for i in range(labels.shape[0]):
            k = labels[i]
            if k % n_shares == share:
                add_row(prior, data, i, row_of(stats, k))
        share = take_next(counter)
