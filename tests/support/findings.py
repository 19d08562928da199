"""What a comparison with the truth found, and what it would have found: rows of a table."""

from typing import NamedTuple

import numpy as np
from scipy import stats

from tests.support.statistics import LEVEL, pieces_of

# A bias of so many standard errors is found, at the level of the suite, nine times in ten.
FOUND = float(stats.norm.isf(0.5 * LEVEL) + stats.norm.isf(0.1))


class Finding(NamedTuple):
    """Bias of one statistic of one comparison.

    Attributes
    ----------
    check, case, statistic : str
    truth : float
        Mean of the statistic under the exact law.
    spread : float
        Its standard deviation.
    bias : float
        Mean found, less the truth.
    error : float
        Standard error of the bias.
    """

    check: str
    case: str
    statistic: str
    truth: float
    spread: float
    bias: float
    error: float

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no bias, by the normal law."""
        if self.error == 0.0:
            return 1.0 if self.bias == 0.0 else 0.0
        return float(2.0 * stats.norm.sf(abs(self.bias) / self.error))

    @property
    def detectable(self) -> float:
        """Bias that would have been found with probability 0.9."""
        return FOUND * self.error


def mean_and_error(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (p,) of statistics of chains (chains, S, p), and their errors by pieces."""
    means = pieces_of(draws).mean(axis=1)
    return means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))


def of_replicates(
    check: str, case: str, names: tuple[str, ...], before: np.ndarray, after: np.ndarray
) -> list[Finding]:
    """Biases of a step from exact draws: differences (R, p) within replicates."""
    difference = after - before
    errors = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
    rows = zip(names, before.mean(0), before.std(0), difference.mean(0), errors, strict=True)
    return [Finding(check, case, name, *map(float, row)) for name, *row in rows]


def of_chains(
    check: str, case: str, names: tuple[str, ...], draws: np.ndarray, exact: np.ndarray
) -> list[Finding]:
    """Biases of chains (chains, S, p) against others that are right, or independent draws."""
    mean, error = mean_and_error(draws)
    truth, truth_error = mean_and_error(exact)
    spread = exact.std(axis=(0, 1))
    rows = zip(names, truth, spread, mean - truth, np.hypot(error, truth_error), strict=True)
    return [Finding(check, case, name, *map(float, row)) for name, *row in rows]
