"""Priors and rows of several parts in the form that kernels read: pairs nested to the right.

Rows of parts that read arrays stay columns of one array, as far as no part of another form comes
after them; other parts have rows of their own.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dpsplit.components.mixed_pair import MixedPairPrior, MixedRows
from pymc_dpsplit.components.pair import PairPrior
from pymc_dpsplit.components.parts import Part
from pymc_dpsplit.data.fixed_rows import read_only


def joined_prior(parts: Sequence[Part], priors: Sequence[Any], shift: np.ndarray) -> Any:
    """Return the prior of all parts, each with its own of `priors`.

    Parameters
    ----------
    parts : sequence of Part
        At least one.
    priors : sequence of NamedTuple
    shift : ndarray of float64, shape (D,)
        In the order of the parts.

    Returns
    -------
    NamedTuple
    """
    n_apart = _n_apart(parts)
    other = priors[-1]
    for i in range(len(parts) - 2, -1, -1):
        part, own = parts[i], shift[parts[i].start :]
        if i < n_apart:
            other = MixedPairPrior(own, priors[i], other)
        else:
            other = PairPrior(own, part.width, priors[i], other)
    return other


def joined_rows(parts: Sequence[Part], rows: np.ndarray) -> Any:
    """Return rows in the form that kernels of `joined_prior` read.

    Parameters
    ----------
    parts : sequence of Part
    rows : ndarray of float64 or float32, shape (N, D)
        In the order of the parts.

    Returns
    -------
    ndarray or NamedTuple
        Read-only; the array itself, if all parts read arrays.
    """
    n_apart = _n_apart(parts)
    if n_apart == 0:
        return read_only(rows)
    if n_apart == len(parts):
        other, apart = _own_rows(parts[-1], rows), parts[:-1]
    else:
        other, apart = read_only(rows[:, parts[n_apart].start :]), parts[:n_apart]
    for part in reversed(apart):
        other = MixedRows(_own_rows(part, rows), other, (len(rows), rows.shape[1] - part.start))
    return other


def _n_apart(parts: Sequence[Part]) -> int:
    """Return the number of first parts whose rows are kept apart from those of the others."""
    return max((i + 1 for i, part in enumerate(parts) if part.family.reads_sparse), default=0)


def _own_rows(part: Part, rows: np.ndarray) -> Any:
    return part.family.arranged(np.ascontiguousarray(rows[:, part.start : part.stop]))
