"""Parts of a product: families with names and columns of their own."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from pymc_dpsplit.components.declaration import Component


class Part(NamedTuple):
    """A family with its name, and the columns `start` to `stop` that are its own."""

    name: str
    family: Component
    start: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.start

    def own(self, values: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
        """Those of `values` that are its own, without its name; {} if it is not among them."""
        keys = {name: f"{self.name}_{name}" for name in names}
        return {name: values[key] for name, key in keys.items() if key in values}

    def named(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values with its name before theirs."""
        return {f"{self.name}_{name}": value for name, value in values.items()}


def joined(several: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Put several dicts together."""
    return {name: value for each in several for name, value in each.items()}


@contextmanager
def named_faults(name: str) -> Iterator[None]:
    """Name the part that a fault is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"part {name!r}: {error}") from None


def width_of(own: Mapping[str, Any], ndims: Mapping[str, int], n_before: int) -> int:
    """Return the number of features that values, numerical or symbolic, are of."""
    widths = (getattr(own[name], "type", own[name]).shape for name, ndim in ndims.items() if ndim)
    return int(next(widths)[n_before])


def within(part: Part, features: np.ndarray) -> np.ndarray:
    """Return those of `features` that are columns of a part, counted from its first."""
    return features[(features >= part.start) & (features < part.stop)] - part.start
