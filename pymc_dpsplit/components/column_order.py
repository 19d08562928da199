"""Order of the columns of a product: users keep theirs, kernels read those of each part together.

Rows, shifts and features are outward, in the order of the data, wherever other units see them.
`Product` takes them inward, to the order of its parts, before it passes them to its families.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.arguments import is_integer


class ColumnOrder(NamedTuple):
    """Order of the columns of the data and of the parts.

    Attributes
    ----------
    positions : ndarray of int64, shape (D,), optional
        Position in the data of each column of the parts; None if both have one order.
    """

    positions: np.ndarray | None = None

    def inward(self, values: Any) -> Any:
        """Return values (..., D), given in the order of the data, in that of the parts."""
        return values if self.positions is None else values[..., self.positions]

    def outward(self, values: Any) -> Any:
        """Return values (..., D), given in the order of the parts, in that of the data."""
        return values if self.positions is None else values[..., np.argsort(self.positions)]

    def inner_features(self, features: np.ndarray) -> np.ndarray:
        """Return the columns of the parts, ascending, that are some features of the data."""
        if self.positions is None:
            return features
        return np.flatnonzero(np.isin(self.positions, features))

    def of_features(self, features: np.ndarray) -> "ColumnOrder":
        """Return the order of data that consist of some of the features, ascending."""
        if self.positions is None:
            return self
        kept = self.positions[self.inner_features(features)]
        return _order_at(np.searchsorted(features, kept))

    def names_outward(self, keys: Sequence[Any] | None) -> list[Any] | None:
        """Return the columns of the parts in the order of the data."""
        if keys is None or self.positions is None:
            return None if keys is None else list(keys)
        return [keys[at] for at in np.argsort(self.positions)]


def order_of(keys: Sequence[Any] | None, names: Sequence[Any] | None) -> ColumnOrder:
    """Return the order of the columns of a product.

    Parameters
    ----------
    keys : sequence, optional
        Columns of the parts, part by part: names or positions.
    names : sequence, optional
        Names of the columns of the data, in their order; without them `keys` may be positions.

    Returns
    -------
    ColumnOrder
        One order for both if the data have no names and `keys` are no positions.
    """
    if keys is None:
        return ColumnOrder()
    if names is not None:
        position = {name: at for at, name in enumerate(names)}
        return _order_at(np.array([position[key] for key in keys]))
    if all(is_integer(key) for key in keys) and sorted(keys) == list(range(len(keys))):
        return _order_at(np.array(keys))
    return ColumnOrder()


def keys_of(columns: Mapping[str, Sequence[Any]] | None) -> list[Any] | None:
    """Return the columns of all parts, part by part."""
    return None if columns is None else [key for keys in columns.values() for key in keys]


def _order_at(positions: np.ndarray) -> ColumnOrder:
    is_same = bool((positions == np.arange(len(positions))).all())
    return ColumnOrder(None if is_same else positions.astype(np.int64))
