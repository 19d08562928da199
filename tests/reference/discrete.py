"""Naive twins of the families of whole numbers: the textbook formulas, column by column.

Data `rows` have shape (n, D); n = 0 is legal.  Marginal likelihoods are ratios of normalising
constants and predictives are probabilities of SciPy, so each checks the other by the chain rule.

References
----------
.. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, sections 2.4, 2.6 and 3.4.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

from tests.reference.families import Parameters


class Poisson:
    """rate ~ Gamma(a, b), x ~ Poisson(rate) in each column; parameter `rate` (D,)."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a, self.b = np.atleast_1d(a), np.atleast_1d(b)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return self.a + rows.sum(0), self.b + len(rows)

    def log_marginal(self, rows: np.ndarray) -> float:
        a, b = self.posterior(rows)
        ratios = gammaln(a) - gammaln(self.a) + self.a * np.log(self.b) - a * np.log(b)
        return float(ratios.sum() - gammaln(rows + 1.0).sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        a, b = self.posterior(rows)
        return float(stats.nbinom.logpmf(row, a, b / (b + 1.0)).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        a, b = self.posterior(rows)
        return {"rate": stats.gamma.rvs(a, scale=1.0 / b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.poisson(params["rate"], (n, len(self.a))).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.poisson.logpmf(rows, params["rate"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.gamma.logpdf(params["rate"], self.a, scale=1.0 / self.b).sum())

    def restricted(self, features: np.ndarray) -> "Poisson":
        return Poisson(self.a[features], self.b[features])


class Bernoulli:
    """p ~ Beta(a, b), P(x = 1) = p in each column; parameter `p` (D,)."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        self.a, self.b = np.atleast_1d(a), np.atleast_1d(b)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return self.a + rows.sum(0), self.b + (1.0 - rows).sum(0)

    def log_marginal(self, rows: np.ndarray) -> float:
        return float((betaln(*self.posterior(rows)) - betaln(self.a, self.b)).sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        a, b = self.posterior(rows)
        return float(stats.bernoulli.logpmf(row, a / (a + b)).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        a, b = self.posterior(rows)
        return {"p": stats.beta.rvs(a, b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.binomial(1, params["p"], (n, len(self.a))).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.bernoulli.logpmf(rows, params["p"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.beta.logpdf(params["p"], self.a, self.b).sum())

    def restricted(self, features: np.ndarray) -> "Bernoulli":
        return Bernoulli(self.a[features], self.b[features])


class Categorical:
    """p ~ Dirichlet(beta), P(x = c) = p_c in each column; parameter `p` (D, C).

    `beta` has shape (D, C), 0 where a column has no such category.
    """

    def __init__(self, beta: np.ndarray) -> None:
        self.beta = np.atleast_2d(beta)

    def columns(self, values: np.ndarray) -> list[np.ndarray]:
        """Entries of the categories that there are, column by column."""
        return [value[beta > 0] for value, beta in zip(values, self.beta, strict=True)]

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray]:
        """Hyperparameters given the data [1]_."""
        codes = np.arange(self.beta.shape[1])
        return (self.beta + (rows[:, :, None] == codes).sum(0),)

    def log_marginal(self, rows: np.ndarray) -> float:
        before, after = self.columns(self.beta), self.columns(*self.posterior(rows))

        def log_normaliser(beta: np.ndarray) -> Any:
            return gammaln(beta).sum() - gammaln(beta.sum())

        return float(sum(map(log_normaliser, after)) - sum(map(log_normaliser, before)))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        (beta,) = self.posterior(rows)
        p = beta / beta.sum(1, keepdims=True)
        return float(self.log_density(row[None], {"p": p})[0])

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        p = np.zeros((size, *self.beta.shape))
        for d, beta in enumerate(self.columns(*self.posterior(rows))):
            p[:, d, : len(beta)] = stats.dirichlet.rvs(beta, size=size, random_state=rng)
        return {"p": p}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        laws = self.columns(params["p"])
        return np.column_stack([rng.choice(len(p), n, p=p / p.sum()) for p in laws]).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        columns = np.arange(len(self.beta))
        with np.errstate(divide="ignore"):  # a category that a column does not have
            return np.log(params["p"][columns, rows.astype(int)]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        pairs = zip(self.columns(params["p"]), self.columns(self.beta), strict=True)
        return float(sum(stats.dirichlet.logpdf(p / p.sum(), beta) for p, beta in pairs))

    def restricted(self, features: np.ndarray) -> "Categorical":
        return Categorical(self.beta[features])


class Multinomial:
    """p ~ Dirichlet(beta), x ~ Multinomial(n, p) with n given; parameter `p` (V,)."""

    totals = np.array([3, 5, 6, 9])

    def __init__(self, beta: np.ndarray) -> None:
        self.beta = np.atleast_1d(beta)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return (self.beta + rows.sum(0),)

    def log_marginal(self, rows: np.ndarray) -> float:
        (after,) = self.posterior(rows)
        coefficients = gammaln(rows.sum(1) + 1.0) - gammaln(rows + 1.0).sum(1)
        ratio = (gammaln(after) - gammaln(self.beta)).sum()
        ratio += gammaln(self.beta.sum()) - gammaln(after.sum())
        return float(coefficients.sum() + ratio)

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        (beta,) = self.posterior(rows)
        return float(stats.dirichlet_multinomial.logpmf(row.astype(int), beta, int(row.sum())))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        (beta,) = self.posterior(rows)
        return {"p": stats.dirichlet.rvs(beta, size=size, random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        totals = rng.choice(self.totals, n)
        return rng.multinomial(totals, params["p"] / params["p"].sum()).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.multinomial.logpmf(rows, rows.sum(1), params["p"] / params["p"].sum())

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.dirichlet.logpdf(params["p"] / params["p"].sum(), self.beta))
