"""The law of one feature in every draw: density, distribution function and quantiles."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from pymc_dpsplit.posterior.trace.gaussian_density import GaussianDraws, density_at

Density = Callable[[np.ndarray], np.ndarray]

_HALVINGS = 60  # of an interval that contains a quantile: to the last digit of float64
_FAR = 40.0  # standard deviations beyond which a normal distribution has no mass in float64
_CELLS = 4_000
# More whole numbers than that are a table that nobody wants.
_MOST_COUNTS = 100_000


class FeatureLaw(Protocol):
    """The law of one feature in S draws."""

    def density(self, points: np.ndarray) -> np.ndarray:
        """Return the density or probability (S, G) of points (G, 1)."""

    def cdf(self, grid: np.ndarray) -> np.ndarray:
        """Return the probability (S, G) of values up to each of `grid` (G,)."""

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the quantiles (S, P) of `probabilities` (P,), each between 0 and 1."""


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """Mixtures of normal distributions, in closed form.

    Attributes
    ----------
    draws : GaussianDraws
        In one feature.
    """

    draws: GaussianDraws

    def density(self, points: np.ndarray) -> np.ndarray:
        return density_at(points, self.draws)

    def cdf(self, grid: np.ndarray) -> np.ndarray:
        return self._cdf(np.broadcast_to(grid, (len(self.draws.weights), len(grid))))

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        mean, sd = self._moments
        occupied = self.draws.weights > 0
        low = np.where(occupied, mean - _FAR * sd, np.inf).min(1)
        high = np.where(occupied, mean + _FAR * sd, -np.inf).max(1)
        shape = len(low), len(probabilities)
        low, high = (np.broadcast_to(of[:, None], shape) for of in (low, high))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_below = self._cdf(middle) < probabilities
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        return (low + high) / 2

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self.draws.mu[..., 0], np.sqrt(self.draws.cov[..., 0, 0])

    def _cdf(self, points: np.ndarray) -> np.ndarray:
        """Return the probability (S, G) of values up to `points` (S, G)."""
        mean, sd = self._moments
        found = np.empty(points.shape)
        for out, x, w, m, s in zip(found, points, self.draws.weights, mean, sd, strict=True):
            out[:] = ndtr((x[:, None] - m) / s) @ w
        return found


@dataclass(frozen=True, eq=False)
class CountLaw:
    """Probabilities of whole numbers from zero.

    Attributes
    ----------
    density : callable
        From points (G, 1) to probabilities (S, G).
    highest : int
        Quantiles above it are not found.
    """

    density: Density
    highest: int

    def cdf(self, grid: np.ndarray) -> np.ndarray:
        up_to = np.floor(grid).astype(int)
        cumulative = self._cumulative(max(self.highest, int(up_to.max())))
        return np.where(up_to >= 0, cumulative[:, np.maximum(up_to, 0)], 0.0)

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        cumulative = self._cumulative(self.highest)
        reached = cumulative[:, :, None] >= probabilities
        return np.where(reached.any(1), reached.argmax(1).astype(float), np.nan)

    def _cumulative(self, highest: int) -> np.ndarray:
        if highest > _MOST_COUNTS:
            raise ValueError(
                f"the counts reach {highest}, more than can be tabulated; give features= of "
                "smaller numbers, or a grid= that ends below."
            )
        return self.density(np.arange(highest + 1.0)[:, None]).cumsum(1)


@dataclass(frozen=True, eq=False)
class NumberLaw:
    """Densities of real numbers, integrated numerically.

    Attributes
    ----------
    density : callable
        From points (G, 1) to densities (S, G).
    low, high : float
        Range of the integration; what lies outside is left out.
    """

    density: Density
    low: float
    high: float

    def cdf(self, grid: np.ndarray) -> np.ndarray:
        edges, cumulative = self._cumulative
        return np.array([np.interp(grid, edges, of) for of in cumulative])

    def quantiles(self, probabilities: np.ndarray) -> np.ndarray:
        edges, cumulative = self._cumulative
        found = np.array([np.interp(probabilities, of, edges) for of in cumulative])
        return np.where(probabilities <= cumulative[:, -1:], found, np.nan)

    @cached_property
    def _cumulative(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges (M + 1,) of cells and the mass (S, M + 1) up to them."""
        edges = np.linspace(self.low, self.high, _CELLS + 1)
        # Midpoints: at an end of the support the density may be infinite.
        mass = self.density((edges[1:] + edges[:-1])[:, None] / 2) * np.diff(edges)
        return edges, np.pad(mass.cumsum(1), ((0, 0), (1, 0)))
