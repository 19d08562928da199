"""Naive twins of the families whose clusters share something: the textbook in plain NumPy.

Data `rows` have shape (n, D), D = 1 for `NormalKnownSigma`; n = 0 is legal.  Marginal likelihoods
are densities of all rows at once and predictives those of one row, so each checks the other by the
chain rule.

References
----------
.. [1] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, sections 2.5, 2.6 and 3.5.
.. [2] Murphy (2007), Conjugate Bayesian analysis of the Gaussian distribution, section 6.
.. [3] Fink (1997), A compendium of conjugate priors, section 2.2.2.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import gammaln

from tests.reference.example import (
    Draws,
    Example,
    as_positive,
    as_times,
    gamma_law,
    per_column,
    scalar,
    uniforms_of,
)
from tests.reference.families import MvNormal, Parameters


class NormalKnownSigma:
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

    def restricted(self, features: np.ndarray) -> "NormalKnownSigma":
        return NormalKnownSigma(self.mu0, self.sigma0, self.sigma)

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.array([params["mu"]]), np.array([[self.sigma**2]])


class SphericalNormal:
    """sigma^2 ~ InvGamma(a0, b0), mu | sigma^2 ~ N(mu0, sigma^2 / kappa0 I), x ~ N(mu, sigma^2 I).

    Parameters are `mu` (D,) and `sigma`, a scalar.
    """

    def __init__(self, mu0: np.ndarray, kappa0: float, a0: float, b0: float) -> None:
        self.mu0, self.kappa0, self.a0, self.b0 = np.atleast_1d(mu0), kappa0, a0, b0

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, float, float, float]:
        """Hyperparameters given the data: each row is D observations of the variance [2]_."""
        n = len(rows)
        if n == 0:
            return self.mu0, self.kappa0, self.a0, self.b0
        mean, kappa = rows.mean(0), self.kappa0 + n
        squares = np.sum((rows - mean) ** 2)
        squares += self.kappa0 * n / kappa * np.sum((mean - self.mu0) ** 2)
        mu = (self.kappa0 * self.mu0 + n * mean) / kappa
        return mu, kappa, self.a0 + rows.size / 2, self.b0 + squares / 2

    def log_marginal(self, rows: np.ndarray) -> float:
        _, kappa, a, b = self.posterior(rows)
        return float(
            gammaln(a)
            - gammaln(self.a0)
            + self.a0 * np.log(self.b0)
            - a * np.log(b)
            + 0.5 * len(self.mu0) * np.log(self.kappa0 / kappa)
            - 0.5 * rows.size * np.log(2 * np.pi)
        )

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        mu, kappa, a, b = self.posterior(rows)
        shape = b * (kappa + 1) / (a * kappa) * np.eye(len(mu))
        return float(stats.multivariate_t.logpdf(row, loc=mu, shape=shape, df=2 * a))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        mu, kappa, a, b = self.posterior(rows)
        sigma = np.sqrt(stats.invgamma.rvs(a, scale=b, size=size, random_state=rng))
        return {"mu": rng.normal(mu, sigma[:, None] / np.sqrt(kappa), (size, len(mu))),
                "sigma": sigma}  # fmt: skip

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.normal(params["mu"], params["sigma"], (n, len(self.mu0)))

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.norm.logpdf(rows, params["mu"], params["sigma"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        mu, sigma = params["mu"], params["sigma"]
        log_variance = stats.invgamma.logpdf(sigma**2, self.a0, scale=self.b0)
        log_mu = stats.norm.logpdf(mu, self.mu0, sigma / np.sqrt(self.kappa0)).sum()
        return float(log_mu + log_variance + np.log(2 * sigma))  # d sigma^2 = 2 sigma d sigma

    def restricted(self, features: np.ndarray) -> "SphericalNormal":
        return SphericalNormal(self.mu0[features], self.kappa0, self.a0, self.b0)

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return params["mu"][holes], params["sigma"] ** 2 * np.eye(np.count_nonzero(holes))


class MvNormalKnownCov:
    """mu ~ N(mu0, cov / kappa0), x ~ N(mu, cov) with a known cov; parameter `mu` (D,)."""

    def __init__(self, mu0: np.ndarray, kappa0: float, cov: np.ndarray) -> None:
        self.mu0, self.kappa0, self.cov = np.atleast_1d(mu0), kappa0, np.atleast_2d(cov)

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Hyperparameters given the data [1]_."""
        kappa = self.kappa0 + len(rows)
        return (self.kappa0 * self.mu0 + rows.sum(0)) / kappa, kappa, self.cov

    def log_marginal(self, rows: np.ndarray) -> float:
        n, d = rows.shape
        mu, kappa, _ = self.posterior(rows)
        precision = np.linalg.inv(self.cov)
        # What the exponents of rows and prior leave when that of the posterior is completed.
        squares = np.einsum("ni,ij,nj->", rows, precision, rows)
        squares += self.kappa0 * self.mu0 @ precision @ self.mu0 - kappa * mu @ precision @ mu
        log_det = np.linalg.slogdet(2 * np.pi * self.cov)[1]
        return float(-0.5 * (n * log_det + d * np.log(kappa / self.kappa0) + squares))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        mu, kappa, cov = self.posterior(rows)
        return float(stats.multivariate_normal.logpdf(row, mu, cov * (1 + 1 / kappa)))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        mu, kappa, cov = self.posterior(rows)
        return {"mu": rng.multivariate_normal(mu, cov / kappa, size, method="cholesky")}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.multivariate_normal(params["mu"], self.cov, n, method="cholesky")

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        # SciPy drops the axis of a single row.
        log_density = stats.multivariate_normal.logpdf(rows, params["mu"], self.cov)
        return np.reshape(log_density, len(rows))

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        law = stats.multivariate_normal(self.mu0, self.cov / self.kappa0)
        return float(law.logpdf(params["mu"]))

    def restricted(self, features: np.ndarray) -> "MvNormalKnownCov":
        return MvNormalKnownCov(self.mu0[features], self.kappa0, self.cov[features][:, features])

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        one = {"mu": params["mu"], "cov": self.cov}
        return MvNormal.conditional(self, row, holes, one)  # type: ignore[arg-type]


