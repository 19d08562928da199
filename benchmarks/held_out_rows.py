"""Rows that were held out, and their density given a partition of the others, in any family.

`benchmarks.predictive` has the same for Gaussians by SciPy; this one reads the caches of collapsed
sampling, and takes sparse counts too.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from benchmarks.subject import make_sparse_target, make_target
from pymc_dpsplit import sampler
from pymc_dpsplit.components.sparse_counts import rows_of_sparse
from pymc_dpsplit.data.fixed_rows import read_only
from pymc_dpsplit.moves.collapsed.conditional_modes import log_predictives

_SEED = 20260


class Split(NamedTuple):
    """Rows to learn from, and rows to judge by.

    Attributes
    ----------
    target : Target
        Of the former, alpha = 1.
    small : Target
        Of a few of them, to compile with.
    new : ndarray or SparseRows
        The latter, as kernels read them, without multinomial coefficients.
    n_units : float
        In how many parts the log density of the latter is divided: words, or entries.
    """

    target: sampler.Target
    small: sampler.Target
    new: Any
    n_units: float


def divide(rows: Any, n_new: int) -> tuple[Any, Any]:
    """Learn from some rows and judge by `n_new` others, the same whenever it is called."""
    order = np.random.default_rng(_SEED).permutation(rows.shape[0])
    return rows[np.sort(order[n_new:])], rows[np.sort(order[:n_new])]


def split_vectors(known: np.ndarray, new: np.ndarray, component: Any) -> Split:
    """Split of vectors (N, D)."""
    target = make_target(known, component)
    small = make_target(known[:500], component)
    return Split(target, small, read_only(new), float(new.size))


def split_counts(known: Any, new: Any, component: Any) -> Split:
    """Split of counts in SciPy's sparse matrices."""
    target, small = make_sparse_target(known, component), make_sparse_target(known[:50], component)
    rows = component.arranged(rows_of_sparse(new))
    plain = rows._replace(log_coefficients=np.zeros_like(rows.log_coefficients))
    return Split(target, small, plain, float(new.sum()))


def log_masses(target: sampler.Target, state: sampler.ChainState, new: Any) -> np.ndarray:
    """Log of prior mass times predictive density, weights and parameters integrated out.

    Parameters
    ----------
    target : Target
        Its prior and alpha are used.
    state : ChainState
        A partition.
    new : ndarray or SparseRows
        Rows as kernels read them.

    Returns
    -------
    ndarray, shape (n_new, K + 1)
        Last a new cluster.
    """
    masses = np.append(state.stats[:, 0], target.law.strength)
    found: np.ndarray = log_predictives(target.prior, new, state.stats).T
    return found + np.log(masses / masses.sum())


def score_of(split: Split, target: sampler.Target, state: sampler.ChainState) -> float:
    """Mean log predictive density of the new rows per unit."""
    masses = log_masses(target, state, split.new)
    return float(logsumexp(masses, axis=1).sum()) / split.n_units
