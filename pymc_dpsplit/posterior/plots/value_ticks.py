"""Ticks of axes that show few whole numbers: counts, codes, and categories by their names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

_FEW_VALUES = 20
_FEW_LETTERS = 12  # of all names together, which then fit side by side in a panel


def has_few_values(values: np.ndarray) -> bool:
    """Whether values, NaN where missing, are few distinct whole numbers."""
    known = np.unique(values[np.isfinite(values)])
    return len(known) <= _FEW_VALUES and bool((known == np.rint(known)).all())


def mark_whole_numbers(axis: Any, values: np.ndarray, names: Sequence[str] | None) -> None:
    """Put the ticks of an axis at whole numbers, if it shows few of them.

    Parameters
    ----------
    axis : matplotlib Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    values : ndarray, shape (N,)
        NaN where missing.
    names : sequence of str, optional
        Names of the codes 0, 1, ... of categories.
    """
    if not has_few_values(values):
        return
    if names is None:
        axis.get_major_locator().set_params(integer=True)
        return
    codes = np.unique(values[np.isfinite(values)]).astype(int)
    shown = [names[code] for code in codes]
    is_turned = axis.axis_name == "x" and sum(map(len, shown)) > _FEW_LETTERS
    turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_turned else {}
    axis.set_ticks(codes, shown, **turn)
