"""Choice of a cluster by log masses, in whole blocks of positions; see `kernels.cluster_table`."""

from pymc_dpsplit.kernels.cluster_blocks import fill_weights
from pymc_dpsplit.kernels.cluster_table import WIDE
from pymc_dpsplit.kernels.jit import jitted, jitted_copied, jitted_inlined

# Weights below it are those of masses that `exp2_plainly` rounds up.
_NOTHING = 1e-300


@jitted_copied
def choose_position(log_mass, log_sizes, n, u):
    """Position that a uniform selects, with probability proportional to exp(log_mass + log_sizes).

    Parameters
    ----------
    log_mass : ndarray of float64, shape (>= n,)
        Not all negligible; overwritten.
    log_sizes : ndarray of float64, shape (>= n,)
    n : int
        A multiple of `WIDE`.
    u : float

    Returns
    -------
    int
    """
    fill_weights(log_mass, log_sizes, n)
    total = 0.0
    for first in range(0, n, WIDE):
        total += _block_sum(log_mass, first)
    target, first = u * total, 0
    running = _block_sum(log_mass, 0)
    while target >= running and first + WIDE < n:
        first += WIDE
        target -= running
        running = _block_sum(log_mass, first)
    # A loop that ends at the choice would end unpredictably, which costs more than all its steps.
    running, n_before = 0.0, 0
    for p in range(first, first + WIDE):
        running += log_mass[p]
        n_before += running <= target
    if n_before < WIDE and log_mass[first + n_before] > _NOTHING:
        return first + n_before
    return _position_with_mass(log_mass, first, n, target)


@jitted_inlined
def _block_sum(mass, first):
    left = (mass[first] + mass[first + 1]) + (mass[first + 2] + mass[first + 3])
    right = (mass[first + 4] + mass[first + 5]) + (mass[first + 6] + mass[first + 7])
    return left + right


@jitted
def _position_with_mass(mass, first, n, target):
    """Choose in the block at `first` where a position without mass, or none, would be chosen."""
    last, running = -1, 0.0
    for p in range(first, first + WIDE):
        if mass[p] > _NOTHING:
            last = p
            running += mass[p]
            if target < running:
                return p
    if last >= 0:
        return last
    p = n - 1
    while mass[p] <= _NOTHING:
        p -= 1
    return p
