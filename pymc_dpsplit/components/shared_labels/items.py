"""Items: the observations of a chain, which are rows or groups of rows that share a label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.components.fixed_hyperparameters import with_values
from pymc_dpsplit.components.shared_labels.kernels import (
    N_BEFORE,
    GroupedRows,
    SharedLabelsPrior,
)
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
        Names of the G groups; None if every row is a group of its own that has no other name, or
        if the labels are known.
    known : ndarray of int64, shape (N,), optional
        Known label of each row, -1 for unknown; groups are then the rows of a known label, and
        single rows.  Every row is an observation of the process, and the rows of a group are
        together because that is observed.  None if the process is of groups.
    """

    group_of_row: np.ndarray
    counts: np.ndarray
    names: Sequence[Any] | None = None
    known: np.ndarray | None = None

    @property
    def n_groups(self) -> int:
        """Return the number of groups G."""
        return int(self.group_of_row.max()) + 1

    def dimension_in(self, name: str) -> tuple[str, list[Any]] | None:
        """Return the dimension of what has a density of its own, and its coordinate.

        These are the groups, or the rows of a known label together and each other row.  None if
        they have no other names than rows.

        Parameters
        ----------
        name : str
            Name of the mixture.
        """
        if self.names is not None:
            return f"{name}_group", list(self.names)
        if self.known is None:
            return None
        first = np.unique(self.group_of_row, return_index=True)[1]
        known = self.known[first]
        names = [f"label {z}" if z >= 0 else f"row {i}" for i, z in zip(first, known, strict=True)]
        return f"{name}_item", names

    @property
    def arguments(self) -> str:
        """Return the arguments by which these were given, for messages."""
        return "groups= and counts= are" if self.known is None else "labels= is"

    @property
    def has_counts(self) -> bool:
        """Return whether a row stands for several."""
        return bool((self.counts > 1.0).any())

    @property
    def n_observations(self) -> int:
        """Return the number of observations of the process: of groups, or of rows."""
        return self.n_groups if self.known is None else len(self.group_of_row)

    @property
    def multiplicities(self) -> np.ndarray:
        """Return how many observations of the process each group stands for, shape (G,)."""
        sizes = np.bincount(self.group_of_row)
        return np.ones_like(sizes) if self.known is None else sizes

    def log_together(self, strength: float, discount: float = 0.0) -> np.ndarray:
        """Return the log probability (G,) that draws of the remainder are one atom, eq. (7.55).

        Strength and discount are those of the law within the remainder.
        """
        sizes = self.multiplicities
        return (
            scipy.special.gammaln(sizes - discount)
            - scipy.special.gammaln(1.0 - discount)
            + scipy.special.gammaln(1.0 + strength)
            - scipy.special.gammaln(strength + sizes)
        )

    def grouped(self, rows: Any) -> GroupedRows:
        """Return rows, as their family arranges them, in groups."""
        if rows.shape[0] != len(self.group_of_row):
            raise ValueError(
                f"observed has {rows.shape[0]} rows, but {self.arguments} of "
                f"{len(self.group_of_row)}; declare the mixture anew."
            )
        sizes = np.bincount(self.group_of_row)
        members = np.argsort(self.group_of_row, kind="stable").astype(np.int64)
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        ends = np.cumsum(self.multiplicities).astype(np.int64)
        shape = len(sizes), int(rows.shape[1])
        return GroupedRows(rows, members, bounds, self.counts, ends, shape)


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

    @property
    def depends_on_law(self) -> bool:
        """Return whether the density of items given the measure depends on the law, eq. (7.55)."""
        return self.shared is not None and self.shared.known is not None

    def number_of_observations(self, rows: Rows) -> int:
        """Return the number of observations of the process, which is that of recorded labels."""
        return int(rows.shape[0]) if self.shared is None else self.shared.n_observations

    def recorded(self, labels: np.ndarray) -> np.ndarray:
        """Return labels of items as traces have them: of rows if some of these are known."""
        if self.shared is None or self.shared.known is None:
            return labels
        return labels[self.shared.group_of_row]

    def of_recorded(self, labels: np.ndarray, source: str = "start_labels") -> np.ndarray:
        """Return labels of items, given labels as traces have them.

        Parameters
        ----------
        labels : ndarray of int, shape (N,)
        source : str
            Where they are from, for the message.

        Returns
        -------
        ndarray of int, shape (G,)

        Raises
        ------
        ValueError
            If they separate rows whose known label is the same.
        """
        if self.shared is None or self.shared.known is None:
            return labels
        of_rows = self.shared.group_of_row
        first = np.unique(of_rows, return_index=True)[1]
        own = labels[first]
        apart = np.flatnonzero(own[of_rows] != labels)
        if len(apart):
            raise ValueError(
                f"{source} has rows {first[of_rows[apart[0]]]} and {apart[0]} in two clusters, "
                "but their known label is the same; give them one."
            )
        return own

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
        wider = np.zeros((params.shape[0], N_BEFORE + params.shape[1]))
        wider[:, N_BEFORE:] = params
        return wider

    def unpack(
        self, params: np.ndarray, values: Mapping[str, np.ndarray], shift: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Convert rows of `params` (K, P) to named cluster parameters, each (K, ...)."""
        of_rows = params if self.shared is None else np.ascontiguousarray(params[:, N_BEFORE:])
        return with_values(self.component, values).unpack(of_rows, shift)
