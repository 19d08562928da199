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
# Cells of a numerical integration: a few hundred by each of several rules at first.  Until there
# are so many, those are halved of which the mass changes by more than NEGLIGIBLE if they are, is
# above MOST_MASS, or would be another by more than STEEP with the density at an end.
_FIRST, _MOST_CELLS = 400, 8_000
_NEGLIGIBLE, _MOST_MASS, _STEEP = 1e-7, 1e-3, 1e-4
# Smallest number of a range that begins at 0, and largest distance from the values, in their range.
_TINY, FAR_OUT = 1e-300, 1e3
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
    """Densities of real numbers, integrated over cells that are halved where it matters.

    Attributes
    ----------
    density : callable
        From points (G, 1) to densities (S, G).
    low, high : float
        Range of the integration; what lies outside is left out.  If it begins at 0 the density may
        be infinite there.
    values : ndarray of float64, shape (n,)
        Numbers near which there is mass, however narrow the clusters: the observations.
    """

    density: Density
    low: float
    high: float
    values: np.ndarray

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
        edges = self._first_edges()
        mass, is_settled = self._mass(edges[:-1], edges[1:]), np.zeros(len(edges) - 1, bool)
        # Means over draws of the densities at edges; at 0 that may be infinite.
        heights = np.append(0.0, self.density(edges[1:, None]).mean(0))
        while len(edges) <= _MOST_CELLS and not is_settled.all():
            halved = np.flatnonzero(~is_settled)
            left, right = edges[halved], edges[halved + 1]
            middle, width = _middle(left, right), _width(left, right)
            halves = np.stack([self._mass(left, middle), self._mass(middle, right)], axis=2)
            height = mass[:, halved].mean(0) / width
            error = np.abs(mass[:, halved] - halves.sum(2)).mean(0)
            settled = (error < _NEGLIGIBLE) & (halves.sum(2).mean(0) < _MOST_MASS)
            # A cluster may be narrower than the cell, and at its end.
            for end in (halved, halved + 1):
                settled &= (np.abs(heights[end] - height) * width < _STEEP) | (edges[end] == 0.0)
            edges, heights = (
                np.insert(of, halved + 1, new) for of, new in ((edges, middle), (heights, height))
            )
            mass = np.repeat(mass, np.where(is_settled, 1, 2), axis=1)
            at = halved + np.arange(len(halved))  # of the left halves, now
            mass[:, at], mass[:, at + 1] = halves[:, :, 0], halves[:, :, 1]
            is_settled = np.repeat(is_settled, np.where(is_settled, 1, 2))
            is_settled[at] = is_settled[at + 1] = settled
        return edges, np.pad(mass.cumsum(1), ((0, 0), (1, 0)))

    def _first_edges(self) -> np.ndarray:
        lowest, highest = self.values.min(), self.values.max()
        spread = (highest - lowest) or 1.0
        outwards = spread * np.geomspace(1e-3, FAR_OUT, _FIRST // 4)
        parts = [
            np.array([self.low, self.high]),
            np.linspace(lowest, highest, _FIRST),
            np.quantile(self.values, np.linspace(0.0, 1.0, _FIRST)),
            highest + outwards,
        ]
        if self.low == 0.0:
            parts.append(np.geomspace(_TINY, self.high, 2 * _FIRST))
        else:
            parts.append(lowest - outwards)
        edges = np.unique(np.concatenate(parts))
        return edges[(edges >= self.low) & (edges <= self.high)]

    def _mass(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the mass (S, M) of cells by the midpoint rule."""
        return self.density(_middle(left, right)[:, None]) * _width(left, right)


def _is_long(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return which cells of positive numbers have ends of different size."""
    found: np.ndarray = (left > 0.0) & (right > 2.0 * left)
    return found


def _middle(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the middle of each cell, in log x where `_is_long`."""
    middle, is_long = 0.5 * (left + right), _is_long(left, right)
    middle[is_long] = np.sqrt(left[is_long]) * np.sqrt(right[is_long])
    return middle


def _width(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the width of each cell, in log x where `_is_long`, times x."""
    width, is_long = right - left, _is_long(left, right)
    middle = _middle(left, right)[is_long]
    width[is_long] = middle * np.log(right[is_long] / left[is_long])
    return width
