"""Where the parts of a mixture of numbers lie: points in and beside each of them."""

import numpy as np

from pymc_dpsplit.components.component_family import ComponentFamily
from pymc_dpsplit.posterior.trace.draws import MixtureDraw

# Draws of each part, of which the extremes are near two standard deviations.
_N_DRAWS = 25
# Knots of a part that are nearer than this to others, in units of its spread, are left out.
_NEAREST = 0.1
# Ends of a positive or bounded support, where a density may have a jump or a pole.
_BOUNDS = 0.0, 1.0


def knots_of_parts(
    draw: MixtureDraw, component: ComponentFamily, rng: np.random.Generator
) -> np.ndarray:
    """Return points in and beside every atom of a draw and its prior predictive.

    Any family can draw from its parts, and a few draws tell where a part lies and how wide it is.

    Parameters
    ----------
    draw : MixtureDraw
        Of a mixture of scalars.
    component : ComponentFamily
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of float64, shape (P,)
        Sorted.
    """
    n_atoms, n = len(draw.weights), _N_DRAWS
    new = component.draw_rows(rng, component.draw_base(rng, draw.values, n), np.arange(n))
    parts = [np.reshape(new, (1, n))]
    if n_atoms:
        labels = np.repeat(np.arange(n_atoms), n)
        parts.append(np.reshape(component.draw_rows(rng, draw.parameters, labels), (n_atoms, n)))
    drawn = np.sort(np.concatenate(parts), axis=1)
    drawn = drawn[np.isfinite(drawn).all(1)]
    bounds = [of for of in _BOUNDS if (drawn >= of).all() or (drawn <= of).all()]
    return np.array(sorted([*bounds, *_thinned(*knots_about(drawn))]))


def knots_about(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points in and beside samples, and the spread to which these belong.

    Parameters
    ----------
    values : ndarray of float64, shape (M, n)
        Sorted samples.

    Returns
    -------
    knots, spread : ndarray of float64, shape (M, 7)
    """
    low, below, middle, above, high = np.quantile(values, [0.0, 0.15, 0.5, 0.85, 1.0], axis=1)
    # The spread of the middle: in heavy tails that of all would be as large as the largest draw.
    spread = np.maximum(above - below, 1e-12 * np.maximum(np.abs(middle), 1e-280))
    reach = np.minimum(high - low, 3.0 * spread)
    knots = np.stack([low - reach, low, below, middle, above, high, high + reach], axis=1)
    return knots, np.broadcast_to(spread[:, None], knots.shape)


def _thinned(knots: np.ndarray, spread: np.ndarray) -> list[float]:
    """Leave out points that have another one near them, relative to their spread."""
    order = np.argsort(knots, axis=None)
    kept: list[float] = []
    for at, width in zip(knots.flat[order], spread.flat[order], strict=True):
        if not kept or at - kept[-1] > _NEAREST * width:
            kept.append(float(at))
    return kept
