"""Naive twins of the Gaussian families: the textbook formulas in the plainest NumPy and SciPy.

Data `rows` have shape (n, D) throughout, D = 1 for `Normal`; n = 0 is legal.  Marginal likelihoods
are ratios of normalising constants and predictives are Student densities of SciPy, so each
checks the other by the chain rule.

References
----------
.. [1] Murphy (2007), Conjugate Bayesian analysis of the Gaussian distribution: sections on the
   normal-inverse-gamma and the normal-inverse-Wishart prior.
.. [2] Gelman et al. (2013), Bayesian Data Analysis, 3rd edition, sections 3.3 and 3.6.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from scipy import stats
from scipy.special import gammaln, multigammaln

from tests.reference.example import Draws, Example, per_column, scalar

Parameters = dict[str, np.ndarray]


class Family(Protocol):
    """What a reference family offers; `params` are the parameters of one cluster."""

    def log_marginal(self, rows: np.ndarray) -> float:
        """Log density of all rows as one cluster, parameters integrated out."""
        ...

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        """Log density of one more row (D,) of the cluster that holds `rows`."""
        ...

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        """Posterior draws given `rows`, each (size, ...); n = 0 draws from the base measure."""
        ...

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        """Observations (n, D) of one cluster."""
        ...

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        """Log density (n,) of each row."""
        ...

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        """Log base density with respect to the named parameters, that is of sigma, not sigma^2."""
        ...

    def restricted(self, features: np.ndarray) -> "Family":
        """Return the family of some features (D',) alone."""
        ...

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the entries `holes` (D,) of a row (D,) given the others."""
        ...


class Normal:
    """sigma^2 ~ InvGamma(a0, b0), mu | sigma^2 ~ N(mu0, sigma^2 / kappa0), x ~ N(mu, sigma^2).

    Parameters are `mu` and `sigma`, scalars per cluster.
    """

    def __init__(self, mu0: float, kappa0: float, a0: float, b0: float) -> None:
        self.mu0, self.kappa0, self.a0, self.b0 = mu0, kappa0, a0, b0

    def posterior(self, rows: np.ndarray) -> tuple[float, float, float, float]:
        """Hyperparameters (mu, kappa, a, b) given the data [1]_."""
        x = np.reshape(rows, -1)
        n = len(x)
        if n == 0:
            return self.mu0, self.kappa0, self.a0, self.b0
        mean = x.mean()
        kappa = self.kappa0 + n
        mu = (self.kappa0 * self.mu0 + n * mean) / kappa
        scatter = np.sum((x - mean) ** 2)
        gap = self.kappa0 * n * (mean - self.mu0) ** 2 / kappa
        return mu, kappa, self.a0 + n / 2, self.b0 + (scatter + gap) / 2

    def log_marginal(self, rows: np.ndarray) -> float:
        _, kappa, a, b = self.posterior(rows)
        n = np.size(rows)
        return float(
            gammaln(a)
            - gammaln(self.a0)
            + self.a0 * np.log(self.b0)
            - a * np.log(b)
            + 0.5 * np.log(self.kappa0 / kappa)
            - 0.5 * n * np.log(2 * np.pi)
        )

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        mu, kappa, a, b = self.posterior(rows)
        scale = np.sqrt(b * (kappa + 1) / (a * kappa))
        return float(stats.t.logpdf(np.reshape(row, ()), df=2 * a, loc=mu, scale=scale))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        mu, kappa, a, b = self.posterior(rows)
        sigma = np.sqrt(stats.invgamma.rvs(a, scale=b, size=size, random_state=rng))
        return {"mu": rng.normal(mu, sigma / np.sqrt(kappa)), "sigma": sigma}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.normal(params["mu"], params["sigma"], size=(n, 1))

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.norm.logpdf(np.reshape(rows, -1), params["mu"], params["sigma"])

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        mu, sigma = params["mu"], params["sigma"]
        log_variance = stats.invgamma.logpdf(sigma**2, self.a0, scale=self.b0)
        log_mu = stats.norm.logpdf(mu, self.mu0, sigma / np.sqrt(self.kappa0))
        return float(log_mu + log_variance + np.log(2 * sigma))  # d sigma^2 = 2 sigma d sigma

    def restricted(self, features: np.ndarray) -> "Normal":
        return Normal(self.mu0, self.kappa0, self.a0, self.b0)

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return np.array([params["mu"]]), np.array([[params["sigma"] ** 2]])


class DiagNormal:
    """Independent features, each with its own `Normal`; parameters `mu` and `sigma`, (D,) each.

    A hyperparameter is a scalar or has shape (D,); if all are scalars, D is `n_features`.
    """

    def __init__(
        self,
        mu0: float | np.ndarray,
        kappa0: float | np.ndarray,
        a0: float | np.ndarray,
        b0: float | np.ndarray,
        n_features: int = 1,
    ) -> None:
        shape = np.broadcast_shapes(*(np.shape(value) for value in (mu0, kappa0, a0, b0)))
        arrays = (np.broadcast_to(v, shape or (n_features,)) for v in (mu0, kappa0, a0, b0))
        self.features = [Normal(*values) for values in zip(*arrays, strict=True)]

    def log_marginal(self, rows: np.ndarray) -> float:
        return sum(f.log_marginal(x) for f, x in zip(self.features, rows.T, strict=True))

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        return sum(
            f.log_predictive(x, column)
            for f, x, column in zip(self.features, row, rows.T, strict=True)
        )

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        draws = [
            f.draw_parameters(rng, x, size) for f, x in zip(self.features, rows.T, strict=True)
        ]
        return {key: np.column_stack([d[key] for d in draws]) for key in ("mu", "sigma")}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.normal(params["mu"], params["sigma"], size=(n, len(self.features)))

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        return stats.norm.logpdf(rows, params["mu"], params["sigma"]).sum(axis=1)

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        pairs = zip(self.features, params["mu"], params["sigma"], strict=True)
        return sum(f.log_prior({"mu": mu, "sigma": sigma}) for f, mu, sigma in pairs)

    def restricted(self, features: np.ndarray) -> "DiagNormal":
        own = [self.features[j] for j in features]
        names = ("mu0", "kappa0", "a0", "b0")
        return DiagNormal(*(np.array([getattr(f, name) for f in own]) for name in names))

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        return params["mu"][holes], np.diag(params["sigma"][holes] ** 2)


class MvNormal:
    """Sigma ~ InvWishart(nu0, psi0), mu | Sigma ~ N(mu0, Sigma / kappa0), x ~ N(mu, Sigma).

    Parameters are `mu` (D,) and `cov` (D, D).
    """

    def __init__(self, mu0: np.ndarray, kappa0: float, nu0: float, psi0: np.ndarray) -> None:
        self.mu0, self.psi0 = np.atleast_1d(mu0), np.atleast_2d(psi0)
        self.kappa0, self.nu0 = kappa0, nu0

    def posterior(self, rows: np.ndarray) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Hyperparameters (mu, kappa, nu, psi) given the data [1]_, [2]_."""
        n = len(rows)
        if n == 0:
            return self.mu0, self.kappa0, self.nu0, self.psi0
        mean = rows.mean(axis=0)
        kappa = self.kappa0 + n
        mu = (self.kappa0 * self.mu0 + n * mean) / kappa
        scatter = (rows - mean).T @ (rows - mean)
        gap = self.kappa0 * n / kappa * np.outer(mean - self.mu0, mean - self.mu0)
        return mu, kappa, self.nu0 + n, self.psi0 + scatter + gap

    def log_marginal(self, rows: np.ndarray) -> float:
        _, kappa, nu, psi = self.posterior(rows)
        n, d = len(rows), len(self.mu0)
        return float(
            multigammaln(nu / 2, d)
            - multigammaln(self.nu0 / 2, d)
            + 0.5 * self.nu0 * np.linalg.slogdet(self.psi0)[1]
            - 0.5 * nu * np.linalg.slogdet(psi)[1]
            + 0.5 * d * np.log(self.kappa0 / kappa)
            - 0.5 * n * d * np.log(np.pi)
        )

    def log_predictive(self, row: np.ndarray, rows: np.ndarray) -> float:
        mu, kappa, nu, psi = self.posterior(rows)
        df = nu - len(mu) + 1
        shape = psi * (kappa + 1) / (kappa * df)
        return float(stats.multivariate_t.logpdf(row, loc=mu, shape=shape, df=df))

    def draw_parameters(self, rng: np.random.Generator, rows: np.ndarray, size: int) -> Parameters:
        mu, kappa, nu, psi = self.posterior(rows)
        d = len(mu)
        cov = stats.invwishart.rvs(nu, psi, size=size, random_state=rng).reshape(size, d, d)
        root = np.linalg.cholesky(cov / kappa)
        return {"mu": mu + np.einsum("sij,sj->si", root, rng.normal(size=(size, d))), "cov": cov}

    def draw_rows(
        self, rng: np.random.Generator, params: Mapping[str, np.ndarray], n: int
    ) -> np.ndarray:
        return rng.multivariate_normal(params["mu"], params["cov"], size=n, method="cholesky")

    def log_density(self, rows: np.ndarray, params: Mapping[str, np.ndarray]) -> np.ndarray:
        # SciPy drops the axis of a single row.
        log_density = stats.multivariate_normal.logpdf(rows, params["mu"], params["cov"])
        return np.reshape(log_density, len(rows))

    def log_prior(self, params: Mapping[str, np.ndarray]) -> float:
        mu, cov = params["mu"], params["cov"]
        log_cov = stats.invwishart.logpdf(cov, self.nu0, self.psi0)
        log_mu = stats.multivariate_normal.logpdf(mu, self.mu0, cov / self.kappa0)
        return float(np.squeeze(log_mu + log_cov))

    def restricted(self, features: np.ndarray) -> "MvNormal":
        left_out = len(self.mu0) - len(features)  # blocks of an inverse Wishart, see [1]_
        psi = self.psi0[features][:, features]
        return MvNormal(self.mu0[features], self.kappa0, self.nu0 - left_out, psi)

    def conditional(
        self, row: np.ndarray, holes: np.ndarray, params: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        # By the precision: the missing block of it is the inverse of the conditional covariance.
        precision = np.linalg.inv(params["cov"])
        cov = np.linalg.inv(precision[holes][:, holes])
        gap = row[~holes] - params["mu"][~holes]
        return params["mu"][holes] - cov @ precision[holes][:, ~holes] @ gap, cov


# --- laws of the parameters, and examples -------------------------------------------------


def normal_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Probability integral transforms: mean, variance, and mean given variance."""
    mu, kappa, a, b = twin.posterior(rows)
    gap = draws["mu"] - mu
    return np.column_stack(
        [
            stats.t.cdf(gap / np.sqrt(b / (a * kappa)), 2 * a),
            stats.invgamma.cdf(draws["sigma"] ** 2, a, scale=b),
            stats.norm.cdf(gap * np.sqrt(kappa) / draws["sigma"]),
        ]
    )


def diag_normal_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Those of every feature, and of the sum of squares over features, which ties them."""
    columns = []
    for j, feature in enumerate(twin.features):
        own = {key: value[:, j] for key, value in draws.items()}
        columns.append(normal_law(feature, rows[:, j], own))
    squares = sum(stats.norm.ppf(column) ** 2 for column in columns)
    return np.column_stack([*columns, stats.chi2.cdf(squares, len(columns))])


def mv_normal_law(twin: Any, rows: np.ndarray, draws: Draws) -> np.ndarray:
    """Those of projections of the mean, of the precision and of the covariance."""
    mu, kappa, nu, psi = twin.posterior(rows)
    d = len(mu)
    gap, cov = draws["mu"] - mu, draws["cov"]
    precision = np.linalg.inv(cov)
    columns = [stats.chi2.cdf(kappa * np.einsum("si,sij,sj->s", gap, precision, gap), d)]
    for v in (np.eye(d)[0], np.eye(d)[-1], np.cos(1.0 + np.arange(d))):
        width = np.sqrt(v @ psi @ v / (kappa * (nu - d + 1)))
        columns.append(stats.t.cdf(gap @ v / width, nu - d + 1))
        inner = np.einsum("i,sij,j->s", v, precision, v) / (v @ np.linalg.solve(psi, v))
        columns.append(stats.chi2.cdf(inner, nu))
        outer = (v @ psi @ v) / np.einsum("i,sij,j->s", v, cov, v)
        columns.append(stats.chi2.cdf(outer, nu - d + 1))
    return np.column_stack(columns)


def _mv_normal(n_features: int) -> dict[str, Any]:
    psi0 = np.array([[1.2, 0.4, -0.2], [0.4, 1.6, 0.3], [-0.2, 0.3, 1.0]])
    return {
        "mu0": np.array([0.2, -0.1, 0.3])[:n_features],
        "kappa0": 0.3,
        "nu0": n_features + 2.5,
        "psi0": psi0[:n_features, :n_features].copy(),
    }


EXAMPLES = {
    "Normal": Example(
        Normal,
        scalar(mu0=0.2, kappa0=0.3, a0=2.0, b0=0.6),
        normal_law,
        n_features=(1,),
        factor="b0",
    ),
    "DiagNormal": Example(
        DiagNormal,
        per_column(
            mu0=[0.2, -0.1, 0.3], kappa0=[0.3, 0.5, 0.4], a0=[2.0, 2.5, 1.5], b0=[0.6, 0.9, 0.7]
        ),
        diag_normal_law,
        factor="b0",
    ),
    "MvNormal": Example(MvNormal, _mv_normal, mv_normal_law, n_features=(1, 2, 3), factor="psi0"),
}
