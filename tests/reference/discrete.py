"""Naive twins of the families of whole numbers: the textbook formulas, column by column.

Data `rows` have shape (n, D); n = 0 is legal.  Marginal likelihoods are ratios of normalising
constants and predictives are probabilities of SciPy, so each checks the other by the chain rule.

References
----------
.. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, sections 2.4, 2.6 and 3.4.
.. [2] Fink (1997), A compendium of conjugate priors, section 1.3.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln

from tests.reference.example import (
    Draws,
    Example,
    as_codes,
    as_counts,
    as_successes,
    as_zeros_and_ones,
    beta_law,
    gamma_law,
    per_column,
    uniforms_of,
)
from tests.reference.families import Parameters


class Poisson:
    """rate ~ Gamma(a0, b0), x ~ Poisson(rate) in each column; parameter `rate` (D,)."""

    def __init__(self, a0: np.ndarray, b0: np.ndarray) -> None:
        self.a0, self.b0 = np.atleast_1d(a0), np.atleast_1d(b0)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return self.a0 + rows.sum(0), self.b0 + len(rows)

    def log_marginal(self, rows: np.ndarray) -> float:
        a, b = self.posterior(rows)
        ratios = gammaln(a) - gammaln(self.a0) + self.a0 * np.log(self.b0) - a * np.log(b)
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
        return rng.poisson(params["rate"], (n, len(self.a0))).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.poisson.logpmf(rows, params["rate"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.gamma.logpdf(params["rate"], self.a0, scale=1.0 / self.b0).sum())

    def restricted(self, features: np.ndarray) -> "Poisson":
        return Poisson(self.a0[features], self.b0[features])


class Bernoulli:
    """p ~ Beta(a0, b0), P(x = 1) = p in each column; parameter `p` (D,)."""

    def __init__(self, a0: np.ndarray, b0: np.ndarray) -> None:
        self.a0, self.b0 = np.atleast_1d(a0), np.atleast_1d(b0)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return self.a0 + rows.sum(0), self.b0 + (1.0 - rows).sum(0)

    def log_marginal(self, rows: np.ndarray) -> float:
        return float((betaln(*self.posterior(rows)) - betaln(self.a0, self.b0)).sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        a, b = self.posterior(rows)
        return float(stats.bernoulli.logpmf(row, a / (a + b)).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        a, b = self.posterior(rows)
        return {"p": stats.beta.rvs(a, b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.binomial(1, params["p"], (n, len(self.a0))).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.bernoulli.logpmf(rows, params["p"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.beta.logpdf(params["p"], self.a0, self.b0).sum())

    def restricted(self, features: np.ndarray) -> "Bernoulli":
        return Bernoulli(self.a0[features], self.b0[features])


class NegativeBinomial:
    """p ~ Beta(a0, b0), x ~ NegativeBinomial(r, p) in each column, r known; parameter `p` (D,)."""

    def __init__(self, r: np.ndarray, a0: np.ndarray, b0: np.ndarray) -> None:
        self.r, self.a0, self.b0 = (np.atleast_1d(value) for value in (r, a0, b0))

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hyperparameters given the data [2]_."""
        return self.r, self.a0 + len(rows) * self.r, self.b0 + rows.sum(0)

    def log_marginal(self, rows: np.ndarray) -> float:
        r, a, b = self.posterior(rows)
        ways = gammaln(rows + r) - gammaln(r) - gammaln(rows + 1.0)
        return float((betaln(a, b) - betaln(self.a0, self.b0)).sum() + ways.sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        """Beta negative binomial, of which SciPy has that of a whole r alone."""
        r, a, b = self.posterior(rows)
        ways = -np.log(row + r) - betaln(row + 1.0, r)
        return float((betaln(a + r, b + row) - betaln(a, b) + ways).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        _, a, b = self.posterior(rows)
        return {"p": stats.beta.rvs(a, b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.negative_binomial(self.r, params["p"], (n, len(self.r))).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.nbinom.logpmf(rows, self.r, params["p"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.beta.logpdf(params["p"], self.a0, self.b0).sum())

    def restricted(self, features: np.ndarray) -> "NegativeBinomial":
        return NegativeBinomial(self.r[features], self.a0[features], self.b0[features])


class Binomial:
    """p ~ Beta(a0, b0), x ~ Binomial(n, p) in each column, n known; parameter `p` (D,)."""

    def __init__(self, n: np.ndarray, a0: np.ndarray, b0: np.ndarray) -> None:
        self.n, self.a0, self.b0 = (np.atleast_1d(value) for value in (n, a0, b0))

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return self.n, self.a0 + rows.sum(0), self.b0 + (self.n - rows).sum(0)

    def log_marginal(self, rows: np.ndarray) -> float:
        n, a, b = self.posterior(rows)
        ways = gammaln(n + 1.0) - gammaln(rows + 1.0) - gammaln(n - rows + 1.0)
        return float((betaln(a, b) - betaln(self.a0, self.b0)).sum() + ways.sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        return float(stats.betabinom.logpmf(row, *self.posterior(rows)).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        _, a, b = self.posterior(rows)
        return {"p": stats.beta.rvs(a, b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        trials = self.n.astype(int)
        return rng.binomial(trials, params["p"], (n, len(trials))).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.binom.logpmf(rows, self.n, params["p"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.beta.logpdf(params["p"], self.a0, self.b0).sum())

    def restricted(self, features: np.ndarray) -> "Binomial":
        return Binomial(self.n[features], self.a0[features], self.b0[features])


class Categorical:
    """p ~ Dirichlet(a0), P(x = c) = p_c in each column; parameter `p` (D, C).

    `a0` has shape (D, C), 0 where a column has no such category.
    """

    def __init__(self, a0: np.ndarray) -> None:
        self.a0 = np.atleast_2d(a0)

    def columns(self, values: np.ndarray) -> list[np.ndarray]:
        """Entries of the categories that there are, column by column."""
        return [value[beta > 0] for value, beta in zip(values, self.a0, strict=True)]

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray]:
        """Hyperparameters given the data [1]_."""
        codes = np.arange(self.a0.shape[1])
        return (self.a0 + (rows[:, :, None] == codes).sum(0),)

    def log_marginal(self, rows: np.ndarray) -> float:
        before, after = self.columns(self.a0), self.columns(*self.posterior(rows))

        def log_normaliser(beta: np.ndarray) -> Any:
            return gammaln(beta).sum() - gammaln(beta.sum())

        return float(sum(map(log_normaliser, after)) - sum(map(log_normaliser, before)))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        (beta,) = self.posterior(rows)
        p = beta / beta.sum(1, keepdims=True)
        return float(self.log_density(row[None], {"p": p})[0])

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        p = np.zeros((size, *self.a0.shape))
        for d, beta in enumerate(self.columns(*self.posterior(rows))):
            p[:, d, : len(beta)] = stats.dirichlet.rvs(beta, size=size, random_state=rng)
        return {"p": p}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        laws = self.columns(params["p"])
        return np.column_stack([rng.choice(len(p), n, p=p / p.sum()) for p in laws]).astype(float)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        columns = np.arange(len(self.a0))
        with np.errstate(divide="ignore"):  # a category that a column does not have
            return np.log(params["p"][columns, rows.astype(int)]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        pairs = zip(self.columns(params["p"]), self.columns(self.a0), strict=True)
        return float(sum(stats.dirichlet.logpdf(p / p.sum(), beta) for p, beta in pairs))

    def restricted(self, features: np.ndarray) -> "Categorical":
        return Categorical(self.a0[features])


class Multinomial:
    """p ~ Dirichlet(a0), x ~ Multinomial(n, p) with n given; parameter `p` (V,)."""

    totals = np.array([3, 5, 6, 9])

    def __init__(self, a0: np.ndarray) -> None:
        self.a0 = np.atleast_1d(a0)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray]:
        """Hyperparameters given the data [1]_."""
        return (self.a0 + rows.sum(0),)

    def log_marginal(self, rows: np.ndarray) -> float:
        (after,) = self.posterior(rows)
        coefficients = gammaln(rows.sum(1) + 1.0) - gammaln(rows + 1.0).sum(1)
        ratio = (gammaln(after) - gammaln(self.a0)).sum()
        ratio += gammaln(self.a0.sum()) - gammaln(after.sum())
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
        return float(stats.dirichlet.logpdf(params["p"] / params["p"].sum(), self.a0))


# --- laws of the parameters, and examples -------------------------------------------------


def categorical_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Those of the shares of each category in what the ones before it have left."""
    (betas,) = twin.posterior(rows)
    columns = []
    for d, beta in enumerate(betas):
        p = draws["p"][:, d]
        for c in range(np.count_nonzero(beta) - 1):
            share = p[:, c] / p[:, c:].sum(1)
            columns.append(stats.beta.cdf(share, beta[c], beta[c + 1 :].sum()))
    return uniforms_of(*columns)


def multinomial_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Those of the shares of each column in what the ones before it have left."""
    (beta,), p = twin.posterior(rows), draws["p"]
    shares = (p[:, c] / p[:, c:].sum(1) for c in range(len(beta) - 1))
    laws = (stats.beta(beta[c], beta[c + 1 :].sum()) for c in range(len(beta) - 1))
    return uniforms_of(*(law.cdf(share) for law, share in zip(laws, shares, strict=True)))


EXAMPLES = {
    "Poisson": Example(
        Poisson,
        per_column(a0=[1.3, 0.9, 2.0], b0=[0.5, 0.4, 0.8]),
        gamma_law,
        rows_from=as_counts,
        support=tuple(range(400)),
        is_endless=True,
        factor="b0",
    ),
    # Tails are powers: with smaller a0 hardly any support would be enough.
    "NegativeBinomial": Example(
        NegativeBinomial,
        per_column(r=[1.0, 2.5, 1.6], a0=[4.0, 5.0, 4.5], b0=[2.5, 3.5, 2.0]),
        beta_law,
        rows_from=as_counts,
        support=tuple(range(4000)),
        is_endless=True,
        factor="b0",
    ),
    "Bernoulli": Example(
        Bernoulli,
        per_column(a0=[0.7, 1.1, 0.5], b0=[0.9, 0.6, 1.2]),
        beta_law,
        n_features=(3,),
        rows_from=as_zeros_and_ones,
        support=(0, 1),
        factor="a0",
    ),
    "Binomial": Example(
        Binomial,
        per_column(n=[5.0, 7.0, 6.0], a0=[1.5, 2.0, 1.2], b0=[1.9, 1.4, 2.2]),
        beta_law,
        rows_from=as_successes,
        support=tuple(range(8)),
        factor="a0",
    ),
    "Categorical": Example(
        Categorical,
        # The second column has two categories.
        per_column(a0=[[0.6, 0.9, 0.5], [0.8, 0.5, 0.0], [0.4, 0.7, 1.1]]),
        categorical_law,
        n_features=(3,),
        rows_from=as_codes,
        support=(0, 1, 2),
    ),
    "Multinomial": Example(
        Multinomial,
        per_column(a0=[0.6, 0.9, 0.5]),
        multinomial_law,
        n_features=(3,),
        rows_from=as_counts,
        support=(4,),
        by_column=False,
    ),
}