class Gamma:
    """rate ~ Gamma(a0, b0), x ~ Gamma(shape, rate) in each column, shape known; `rate` (D,)."""

    def __init__(self, shape: np.ndarray, a0: np.ndarray, b0: np.ndarray) -> None:
        self.shape, self.a0, self.b0 = (np.atleast_1d(value) for value in (shape, a0, b0))

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hyperparameters given the data [3]_."""
        return self.shape, self.a0 + len(rows) * self.shape, self.b0 + rows.sum(0)

    def log_marginal(self, rows: np.ndarray) -> float:
        k, a, b = self.posterior(rows)
        ratios = gammaln(a) - gammaln(self.a0) + self.a0 * np.log(self.b0) - a * np.log(b)
        # x^(shape - 1) is 1 at zero if the shape is one.
        powers = np.where(k == 1.0, 0.0, (k - 1.0) * np.log(np.where(k == 1.0, 1.0, rows)))
        return float(ratios.sum() + (powers - gammaln(k)).sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        """A compound gamma law: x / b is of the beta prime distribution."""
        k, a, b = self.posterior(rows)
        return float((stats.betaprime.logpdf(row / b, k, a) - np.log(b)).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        _, a, b = self.posterior(rows)
        return {"rate": stats.gamma.rvs(a, scale=1.0 / b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.gamma(self.shape, 1.0 / params["rate"], (n, len(self.a0)))

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.gamma.logpdf(rows, self.shape, scale=1.0 / params["rate"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.gamma.logpdf(params["rate"], self.a0, scale=1.0 / self.b0).sum())

    def restricted(self, features: np.ndarray) -> "Gamma":
        return Gamma(self.shape[features], self.a0[features], self.b0[features])


class Exponential(Gamma):
    """rate ~ Gamma(a0, b0), x ~ Exponential(rate) in each column; parameter `rate` (D,)."""

    def __init__(self, a0: np.ndarray, b0: np.ndarray) -> None:
        super().__init__(np.ones_like(np.atleast_1d(a0)), a0, b0)

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        """A Lomax law, which unlike SciPy's beta prime has its limit at zero."""
        _, a, b = self.posterior(rows)
        return float(stats.lomax.logpdf(row, a, scale=b).sum())

    def restricted(self, features: np.ndarray) -> "Exponential":
        return Exponential(self.a0[features], self.b0[features])


