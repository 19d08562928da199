"""What the processor can do at most: matrix products, and our own running sums of exponentials."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.subject import exponentials
from benchmarks.timing import median_seconds
from pymc_dpsplit.kernels.tiles import TILE

_ORDER = 1024
_N_ROWS = 1024


class Ceiling(NamedTuple):
    """Rates of one thread: float operations, and exponentials, per second."""

    flops: float
    exponentials: float

    def sweep_seconds(self, n_obs: int, n_features: int, n_clusters: int) -> float:
        """Seconds without which the densities of a full Gaussian sweep cannot be had."""
        pairs = n_obs * n_clusters
        work = n_features * (n_features + 1.0)  # a product by a triangle, then its squares
        return pairs * (work / self.flops + 1.0 / self.exponentials)


def measure_ceiling() -> Ceiling:
    """Medians on this thread, in float32; linear algebra must have been limited to one thread."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, _ORDER, _ORDER)).astype(np.float32)
    out = np.empty_like(left)
    product = median_seconds(lambda: np.matmul(left, right, out=out))
    fresh = (-20.0 * rng.random((_N_ROWS, TILE))).astype(np.float32)
    values = fresh.copy()

    def many(then: Callable[[np.ndarray], None] | None) -> None:
        for _ in range(100):
            np.copyto(values, fresh)
            if then is not None:
                then(values)

    both, copies = median_seconds(lambda: many(exponentials)), median_seconds(lambda: many(None))
    return Ceiling(2.0 * _ORDER**3 / product, 100 * fresh.size / (both - copies))
