"""Running moments of predicted responses over draws; docs/method.md, eqs. (11.13) and (11.15)."""

import numpy as np


class ResponseMoments:
    """Running sums over draws, each weighted by the density of the row, scaled by the largest.

    Parameters
    ----------
    shape : tuple of int
        Shape of the responses.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._highest = np.full(shape, -np.inf)
        self._total, self._squares = np.zeros(shape), np.zeros(shape)
        self._gap, self._square = np.zeros(shape), np.zeros(shape)
        self._origin: np.ndarray | None = None

    def add(self, log_density: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> None:
        """Add the moments under one draw, and its log density of what is given of each row."""
        if self._origin is None:
            self._origin = mean.copy()
        highest = np.maximum(self._highest, log_density)
        # If all densities are zero so far, the scale is arbitrary.
        scale = np.where(np.isfinite(highest), highest, 0.0)
        kept, weight = np.exp(self._highest - scale), np.exp(log_density - scale)
        gap = mean - self._origin
        square = np.where(weight > 0.0, variance + gap**2, 0.0)
        self._highest = highest
        self._total = kept * self._total + weight
        self._squares = kept**2 * self._squares + weight**2
        self._gap = kept * self._gap + weight * gap
        # What is left of an infinite variance under draws that no longer count is nothing.
        with np.errstate(invalid="ignore"):
            former = np.where(kept > 0.0, kept * self._square, 0.0)
        self._square = former + weight * square

    @property
    def mean(self) -> np.ndarray:
        """Return the average mean; NaN if the density is zero in all draws."""
        assert self._origin is not None
        with np.errstate(invalid="ignore"):
            return self._origin + self._gap / self._total

    @property
    def sd(self) -> np.ndarray:
        """Return the root of the average variance and of the variance of the mean."""
        with np.errstate(invalid="ignore"):
            return np.sqrt(self._square / self._total - (self._gap / self._total) ** 2)

    @property
    def effective_draws(self) -> np.ndarray:
        """Return the effective number of draws, eq. (11.4)."""
        with np.errstate(invalid="ignore"):
            return self._total**2 / self._squares
