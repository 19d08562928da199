"""Warnings of `from_data` about rows that are legal but hardly what the user means.

They leave parts of the base measure that no data have shaped: the scale of a column that does not
vary is not known, and the columns of a transposed table are its observations.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pymc_dpsplit.components.arguments import shown
from pymc_dpsplit.data.blocks import range_of


def warn_of_rows(rows: np.ndarray, names: Sequence[Any] | None = None) -> None:
    """Warn the caller of `from_data` of columns that do not vary, and of more columns than rows.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        Of a family of real numbers; NaN where missing.
    names : sequence, optional
        Names of the columns of a table, which is not taken for a transposed one.
    """
    n_obs, n_features = rows.shape
    if names is None and n_features > n_obs:
        warnings.warn(
            f"observed has more columns, {n_features}, than rows, {n_obs}; if each column is an "
            "observation, give observed.T.",
            UserWarning,
            stacklevel=3,
        )
    lowest, highest = range_of(rows)
    constant = np.flatnonzero(lowest == highest)
    if not len(constant) or (n_obs == 1 and n_features > 1):
        return
    name = constant[0].item() if names is None else names[constant[0]]
    where = f" in column {shown(name)}" if n_features > 1 or names is not None else ""
    more = f" (and in {len(constant) - 1} more such columns)" if len(constant) > 1 else ""
    scale, remedy = "that of another column", "leave such columns out"
    if len(constant) == n_features:
        scale, remedy = "1", "give the hyperparameters yourself"
    warnings.warn(
        f"observed has the same number{where} in all rows{more}, so that "
        f"its scale is not known and {scale} is used; {remedy}.",
        UserWarning,
        stacklevel=3,
    )


@contextmanager
def unwarned() -> Iterator[None]:
    """Switch these warnings off, for rows that are made up or whose columns have names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "observed has ", UserWarning)
        yield