class InverseGamma:
    """scale ~ Gamma(a0, b0), x ~ InvGamma(shape, scale) by column, shape known; `scale` (D,)."""

    def __init__(self, shape: np.ndarray, a0: np.ndarray, b0: np.ndarray) -> None:
        self.shape, self.a0, self.b0 = (np.atleast_1d(value) for value in (shape, a0, b0))

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hyperparameters given the data [3]_."""
        return self.shape, self.a0 + len(rows) * self.shape, self.b0 + (1.0 / rows).sum(0)

    def log_marginal(self, rows: np.ndarray) -> float:
        k, a, b = self.posterior(rows)
        ratios = gammaln(a) - gammaln(self.a0) + self.a0 * np.log(self.b0) - a * np.log(b)
        return float(ratios.sum() - ((k + 1.0) * np.log(rows) + gammaln(k)).sum())

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        """1 / (b x) is of the beta prime distribution."""
        k, a, b = self.posterior(rows)
        return float((stats.betaprime.logpdf(1.0 / (row * b), k, a) - np.log(b * row**2)).sum())

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        _, a, b = self.posterior(rows)
        return {"scale": stats.gamma.rvs(a, scale=1.0 / b, size=(size, len(a)), random_state=rng)}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        size = (n, len(self.a0))
        return stats.invgamma.rvs(self.shape, scale=params["scale"], size=size, random_state=rng)

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.invgamma.logpdf(rows, self.shape, scale=params["scale"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        return float(stats.gamma.logpdf(params["scale"], self.a0, scale=1.0 / self.b0).sum())

    def restricted(self, features: np.ndarray) -> "InverseGamma":
        return InverseGamma(self.shape[features], self.a0[features], self.b0[features])


# --- laws of the parameters, and examples -------------------------------------------------


def known_sigma_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    mu, sigma_mu, _ = twin.posterior(rows)
    return stats.norm.cdf(draws["mu"], mu, sigma_mu)[:, None]


def spherical_normal_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    mu, kappa, a, b = twin.posterior(rows)
    scaled = (draws["mu"] - mu) * np.sqrt(kappa) / draws["sigma"][:, None]
    variance = stats.invgamma.cdf(draws["sigma"] ** 2, a, scale=b)
    return uniforms_of(variance, *stats.norm.cdf(scaled).T)


def known_cov_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    mu, kappa, cov = twin.posterior(rows)
    whitened = np.linalg.solve(np.linalg.cholesky(cov / kappa), (draws["mu"] - mu).T)
    return uniforms_of(*stats.norm.cdf(whitened))


_MU0 = np.array([0.2, -0.1, 0.3])
_RATES = {"a0": [1.3, 0.9, 2.0], "b0": [0.8, 1.4, 0.6]}


def _spherical_normal(n_features: int) -> dict[str, Any]:
    return {"mu0": _MU0[:n_features].copy(), "kappa0": 0.3, "a0": 2.0, "b0": 0.9}


def _known_cov(n_features: int) -> dict[str, Any]:
    cov = np.array([[0.7, 0.2, -0.1], [0.2, 0.9, 0.15], [-0.1, 0.15, 0.6]])
    cov = cov[:n_features, :n_features].copy()
    return {"mu0": _MU0[:n_features].copy(), "kappa0": 0.3, "cov": cov}


EXAMPLES = {
    "NormalKnownSigma": Example(
        NormalKnownSigma, scalar(mu0=0.2, sigma0=1.6, sigma=0.8), known_sigma_law, n_features=(1,)
    ),
    "SphericalNormal": Example(
        SphericalNormal, _spherical_normal, spherical_normal_law, factor="b0"
    ),
    "MvNormalKnownCov": Example(MvNormalKnownCov, _known_cov, known_cov_law),
    "Gamma": Example(
        Gamma,
        per_column(shape=[2.5, 1.6, 4.0], **_RATES),
        gamma_law,
        rows_from=as_positive,
        factor="b0",
    ),
    "Exponential": Example(
        Exponential,
        per_column(**_RATES),
        gamma_law,
        rows_from=as_times,
        has_kernels_of="Gamma",
        factor="b0",
    ),
    "InverseGamma": Example(
        InverseGamma,
        per_column(shape=[2.5, 1.6, 4.0], **_RATES),
        gamma_law,
        rows_from=as_positive,
        factor="b0",
    ),
}
