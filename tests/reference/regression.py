"""Naive twin of the linear regression, from the law of all responses at once.

Rows (n, D) hold the covariates, then the response; the first coefficient is the intercept.

References
----------
.. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, section 14.8.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from tests.reference.example import Draws, Example, uniforms_of

Parameters = dict[str, np.ndarray]


class LinearRegression:
    """A regression y ~ N(x' beta, sigma^2).

    sigma^2 ~ InvGamma(a0, b0) and beta | sigma^2 ~ N(mu0, sigma^2 inv(lambda0)).
    Parameters are `beta` (D,), the intercept first, and `sigma`, a scalar.
    """

    covariates = np.empty((1, 0))

    def __init__(self, mu0: np.ndarray, lambda0: np.ndarray, a0: float, b0: float) -> None:
        self.mu0, self.lambda0 = np.atleast_1d(mu0), np.atleast_2d(lambda0)
        self.a0, self.b0 = a0, b0

    @staticmethod
    def split(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the design matrix and the responses."""
        return np.column_stack([np.ones(len(rows)), rows[:, :-1]]), rows[:, -1]

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Hyperparameters given the data [1]_."""
        x, y = self.split(rows)
        precision = self.lambda0 + x.T @ x
        mean = np.linalg.solve(precision, self.lambda0 @ self.mu0 + x.T @ y)
        gap = mean - self.mu0
        squares = np.sum((y - x @ mean) ** 2) + gap @ self.lambda0 @ gap
        return mean, precision, self.a0 + len(y) / 2, self.b0 + squares / 2

    def log_marginal(self, rows: np.ndarray) -> float:
        if len(rows) == 0:
            return 0.0
        x, y = self.split(rows)
        spread = np.eye(len(y)) + x @ np.linalg.solve(self.lambda0, x.T)
        shape = self.b0 / self.a0 * spread
        law = stats.multivariate_t(loc=x @ self.mu0, shape=shape, df=2 * self.a0)
        return float(law.logpdf(y))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        mean, precision, a, b = self.posterior(rows)
        (x,), (y,) = self.split(np.reshape(row, (1, -1)))
        scale = np.sqrt(b / a * (1 + x @ np.linalg.solve(precision, x)))
        return float(stats.t.logpdf(y, 2 * a, loc=x @ mean, scale=scale))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        mean, precision, a, b = self.posterior(rows)
        sigma = np.sqrt(stats.invgamma.rvs(a, scale=b, size=size, random_state=rng))
        cov = np.linalg.inv(precision)
        noise = rng.multivariate_normal(np.zeros(len(mean)), cov, size, method="cholesky")
        return {"beta": mean + sigma[:, None] * noise, "sigma": sigma}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        x = rng.choice(self.covariates, n)
        fitted = params["beta"][0] + x @ params["beta"][1:]
        return np.column_stack([x, rng.normal(fitted, params["sigma"])])

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        x, y = self.split(rows)
        return stats.norm.logpdf(y, x @ params["beta"], params["sigma"])

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        beta, sigma = params["beta"], params["sigma"]
        log_variance = stats.invgamma.logpdf(sigma**2, self.a0, scale=self.b0)
        cov = sigma**2 * np.linalg.inv(self.lambda0)
        log_beta = stats.multivariate_normal.logpdf(beta, self.mu0, cov)
        return float(log_beta + log_variance + np.log(2 * sigma))  # d sigma^2 = 2 sigma d sigma


def linear_regression_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    mean, precision, a, b = twin.posterior(rows)
    scaled = (draws["beta"] - mean) @ np.linalg.cholesky(precision) / draws["sigma"][:, None]
    variance = stats.invgamma.cdf(draws["sigma"] ** 2, a, scale=b)
    return uniforms_of(variance, *stats.norm.cdf(scaled).T)


def _linear_regression(n_features: int) -> dict[str, Any]:
    lambda0 = np.array([[0.5, 0.1, -0.05], [0.1, 0.7, 0.15], [-0.05, 0.15, 0.4]])
    return {
        "mu0": np.array([0.2, -0.3, 0.4])[:n_features],
        "lambda0": lambda0[:n_features, :n_features].copy(),
        "a0": 2.0,
        "b0": 0.6,
    }


EXAMPLES = {
    # One covariate, and two.
    "LinearRegression": Example(
        LinearRegression,
        _linear_regression,
        linear_regression_law,
        n_features=(2, 3),
        by_column=False,
        is_conditional=True,
        factor="b0",
    )
}
