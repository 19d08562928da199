"""Ticks of axes that show few whole numbers: counts, codes, and categories by their names."""

from collections.abc import Sequence
from typing import Any

import numpy as np

_FEW_VALUES = 20
_MOST_LETTERS, _CUT = 18, "\N{HORIZONTAL ELLIPSIS}"  # of a name, and what it lacks beyond
_FEW_LETTERS = 12  # of all names together, which then fit side by side in a panel


def has_few_values(values: np.ndarray) -> bool:
    """Whether values, NaN where missing, are few distinct whole numbers."""
    known = np.unique(values[np.isfinite(values)])
    return len(known) <= _FEW_VALUES and bool((known == np.rint(known)).all())


def shortened(name: str) -> str:
    """Return a name without its middle, if it would take much of a figure."""
    if len(name) <= _MOST_LETTERS:
        return name
    end = _MOST_LETTERS // 3  # names may differ in their last letters only
    return f"{name[: _MOST_LETTERS - 1 - end].rstrip()}{_CUT}{name[-end:].lstrip()}"


def mark_whole_numbers(axis: Any, values: np.ndarray, names: Sequence[str] | None) -> None:
    """Put the ticks of an axis at whole numbers, if it shows few of them.

    Parameters
    ----------
    axis : matplotlib Axis
        ``ax.xaxis`` or ``ax.yaxis``.
    values : ndarray, shape (N,)
        NaN where missing.
    names : sequence of str, optional
        Names of the codes 0, 1, ... of categories; long ones are shown without their middle.
    """
    if not has_few_values(values):
        return
    if names is None:
        axis.get_major_locator().set_params(integer=True)
        return
    codes = np.unique(values[np.isfinite(values)]).astype(int)
    shown = [shortened(names[code]) for code in codes]
    is_turned = axis.axis_name == "x" and sum(map(len, shown)) > _FEW_LETTERS
    turn = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_turned else {}
    axis.set_ticks(codes, shown, **turn)
