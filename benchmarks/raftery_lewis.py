"""How many iterations a chain needs (Raftery & Lewis 1992), from a trace of one quantity.

The defaults ask for the probability of being below the 0.025 quantile to within 0.01, with
probability 0.95: independent draws would need 937.  Two iterations more, 939, is what Raykov,
Boukouvalas & Little (2014) report for two data sets.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

_BURN_IN_ERROR = 0.001


class Need(NamedTuple):
    """Iterations to discard, and iterations to keep."""

    burn_in: int
    kept: int


def least_need(quantile: float = 0.025, within: float = 0.01, level: float = 0.95) -> float:
    """Draws that are needed if they are independent."""
    z = float(norm.ppf(0.5 * (1.0 + level)))
    return quantile * (1.0 - quantile) * (z / within) ** 2


def need_of(trace: np.ndarray, quantile: float = 0.025, within: float = 0.01) -> Need:
    """Estimate from a pilot trace (S,) how long the chain has to be."""
    is_below = (trace <= np.quantile(trace, quantile)).astype(np.int64)
    thin = 1
    while thin < len(trace) // 20 and not _is_first_order(is_below[::thin]):
        thin += 1
    counts = _transitions(is_below[::thin])
    up, down = (counts[a, 1 - a] / max(counts[a].sum(), 1.0) for a in (0, 1))
    if up == 0.0 or down == 0.0:
        return Need(len(trace), len(trace))
    rest = abs(1.0 - up - down)
    error = _BURN_IN_ERROR * (up + down) / max(up, down)
    burn_in = 1 if rest == 0.0 else max(1, math.ceil(math.log(error) / math.log(rest)))
    z = float(norm.ppf(0.975)) / within
    kept = up * down * (2.0 - up - down) / (up + down) ** 3 * z**2
    return Need(burn_in * thin, math.ceil(kept * thin))


def _transitions(chain: np.ndarray) -> np.ndarray:
    counts = np.zeros((2, 2))
    np.add.at(counts, (chain[:-1], chain[1:]), 1.0)
    return counts


def _is_first_order(chain: np.ndarray) -> bool:
    """Whether BIC prefers a Markov chain of first order to one of second."""
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, (chain[:-2], chain[1:-1], chain[2:]), 1.0)
    total = counts.sum(2, keepdims=True) * counts.sum(0, keepdims=True)
    expected = total / np.maximum(counts.sum((0, 2), keepdims=True), 1.0)
    seen = counts > 0.0
    deviance = 2.0 * float((counts[seen] * np.log(counts[seen] / expected[seen])).sum())
    return deviance < 2.0 * math.log(max(len(chain) - 2, 2))
