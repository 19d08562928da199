"""Naive twins of the families whose clusters share something: the textbook in plain NumPy.

Data `rows` have shape (n, D), D = 1 for `NormalMean`; n = 0 is legal.  Marginal likelihoods are
densities of all rows at once and predictives those of one row, so each checks the other by the
chain rule.

References
----------
.. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, sections 2.5, 2.6 and 3.5.
"""

from collections.abc import Mapping

import numpy as np
from scipy import stats

from tests.reference.families import Parameters


class NormalMean:
    """mu ~ N(mu0, sigma0^2), x ~ N(mu, sigma^2) with a known sigma; parameter `mu`, a scalar."""

    def __init__(self, mu0: float, sigma0: float, sigma: float) -> None:
        self.mu0, self.sigma0, self.sigma = mu0, sigma0, sigma

    def posterior(self, rows: np.ndarray) -> tuple[float, float, float]:
        """Hyperparameters given the data [1]_."""
        precision = 1 / self.sigma0**2 + len(rows) / self.sigma**2
        total = self.mu0 / self.sigma0**2 + rows.sum() / self.sigma**2
        return total / precision, precision**-0.5, self.sigma

    def log_marginal(self, rows: np.ndarray) -> float:
        n = len(rows)
        if n == 0:
            return 0.0
        # Along the mean the variance is that of the sum, in every other direction sigma^2.
        variance = np.append(self.sigma**2 + n * self.sigma0**2, np.full(n - 1, self.sigma**2))
        along = n * (rows.mean() - self.mu0) ** 2 / variance[0]
        across = np.sum((rows - rows.mean()) ** 2) / self.sigma**2
        return float(-0.5 * (np.log(2 * np.pi * variance).sum() + along + across))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        mu, sigma_mu, sigma = self.posterior(rows)
        return float(stats.norm.logpdf(np.reshape(row, ()), mu, np.hypot(sigma_mu, sigma)))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        mu, sigma_mu, _ = self.posterior(rows)
        return {"mu": rng.normal(mu, sigma_mu, size)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.normal(params["mu"], self.sigma, (n, 1))

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.norm.logpdf(rows[:, 0], params["mu"], self.sigma)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.norm.logpdf(params["mu"], self.mu0, self.sigma0))

    def restricted(self, features: np.ndarray) -> "NormalMean":
        return NormalMean(self.mu0, self.sigma0, self.sigma)

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.array([params["mu"]]), np.array([[self.sigma**2]])
