"""Integrals of likelihood times density over one variable, over panels halved where needed."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# From points (B, N), a column for each function, to logarithms (B, N).
OfValues = Callable[[np.ndarray], np.ndarray]
# The same, to logarithms of the density and of the likelihood.
DensityAndLikelihood = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

# Rules of Gauss with 3 points, and of Kronrod, which adds 4.
_HALF = [0.960491268708020283, 0.774596669241483377, 0.434243749346802558]
_NODES = np.array([*(-of for of in _HALF), 0.0, *_HALF[::-1]])
_OUTER = [0.104656226026467265, 0.268488089868333441, 0.401397414775962223]
_KRONROD = np.array([*_OUTER, 0.450916538658474142, *_OUTER[::-1]])
_GAUSS = np.array([0.0, 5.0, 0.0, 8.0, 0.0, 5.0, 0.0]) / 9.0
# A panel is halved where the rules differ by more than this part of the whole integral.  They may
# agree by chance where neither is as accurate, so that it is far below the error that matters.
TOLERANCE = 1e-5
# Halvings of a panel, and panels that are halved at once, at most.
_MOST_LEVELS, _MOST_PANELS = 60, 2048
# Panels beyond the knots end at these distances, on a scale that is logarithmic far away.
_BEYOND = np.array([1.0, 3.0, 9.0, 27.0])


class Integrals(NamedTuple):
    """Integrals of N functions, and how far they can be trusted.

    Attributes
    ----------
    log_value : ndarray of float64, shape (N,)
        Logarithms of the integrals of likelihood times density.
    error : ndarray of float64, shape (N,)
        Differences between the two rules in panels that were not halved any more, relative to the
        integral.
    mass : ndarray of float64, shape (N,)
        Integrals of the density alone, which are one unless a part of it was missed.
    """

    log_value: np.ndarray
    error: np.ndarray
    mass: np.ndarray


class _Scale(NamedTuple):
    """A scale on which x is linear near `centre` and logarithmic beyond `unit` from it."""

    centre: float
    unit: float

    def of(self, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.arcsinh((x - self.centre) / self.unit)
        return found

    def back(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x, and the logarithm of its derivative."""
        log_slope = np.logaddexp(t, -t) + np.log(0.5 * self.unit)
        return self.centre + self.unit * np.sinh(t), log_slope


def integrals(
    of: DensityAndLikelihood, knots: np.ndarray, tolerance: float = TOLERANCE
) -> Integrals:
    """Integrate N products of a likelihood and a density over all real numbers.

    A panel between two knots is halved until the rules of Gauss and Kronrod agree in it on both the
    density alone and the product.  Two rules also agree where both miss a peak, so that knots must
    stand in and beside every peak of either function, at distances of the order of its width.

    Parameters
    ----------
    of : callable
    knots : ndarray of float64, shape (P, N)
        For each function, in any order.
    tolerance : float
        Difference of the rules in a panel, relative to the whole integral, that is accepted.

    Returns
    -------
    Integrals
    """
    scale = _Scale(float(np.median(knots)), _unit_of(knots))
    ends = _with_ends(np.sort(scale.of(knots), axis=0))
    low, high = ends[:-1], ends[1:]
    n_functions = knots.shape[1]
    top, done = np.full((2, n_functions), -np.inf), np.zeros((2, n_functions))
    for _ in range(_MOST_LEVELS):
        # The first index is that of density and product.
        logs = _logs_at_nodes(of, scale, low, high)
        before, top = top, np.maximum(top, logs.max((1, 2)))
        base = np.where(np.isfinite(top), top, 0.0)
        done *= np.exp(np.minimum(before - base, 0.0))
        values = np.exp(logs - base[:, None, None]) * (0.5 * (high - low))
        found = np.tensordot(_KRONROD, values, (0, 1))
        gap = np.abs(found - np.tensordot(_GAUSS, values, (0, 1)))
        whole = done + found.sum(1)
        is_open = (gap > tolerance * whole[:, None]).any(0)
        left = np.where(is_open, gap[1], 0.0).sum(0)
        most = int(is_open.sum(0).max())
        if most == 0 or most > _MOST_PANELS:
            break
        done += np.where(is_open, 0.0, found).sum(1)
        low, high = _halved(low, high, is_open, most)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(whole[1] > 0.0, left / whole[1], 0.0)
        return Integrals(np.log(whole[1]) + top[1], error, whole[0] * np.exp(top[0]))


def _unit_of(knots: np.ndarray) -> float:
    """Return the distance beyond which most knots do not lie, a positive number."""
    low, high = np.quantile(knots, [0.25, 0.75])
    return float(max(high - low, 1e-3 * (np.ptp(knots)), np.finfo(float).tiny))


def _with_ends(knots: np.ndarray) -> np.ndarray:
    """Add knots far beyond the first and the last ones."""
    beyond = _BEYOND[:, None]
    return np.concatenate([knots[0] - beyond[::-1], knots, knots[-1] + beyond])


def _logs_at_nodes(
    of: DensityAndLikelihood, scale: _Scale, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Return the logs of density and product at the nodes, (2, 7, P, N), on the scale."""
    nodes = 0.5 * (low + high) + 0.5 * (high - low) * _NODES[:, None, None]
    x, log_slope = scale.back(nodes)
    density, likelihood = (part.reshape(x.shape) for part in of(x.reshape(-1, x.shape[2])))
    return np.stack([density + log_slope, density + likelihood + log_slope])


def _halved(
    low: np.ndarray, high: np.ndarray, is_open: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Halve open panels; of functions with fewer of them others are kept without width."""
    first = np.argsort(~is_open, axis=0, kind="stable")[:most]
    low, high, is_open = (np.take_along_axis(of, first, 0) for of in (low, high, is_open))
    middle = np.where(is_open, 0.5 * (low + high), low)
    return np.concatenate([low, middle]), np.concatenate([middle, np.where(is_open, high, low)])
