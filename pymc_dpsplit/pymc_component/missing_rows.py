"""Missing rows of a component: what is refused, as no law of its distribution stands for it.

A distribution of scalars has a law of each row, so a missing one is drawn from it.  One of vectors
has no law of some elements given others that could be read off its density, so a vector is missing
as a whole or not at all.
"""

from collections.abc import Callable

import numpy as np


def complete_rows(rows: np.ndarray, has_covariates: bool) -> np.ndarray:
    """Return the rows that are not missing; refuse those that are missing in part.

    Parameters
    ----------
    rows : ndarray of float64 or float32, shape (N, D)
        NaN where missing.
    has_covariates : bool
        Whether the component has covariates, with which no row is imputed.

    Returns
    -------
    ndarray, shape (n, D)
        `rows` itself if none is missing.
    """
    is_missing = np.isnan(rows)
    if not is_missing.any():
        return rows
    if has_covariates:
        raise ValueError(
            "observed has missing entries, which Component with covariates does not impute; drop "
            "those rows, or use LinearRegression and predict for their responses."
        )
    partly = is_missing.any(1) & ~is_missing.all(1)
    if partly.any():
        (row, *_) = np.flatnonzero(partly)
        absent = ", ".join(map(str, np.flatnonzero(is_missing[row])))
        several = "rows that are" if partly.sum() > 1 else "row that is"
        raise ValueError(
            f"observed has {partly.sum()} {several} missing in part (column {absent} of row {row})"
            ", but Component has no law of some columns of a vector given the others; drop those "
            "rows, or give all of the vector as missing."
        )
    return rows[~is_missing.any(1)]


def first_of(present: np.ndarray) -> np.ndarray:
    """Return the first row (D,) of those that are not missing; refuse data without one."""
    if not len(present):
        raise ValueError(
            "observed has no row that is not missing, by which Component could be checked; leave "
            "its columns out."
        )
    return np.array(present[0], float)


def refuse_no_draws(label: str, draw: Callable[[], object]) -> None:
    """Refuse missing rows of a distribution that cannot be drawn from.

    Parameters
    ----------
    label : str
        Name of the distribution.
    draw : callable
        Makes a trial draw.
    """
    try:
        draw()
    except Exception as error:  # whatever a function of the user raises
        (first, *_) = str(error).splitlines() or [type(error).__name__]
        raise ValueError(
            f"observed has missing entries, which cannot be drawn from {label} "
            f"({first.rstrip('.')}); drop those rows, or give pm.CustomDist its random=."
        ) from None
