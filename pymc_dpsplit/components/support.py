"""Supports of families: legal entries, and advice for the message about others."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymc_dpsplit.components.arguments import refuse_where


class Support(NamedTuple):
    """Set of legal entries of a family.

    Attributes
    ----------
    is_wrong : callable
        From rows (n, D) to bool (n, D), true for illegal entries.
    remedy : str
        Advice for the message: what to give instead.
    """

    is_wrong: Callable[[np.ndarray], np.ndarray]
    remedy: str

    def refuse(self, rows: np.ndarray) -> None:
        """Refuse rows outside the support, see `arguments.refuse_where`."""
        refuse_where(self.is_wrong, rows, self.remedy)


COUNTS = Support(lambda x: (x < 0) | (x != np.floor(x)), "give counts, whole numbers from 0")
ZERO_ONE = Support(lambda x: (x != 0) & (x != 1), "give 0 and 1, or truth values")
POSITIVE = Support(lambda x: x <= 0, "give positive numbers, or another component")
NOT_NEGATIVE = Support(lambda x: x < 0, "give numbers from 0, or another component")
