"""Items: the observations of a chain, which are rows or groups of rows that share a label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.shared_labels.kernels import GroupedRows, SharedLabelsPrior
from pymc_dpsplit.data.sparse_rows import Rows


@dataclass(frozen=True, eq=False)
class SharedLabels:
    """Which rows share a label, and how many rows each stands for.

    Attributes
    ----------
    group_of_row : ndarray of int64, shape (N,)
        Group 0 .. G - 1 of each row; every group has a row.
    counts : ndarray of float64, shape (N,)
        Whole numbers from 1.
    names : sequence, optional
        Names of the G groups; None if every row is a group of its own that has no other name.
    """

    group_of_row: np.ndarray
    counts: np.ndarray
    names: Sequence[Any] | None = None

    @property
    def n_groups(self) -> int:
        """Return the number of groups G."""
        return int(self.group_of_row.max()) + 1

    @property
    def has_counts(self) -> bool:
        """Return whether a row stands for several."""
        return bool((self.counts > 1.0).any())

    def grouped(self, rows: Any) -> GroupedRows:
        """Return rows, as their family arranges them, in groups."""
        if rows.shape[0] != len(self.group_of_row):
            raise ValueError(
                f"observed has {rows.shape[0]} rows, but groups= and counts= are of "
                f"{len(self.group_of_row)}; declare the mixture anew."
            )
        sizes = np.bincount(self.group_of_row)
        members = np.argsort(self.group_of_row, kind="stable").astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return GroupedRows(rows, members, bounds, self.counts, (len(sizes), int(rows.shape[1])))


@dataclass(frozen=True, eq=False)
class Items:
    """Prior, observations and parameters of a mixture in the form that kernels read.

    Attributes
    ----------
    component : ComponentFamily
        The family of the rows.
    shared : SharedLabels, optional
        None if every row has a label of its own.
    """

    component: ComponentFamily
    shared: SharedLabels | None = None

    def number_of(self, rows: Rows) -> int:
        """Return the number of items: of rows, or of groups."""
        return int(rows.shape[0]) if self.shared is None else self.shared.n_groups

    def prior(self, values: Mapping[str, np.ndarray], shift: np.ndarray) -> Any:
        """Return the prior, see `ComponentFamily.prior`."""
        prior = self.component.prior(values, shift)
        return prior if self.shared is None else SharedLabelsPrior(shift, prior)

    def arranged(self, rows: Rows) -> Any:
        """Return the items, see `ComponentFamily.arranged`."""
        arranged = self.component.arranged(rows)
        return arranged if self.shared is None else self.shared.grouped(arranged)

    def pack(
        self,
        parameters: Mapping[str, np.ndarray],
        values: Mapping[str, np.ndarray],
        shift: np.ndarray,
    ) -> np.ndarray:
        """Convert named cluster parameters, each (K, ...), to rows of `params` (K, P)."""
        params = with_values(self.component, values).pack(parameters, shift)
        if self.shared is None:
            return params
        wider = np.zeros((params.shape[0], params.shape[1] + 1))
        wider[:, 1:] = params
        return wider

    def unpack(
        self, params: np.ndarray, values: Mapping[str, np.ndarray], shift: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Convert rows of `params` (K, P) to named cluster parameters, each (K, ...)."""
        of_rows = params if self.shared is None else np.ascontiguousarray(params[:, 1:])
        return with_values(self.component, values).unpack(of_rows, shift)
