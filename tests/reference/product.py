"""Naive twin of products: the sum of its parts, which are twins themselves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.reference.families import Parameters


class Product:
    """Columns shared out among twins: the name, number of columns and twin of each of `parts`."""

    def __init__(self, parts: Mapping[str, tuple[int, Any]]) -> None:
        self.parts = dict(parts)

    def _columns(self, rows: np.ndarray) -> list[tuple[str, Any, np.ndarray]]:
        stops = np.cumsum([width for width, _ in self.parts.values()])
        columns = np.split(rows, stops[:-1], axis=-1)
        return [
            (name, twin, own)
            for (name, (_, twin)), own in zip(self.parts.items(), columns, strict=True)
        ]

    def _own(self, name: str, params: Mapping[str, np.ndarray]) -> Parameters:
        prefix = f"{name}_"
        return {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}

    def log_marginal(self, rows: np.ndarray) -> float:
        return sum(twin.log_marginal(own) for _, twin, own in self._columns(rows))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        pairs = zip(self._columns(row), self._columns(rows), strict=True)
        return sum(twin.log_predictive(one, own) for (_, twin, one), (_, _, own) in pairs)

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        drawn = {}
        for name, twin, own in self._columns(rows):
            for key, value in twin.draw_parameters(rng, own, size).items():
                drawn[f"{name}_{key}"] = value
        return drawn

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        parts = self.parts.items()
        drawn = [twin.draw_rows(rng, self._own(name, params), n) for name, (_, twin) in parts]
        return np.hstack([rows.reshape(n, -1) for rows in drawn])

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return sum(
            (
                twin.log_density(own, self._own(name, params))
                for name, twin, own in self._columns(rows)
            ),
            np.zeros(len(rows)),
        )

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        parts = self.parts.items()
        return sum(twin.log_prior(self._own(name, params)) for name, (_, twin) in parts)

    def restricted(self, features: np.ndarray) -> "Product":
        kept, start = {}, 0
        for name, (width, twin) in self.parts.items():
            own = features[(features >= start) & (features < start + width)] - start
            if len(own):
                # Some families have no law of some of their columns.
                kept[name] = len(own), twin if len(own) == width else twin.restricted(own)
            start += width
        return Product(kept)
