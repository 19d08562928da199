"""Log marginal likelihoods of one cluster in 60-digit arithmetic, from the formulas of textbooks.

And log probabilities of partitions and rising factorials, of parameters of any size.

Rows and hyperparameters are taken as the float64 numbers that they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

import mpmath as mp
import numpy as np

Values = Mapping[str, np.ndarray]
DIGITS = 60


def log_marginal(family: str, values: Values, rows: np.ndarray) -> float:
    """Return the log marginal likelihood of rows (N, D), rounded once."""
    with mp.workdps(DIGITS):
        return float(_FORMULAS[family](values, rows))


def log_densities(family: str, values: Values, rows: np.ndarray) -> tuple[float, float]:
    """Return the log marginal, and the log predictive density of the last row given the others."""
    with mp.workdps(DIGITS):
        whole = _FORMULAS[family](values, rows)
        return float(whole), float(whole - _FORMULAS[family](values, rows[:-1]))


def log_rising(x: float, n: float) -> float:
    """Return the log of Gamma(x + n) / Gamma(x), rounded once."""
    # The difference of two numbers of size x log x is wanted to many digits.
    with mp.workdps(DIGITS + 400):
        return float(mp.loggamma(mp.mpf(x) + n) - mp.loggamma(x))


def log_partition(discount: float, strength: float, sizes: np.ndarray) -> float:
    """Return the log probability of a partition under a law of Gibbs type, rounded once."""
    with mp.workdps(DIGITS + 400):
        sigma, tau = mp.mpf(float(discount)), mp.mpf(float(strength))
        total = mp.fsum(mp.log(tau + i * sigma) for i in range(1, len(sizes)))
        total += mp.loggamma(tau + 1) - mp.loggamma(tau + int(sizes.sum()))
        for n in sizes:
            total += mp.loggamma(int(n) - sigma) - mp.loggamma(1 - sigma)
        return float(total)


def _mean(numbers: Any) -> Any:
    return mp.fsum(numbers) / len(numbers)


def _scatter(column: list[Any], mean: Any) -> Any:
    return mp.fsum((x - mean) ** 2 for x in column)


def _exact(values: Any) -> list[Any]:
    return [mp.mpf(float(value)) for value in np.ravel(values)]


def _columns(rows: np.ndarray) -> list[list[Any]]:
    return [_exact(column) for column in rows.T]


def _normal_gamma(mu0: Any, kappa0: Any, a0: Any, b0: Any, columns: list[list[Any]]) -> Any:
    """Columns with one variance and a mean each."""
    n, d = len(columns[0]), len(columns)
    kappa = kappa0 + n
    a, b = a0 + mp.mpf(n * d) / 2, b0
    for m, column in zip(mu0, columns, strict=True):
        mean = _mean(column)
        b += (_scatter(column, mean) + kappa0 * n / kappa * (mean - m) ** 2) / 2
    return (
        mp.loggamma(a)
        - mp.loggamma(a0)
        + a0 * mp.log(b0)
        - a * mp.log(b)
        + d * mp.log(kappa0 / kappa) / 2
        - n * d * mp.log(2 * mp.pi) / 2
    )


def _normal(values: Values, rows: np.ndarray) -> Any:
    parts = [_exact(values[name]) for name in ("mu0", "kappa0", "a0", "b0")]
    each = zip(*parts, _columns(rows), strict=True)
    return mp.fsum(_normal_gamma([m], k, a, b, [column]) for m, k, a, b, column in each)


def _spherical_normal(values: Values, rows: np.ndarray) -> Any:
    (kappa0,), (a0,), (b0,) = (_exact(values[name]) for name in ("kappa0", "a0", "b0"))
    return _normal_gamma(_exact(values["mu0"]), kappa0, a0, b0, _columns(rows))


def _log_multigamma(x: Any, d: int) -> Any:
    return mp.mpf(d * (d - 1)) / 4 * mp.log(mp.pi) + mp.fsum(
        mp.loggamma(x - mp.mpf(j) / 2) for j in range(d)
    )


def _mv_normal(values: Values, rows: np.ndarray) -> Any:
    (n, d), columns = rows.shape, _columns(rows)
    mu0, (kappa0,), (nu0,) = (_exact(values[name]) for name in ("mu0", "kappa0", "nu0"))
    psi0 = mp.matrix(values["psi0"].tolist())
    means = [_mean(column) for column in columns]
    kappa, nu, psi = kappa0 + n, nu0 + n, psi0.copy()
    for a in range(d):
        for b in range(d):
            pairs = zip(columns[a], columns[b], strict=True)
            psi[a, b] += mp.fsum((x - means[a]) * (y - means[b]) for x, y in pairs)
            psi[a, b] += kappa0 * n / kappa * (means[a] - mu0[a]) * (means[b] - mu0[b])
    return (
        _log_multigamma(nu / 2, d)
        - _log_multigamma(nu0 / 2, d)
        + nu0 * mp.log(mp.det(psi0)) / 2
        - nu * mp.log(mp.det(psi)) / 2
        + d * mp.log(kappa0 / kappa) / 2
        - n * d * mp.log(mp.pi) / 2
    )


def _gamma_rate(values: Values, n: int, total: Any) -> Any:
    """Log of the integral of rate^n exp(-rate total) over the gamma law of the rate."""
    (a,), (b,) = (_exact(values[name]) for name in ("a0", "b0"))
    return mp.loggamma(a + n) - mp.loggamma(a) + a * mp.log(b) - (a + n) * mp.log(b + total)


def _by_column(of_one: Callable[..., Any]) -> Callable[[Values, np.ndarray], Any]:
    def of_all(values: Values, rows: np.ndarray) -> Any:
        own = [
            {key: value[d : d + 1] for key, value in values.items()} for d in range(rows.shape[1])
        ]
        return mp.fsum(of_one(v, c) for v, c in zip(own, _columns(rows), strict=True))

    return of_all


def _poisson(values: Values, column: list[Any]) -> Any:
    (a,), (b,) = (_exact(values[name]) for name in ("a0", "b0"))
    n, total = len(column), mp.fsum(column)
    own = mp.fsum(mp.loggamma(x + 1) for x in column)
    whole = mp.loggamma(a + total) - mp.loggamma(a) + a * mp.log(b)
    return whole - (a + total) * mp.log(b + n) - own


def _exponential(values: Values, column: list[Any]) -> Any:
    return _gamma_rate(values, len(column), mp.fsum(column))


def _gamma(values: Values, column: list[Any]) -> Any:
    (shape,) = _exact(values["shape"])
    n = len(column)
    own = mp.fsum((shape - 1) * mp.log(x) for x in column) - n * mp.loggamma(shape)
    return own + _gamma_rate(values, n * shape, mp.fsum(column))


def _inverse_gamma(values: Values, column: list[Any]) -> Any:
    (shape,) = _exact(values["shape"])
    n = len(column)
    own = -mp.fsum((shape + 1) * mp.log(x) for x in column) - n * mp.loggamma(shape)
    return own + _gamma_rate(values, n * shape, mp.fsum(1 / x for x in column))


def _log_beta(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


def log_beta_rising(a: Any, b: Any, s: Any, f: Any) -> Any:
    """Log of beta(a + s, b + f) / beta(a, b)."""
    with mp.workdps(DIGITS):
        return _log_beta(mp.mpf(a) + s, mp.mpf(b) + f) - _log_beta(a, b)


def _beta(values: Values, successes: Any, failures: Any) -> Any:
    """Log of the integral of p^successes (1 - p)^failures over the beta law of p."""
    (a,), (b,) = (_exact(values[name]) for name in ("a0", "b0"))
    return log_beta_rising(a, b, successes, failures)


def _bernoulli(values: Values, column: list[Any]) -> Any:
    total = mp.fsum(column)
    return _beta(values, total, len(column) - total)


def _log_ways(n: Any, x: Any) -> Any:
    return mp.loggamma(n + 1) - mp.loggamma(x + 1) - mp.loggamma(n - x + 1)


def _binomial(values: Values, column: list[Any]) -> Any:
    (n,) = _exact(values["n"])
    total = mp.fsum(column)
    ways = mp.fsum(_log_ways(n, x) for x in column)
    return ways + _beta(values, total, len(column) * n - total)


def _negative_binomial(values: Values, column: list[Any]) -> Any:
    (r,) = _exact(values["r"])
    ways = mp.fsum(_log_ways(x + r - 1, x) for x in column)
    return ways + _beta(values, len(column) * r, mp.fsum(column))


def _dirichlet(a0: list[Any], counts: list[Any]) -> Any:
    """Log of the integral of prod p^counts over the Dirichlet law of p."""
    ratio = mp.fsum(mp.loggamma(a + x) - mp.loggamma(a) for a, x in zip(a0, counts, strict=True))
    total = mp.fsum(a0)
    return ratio + mp.loggamma(total) - mp.loggamma(total + mp.fsum(counts))


def _categorical(values: Values, column: list[Any]) -> Any:
    present = [a for a in _exact(values["a0"]) if a > 0]
    return _dirichlet(present, [mp.mpf(column.count(c)) for c in range(len(present))])


def _multinomial(values: Values, rows: np.ndarray) -> Any:
    own = mp.mpf(0)
    for row in map(_exact, rows):
        own += mp.loggamma(mp.fsum(row) + 1) - mp.fsum(mp.loggamma(x + 1) for x in row)
    return own + _dirichlet(_exact(values["a0"]), [mp.fsum(column) for column in _columns(rows)])


def _normal_known_sigma(values: Values, rows: np.ndarray) -> Any:
    (mu0,), (sigma0,), (sigma,) = (_exact(values[name]) for name in ("mu0", "sigma0", "sigma"))
    (column,) = _columns(rows)
    n, mean = len(column), _mean(column)
    spread = sigma**2 + n * sigma0**2
    squares = _scatter(column, mean) / sigma**2 + n * (mean - mu0) ** 2 / spread
    logs = n * mp.log(2 * mp.pi) + 2 * (n - 1) * mp.log(sigma) + mp.log(spread)
    return -(logs + squares) / 2


def _mv_normal_known_cov(values: Values, rows: np.ndarray) -> Any:
    (n, d), columns = rows.shape, _columns(rows)
    mu0, (kappa0,) = _exact(values["mu0"]), _exact(values["kappa0"])
    cov = mp.matrix(values["cov"].tolist())
    inverse, means = cov**-1, [_mean(column) for column in columns]

    def squared(gap: list[Any]) -> Any:
        return mp.fsum(gap[a] * inverse[a, b] * gap[b] for a in range(d) for b in range(d))

    gaps = ([x - m for x, m in zip(row, means, strict=True)] for row in map(_exact, rows))
    squares = mp.fsum(squared(gap) for gap in gaps)
    squares += kappa0 * n / (kappa0 + n) * squared([m - z for m, z in zip(means, mu0, strict=True)])
    logs = n * (d * mp.log(2 * mp.pi) + mp.log(mp.det(cov))) - d * mp.log(kappa0 / (kappa0 + n))
    return -(logs + squares) / 2


def _linear_regression(values: Values, rows: np.ndarray) -> Any:
    """With an intercept, by the marginal law of y."""
    n = len(rows)
    (a0,), (b0,) = (_exact(values[name]) for name in ("a0", "b0"))
    mu0 = mp.matrix(_exact(values["mu0"]))
    x = mp.matrix([[mp.mpf(1), *_exact(row[:-1])] for row in rows])
    gap = mp.matrix(_exact(rows[:, -1])) - x * mu0
    # y is of a multivariate t distribution; its scale matrix is b0 / a0 times this.
    spread = mp.eye(n) + x * mp.matrix(values["lambda0"].tolist()) ** -1 * x.T
    squared = (gap.T * mp.lu_solve(spread, gap))[0]
    a = a0 + mp.mpf(n) / 2
    return (
        mp.loggamma(a)
        - mp.loggamma(a0)
        - (n * mp.log(2 * mp.pi * b0) + mp.log(mp.det(spread))) / 2
        - a * mp.log(1 + squared / (2 * b0))
    )


_FORMULAS: dict[str, Callable[[Values, np.ndarray], Any]] = {
    "Normal": _normal,
    "DiagNormal": _normal,
    "SphericalNormal": _spherical_normal,
    "MvNormal": _mv_normal,
    "NormalKnownSigma": _normal_known_sigma,
    "MvNormalKnownCov": _mv_normal_known_cov,
    "LinearRegression": _linear_regression,
    "Exponential": _by_column(_exponential),
    "Gamma": _by_column(_gamma),
    "InverseGamma": _by_column(_inverse_gamma),
    "Poisson": _by_column(_poisson),
    "NegativeBinomial": _by_column(_negative_binomial),
    "Binomial": _by_column(_binomial),
    "Bernoulli": _by_column(_bernoulli),
    "Categorical": _by_column(_categorical),
    "Multinomial": _multinomial,
}
FAMILIES = set(_FORMULAS)
