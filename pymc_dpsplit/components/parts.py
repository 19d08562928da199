"""Parts of a product: named families, each with its own columns."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily


class Part(NamedTuple):
    """A family with its name and its range of columns, from `start` to before `stop`."""

    name: str
    family: ComponentFamily
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start

    def own(self, values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of this part, without the prefix of its name; {} if there are none."""
        keys = {name: f"{self.name}_{name}" for name in names}
        return {name: values[key] for name, key in keys.items() if key in values}

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values with the name of the part as prefix of their names."""
        return {f"{self.name}_{name}": value for name, value in values.items()}


def joined(several: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Merge dicts."""
    return {name: value for each in several for name, value in each.items()}


@contextmanager
def named_faults(name: str) -> Iterator[None]:
    """Add the name of the part to the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"part {name!r}: {error}") from None


def width_of(own: Mapping[str, Any], ndims: Mapping[str, int], n_before: int) -> int:
    """Return the number of features of numerical or symbolic values.

    Parameters
    ----------
    own : mapping
        Name to array or tensor.
    ndims : mapping
        Name to number of axes of length D; at least one has such an axis.
    n_before : int
        Number of axes before those of length D.

    Returns
    -------
    int
    """
    widths = (getattr(own[name], "type", own[name]).shape for name, ndim in ndims.items() if ndim)
    return int(next(widths)[n_before])


def within(part: Part, features: np.ndarray) -> np.ndarray:
    """Return those of `features` that are columns of a part, relative to its first column."""
    return features[(features >= part.start) & (features < part.stop)] - part.start
